# A wrong zone in defaults is told once, not once a task.
defaults {
  timezone = "Mars/Olympus" # ERROR: Mars/Olympus
}
task "a" {
  schedule { cron = "0 4 * * *" }
  handler "shell" { command = "true" }
}
task "b" {
  schedule { cron = "0 4 * * *" }
  handler "shell" { command = "true" }
}
