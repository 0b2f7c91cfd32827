# Task beats defaults beats built in; blocks attribute by attribute, labels as
# a whole.
defaults {
  timezone    = "Asia/Shanghai"
  owner       = "ops"
  labels      = { team = "data", tier = "1" }
  timeout     = "5m"
  kill_after  = "3s"
  concurrency = 2
  overlap     = "skip"
  pool        = "slow"
  idempotent  = false
  retry {
    max = 9
    on  = ["timeout"]
  }
  misfire {
    policy = "skip"
    max    = 7
  }
}

task "inherits" {
  schedule { cron = "0 4 * * *" }
  handler "shell" { command = "true" }
}

task "overrides" {
  owner      = "dev"
  labels     = { team = "web" }
  timeout    = "0s"
  pool       = "hot"
  idempotent = true
  schedule {
    cron     = "0 4 * * *"
    timezone = "UTC"
  }
  retry { initial = "1s" }
  misfire { grace = "2m" }
  handler "shell" { command = "true" }
}
