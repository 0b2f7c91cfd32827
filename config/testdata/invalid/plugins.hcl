# Plugin blocks.
plugin "out" {
  path = "../ax-handler-out" # ERROR: does not leave it
}
plugin "abs" {
  path = "/usr/bin/env" # ERROR: is no file inside axd's plugin folder
}
plugin "folder" {
  path = "./" # ERROR: Invalid path
}
plugin "pin" {
  sha256 = "abc" # ERROR: "abc" is no SHA-256: it has 64 hexadecimal digits
}
plugin "long" {
  sha256 = "zz" # ERROR: no SHA-256
  path   = 7    # ERROR: is a string, and this is a number
}
plugin "env" {
  env = ["A=1", "AX_STORE", "PLUGIN_X"] # ERROR: "A=1" is no name | "AX_STORE" is a name that axd itself uses | "PLUGIN_X" is a name
}
plugin "words" {
  checksum = "x" # ERROR: There is no attribute "checksum" in a plugin block
  sha265   = "x" # ERROR: Did you mean "sha256"?
  handler {}     # ERROR: There is no block "handler" in a plugin block
}
plugin {}      # ERROR: Write plugin "NAME" { … }
plugin "a b" {} # ERROR: "a b" is no name
plugin "twice" {}
plugin "twice" {} # ERROR: A plugin named "twice" is defined already
