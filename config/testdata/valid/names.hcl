# Names are HCL identifiers, in any script.
task "with-dash_and_1" {
  handler "shell" { command = "true" }
}
task "报告" {
  handler "shell" { command = "true" }
}
task unquoted {
  handler "shell" { command = "true" }
}
