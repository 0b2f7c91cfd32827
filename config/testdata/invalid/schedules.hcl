# Faults in schedules, at their characters.
task "a" {
  schedule {} # ERROR: one of cron, every and at
  schedule {
    cron  = "* * * * *"
    every = "1m" # ERROR: only one of cron, every and at
  }
  schedule { crn = "61 * * * *" } # ERROR: Did you mean "cron"?
  schedule { cron6 = "0 0 0 * * *" } # ERROR: not built in this version
  schedule { cron = "61 * * * *" }              # ERROR: 61
  schedule { cron = "* * * *" }                 # ERROR: field
  schedule { cron = "0 0 30 2 *" }              # ERROR: never
  schedule { cron = 5 }                         # ERROR: Write "5"
  schedule { every = "500ms" }                  # ERROR: "every" in a schedule block is at least "1s"
  schedule { every = 60 }                       # ERROR: "60s"
  schedule { at = [] }                          # ERROR: "at" says no time
  schedule { cron = "" }                        # ERROR: "cron" says no time
  schedule { cron = "  " }                      # ERROR: five fields
  schedule { cron = null }                      # ERROR: one of cron, every and at
  schedule { at = "tomorrow" }                  # ERROR: tomorrow
  schedule { at = ["2030-01-01T00:00:00Z", 5] } # ERROR: list of strings, and this is a list with a number in it
  schedule {
    cron     = "0 4 * * *"
    timezone = "Europe/Berln" # ERROR: Europe/Berln
  }
  schedule {
    every = "1m"
    from  = "x" # ERROR: x
  }
  schedule { cron = "CRON_TZ=UTC 0 4 * * *" } # ERROR: timezone
  schedule {
    every    = "1m"
    timezone = "" # ERROR: Empty timezone
  }
  handler "shell" { command = "true" }
}

task "warned" {
  schedule { cron = "*/7 * * * *" } # WARNING: Step 7 does not divide
  schedule { cron = "0 0 13 * 5" }  # WARNING: Either day field may match
  handler "shell" { command = "true" }
}
