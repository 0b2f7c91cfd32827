# A second value of an attribute hides no other fault.
task "a" {
  timeout = "1m"
  timeout = "2m" # ERROR: already set at
  timout  = 3    # ERROR: Did you mean "timeout"?
  handler "shell" { command = "true" }
}
task "b" {
  overlap = "x" # ERROR: is one of
  handler "shell" { command = "true" }
}
