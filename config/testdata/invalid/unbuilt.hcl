# What the language is designed to have and this version does not.
ax {
  required_version = ">= 1.0" # ERROR: "required_version" in an ax block is designed, but not built in this version.
}
defaults {
  runs_on      = []    # ERROR: not built in this version
}
dependency "d" { # ERROR: "dependency" in a configuration is designed, but not built in this version.
  paths = [[task.a]]
}
calendar "c" {}     # ERROR: not built in this version
channel "c" {}      # ERROR: not built in this version
output "o" {}       # ERROR: not built in this version
moved {}            # ERROR: not built in this version
removed {}          # ERROR: not built in this version
import {}           # ERROR: not built in this version
alert "a" {}        # ERROR: not built in this version
silence "s" {}      # ERROR: not built in this version
policy "p" {}       # ERROR: not built in this version

task "a" {
  runs_on         = ["gpu"] # ERROR: not built in this version
  prevent_destroy = true    # ERROR: not built in this version
  on {                      # ERROR: not built in this version
    event = "x"
  }
  params { # ERROR: not built in this version
  }
  shard { # ERROR: not built in this version
    count = 3
  }
  schedule {
    cron        = "* * * * *"
    cron6       = "x"   # ERROR: "cron6" in a schedule block is designed, but not built in this version.
    quartz      = "x"   # ERROR: not built in this version
    gap         = "x"   # ERROR: not built in this version
    fold        = "x"   # ERROR: not built in this version
    calendar    = "x"   # ERROR: not built in this version
    on_excluded = "x"   # ERROR: not built in this version
    spread      = "5m"  # ERROR: not built in this version
    jitter      = "5m"  # ERROR: not built in this version
    until       = "x"   # ERROR: not built in this version
  }
  handler "shell" {
    command = "import ${instance.date} ${instance.month} ${params.x}" # ERROR: write $AX_DATE | $AX_DUE, $AX_DATE | params.x is known only when the task runs
    env     = { PG = secret("env:PG"), N = shard.index }              # ERROR: secret() is designed, but not built | shard.index is known only
    script  = output.other.key                                        # ERROR: output.other is known only | only one of: command, script
  }
}

task "b" {
  description = task.a                # ERROR: References to a task are designed, but not built in this version.
  owner       = "${instance.attempt}" # ERROR: $AX_ATTEMPT
  handler "shell" { command = "true" }
}
