# What stands before a syntax error is checked as usual.
task "before" {
  timout = "1m" # ERROR: Did you mean "timeout"?
  handler "shell" { command = "true" }
}
task "broken" {
  timeout = # ERROR: Invalid expression
  handler "shell" { command = undeclared_name_in_broken_block }
}
task "after" {
  handler "shell" { command = var.not_told }
}
