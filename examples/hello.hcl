task "hello" {
  schedule { cron = "*/5 * * * *" }
  handler "shell" { command = "echo hello" }
}
