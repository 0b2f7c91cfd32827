# Every attribute of a task and its blocks, each with a value that is not the
# default.
ax {
  stack = "night-jobs"
}

task "full" {
  description = "Everything said."
  owner       = "ops"
  labels      = { team = "data", "tier/1" = "yes" }
  enabled     = false
  timeout     = "90m"
  kill_after  = "0s"

  start_within = "45m"
  freeze_after = 4

  concurrency = 3
  overlap     = "latest"
  heartbeat   = "90s"
  pool        = "hot"
  priority    = -7
  idempotent  = false

  schedule {
    cron     = "  0 4 * * mon-fri "
    timezone = "Europe/Berlin"
  }
  schedule {
    every = "90s"
    from  = "2026-01-01T00:00"
  }
  schedule {
    at = ["2030-01-01T00:00:00Z", "2031-01-01T00:00"]
  }
  schedule {
    at = "2032-01-01T00:00:00Z"
  }

  retry {
    max          = 7
    initial      = "1m"
    factor       = 1.5
    max_interval = "1h"
    jitter       = 0
    on           = ["lost", "failed", "failed"]
    within       = "2h"
  }

  misfire {
    policy    = "all"
    grace     = "5m"
    max       = 12
    on_resume = "once"
  }

  handler "shell" {
    command = ["echo", "a b"]
  }
}

# Nothing said: the built-in defaults.
task "bare" {
  handler "shell" { command = "true" }
}

# null is as good as not said.
task "null" {
  timeout = null
  retry { on = null }
  handler "shell" {
    command = "true"
    script  = null
  }
}

# A retry block alone widens what is retried; an empty list retries nothing.
task "retry_block" {
  retry {}
  handler "shell" { command = "true" }
}

task "retry_nothing" {
  retry { on = [] }
  handler "shell" { command = "true" }
}
