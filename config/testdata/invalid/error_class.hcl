error_class "transient" {
  exit_codes = [75]
  match      = "connection"
}
error_class "transient" { # ERROR: A block error_class "transient" stands already at testdata/invalid/error_class.hcl:1,
  exit_codes = [76]
}
error_class "permanent" {
  exit_codes  = [2, 75]  # ERROR: 75 in exit_codes is of class "transient" already
  http_status = ["404"]  # ERROR: "http_status" in an error_class block is a list of numbers
}
error_class "resource" {
  exit_codes  = [0]     # ERROR: "exit_codes" in an error_class block has whole numbers from 1 to 255; 0 is none of them.
  http_status = [600]   # ERROR: from 100 to 599; 600 is none of them.
  match       = "a(b"   # ERROR: missing closing )
}
error_class "transiant" { # ERROR: There is no error class "transiant" to give. There are: "permanent", "resource", "transient". Did you mean "transient"?
  exit_codes = [1]
}
error_class "failed" { # ERROR: is of class "failed" already
  exit_codes = [1]
}
error_class "timeout" { # ERROR: is found by ax itself
  exit_codes = [1]
}
error_class { # ERROR: Write error_class "CLASS" { … }.
  exit_codes = [1]
}
defaults {
  error_class "transient" { # ERROR: There is no block "error_class" in a defaults block. It belongs in a configuration or a task.
    exit_codes = [1]
  }
}

task "a" {
  error_class "transient" {} # ERROR: error_class "transient" says neither exit_codes nor http_status nor match.
  error_class "permanent" {
    exit_codes = 2        # ERROR: "exit_codes" in an error_class block is a list of numbers
    match      = "(?<x"   # ERROR: The syntax is RE2's
    exit_code  = [2]      # ERROR: Did you mean "exit_codes"?
  }
  error_class = "x" # ERROR: "error_class" in a task is a block
  handler "shell" { command = "true" }
}
