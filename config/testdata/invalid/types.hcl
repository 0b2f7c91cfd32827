# Values of the wrong type or out of bounds. Nothing is converted.
ax {
  stack = 5 # ERROR: "stack" in an ax block is a string, and this is a number. Write "5".
}

task "a" {
  timeout     = 30          # ERROR: "timeout" in a task is a duration, and this is a number. Write it with its unit, as in "30s".
  kill_after  = "10"        # ERROR: "10" is no duration; write it like "30s"
  concurrency = "3"         # ERROR: "concurrency" in a task is a number, and this is a string. Write 3 without quotes.
  enabled     = "true"      # ERROR: "enabled" in a task is a bool, and this is a string. Write true without quotes.
  idempotent  = 1           # ERROR: is a bool, and this is a number.
  overlap     = "quue"      # ERROR: "quue" is none of them. Did you mean "queue"?
  owner       = true        # ERROR: is a string, and this is a bool. Write "true".
  heartbeat   = "10ms"      # ERROR: "heartbeat" in a task is at least "1s", or "0s" for none.
  pool        = "a b"       # ERROR: "a b" is no name of a pool: a letter, then letters
  priority    = 101         # ERROR: "priority" in a task is a whole number from -100 to 100.
  description = ["x"]       # ERROR: is a string, and this is a list.
  labels      = { n = 1 }   # ERROR: The values of "labels" in a task are strings, and that of "n" is not.
  handler "shell" { command = "true" }
}

task "b" {
  timeout     = "-1s"       # ERROR: duration "-1s" is negative
  kill_after  = "1.5ms"     # ERROR: finer than a millisecond
  concurrency = 0           # ERROR: "concurrency" in a task is a whole number from 1 to 10000.
  overlap     = queue       # ERROR: There is no "queue" here. A text stands in quotes: "queue".
  labels      = "x"         # ERROR: is a map of strings, and this is a string.
  pool        = ""          # ERROR: "" is no name of a pool
  priority    = "high"      # ERROR: "priority" in a task is a number, and this is a string.
  handler "shell" { command = "true" }
}

task "c" {
  concurrency = 1.5                # ERROR: whole number
  overlap     = true               # ERROR: is a string
  labels      = { "a b" = "x" }    # ERROR: The label name "a b"
  retry {
    max          = -1              # ERROR: whole number from 0 to 1000
    initial      = "10m"           # ERROR: initial = "10m", is longer than the longest, max_interval = "5m"
    factor       = 0.5             # ERROR: number from 1 to 100
    jitter       = 2               # ERROR: number from 0 to 1
    max_interval = 5               # ERROR: "5s"
    within       = "0s"            # ERROR: at least "1ms"
    on           = ["permanent", "lots", "cancelled"] # ERROR: no retry can mend | Did you mean "lost"? | somebody cancelled
  }
  misfire {
    policy    = "newest"           # ERROR: one of "once", "all", "skip"
    grace     = "soon"             # ERROR: is no duration
    max       = 100000             # ERROR: whole number from 1 to 10000
    on_resume = 1                  # ERROR: is a string
  }
  handler "shell" { command = "true" }
}

task "d" {
  retry { on = "failed" } # ERROR: "on" in a retry block is a list of strings, and this is a string. Write ["failed"].
  retry { max = 1 }       # ERROR: A block "retry" stands already
  misfire {}
  misfire {}              # ERROR: A block "misfire" stands already
  handler "shell" { command = "true" }
  handler "shell" { command = "true" } # ERROR: A block "handler" stands already
}

task "e" {
  concurrency = 1e400 # ERROR: whole number
  timeout     = "9999999h" # ERROR: is no duration
  retry { factor = "2" }   # ERROR: Write 2 without quotes.
  handler "shell" { command = "true" }
}
