task "a" { # ERROR: Unclosed configuration block
  timout = "1m"
  handler "shell" {
    command = "true"
}
