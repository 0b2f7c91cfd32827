# Unknown names at every level get the nearest valid one; right names at the
# wrong level are told where they belong.
colour = "red" # ERROR: "colour" stands outside of any block

tsak "a" {} # ERROR: There is no block "tsak" in a configuration. Did you mean "task"?

schedule { # ERROR: There is no block "schedule" in a configuration. It belongs in a task.
  cron = "* * * * *"
}

ax {
  stak = "x" # ERROR: Did you mean "stack"?
}

defaults {
  timezon = "UTC" # ERROR: Did you mean "timezone"?
  enabled = false # ERROR: There is no attribute "enabled" in a defaults block. It belongs in a task.
  schedule {      # ERROR: There is no block "schedule" in a defaults block. It belongs in a task.
    cron = "* * * * *"
  }
}

variable "v" {
  defualt = 1 # ERROR: Did you mean "default"?
  type    = string
  default = "x"
  validaton { # ERROR: Did you mean "validation"?
  }
  validation {
    conditon      = true # ERROR: Did you mean "condition"?
    condition     = true
    error_message = "never"
  }
}

locals {
  nested { # ERROR: A locals block has lines NAME = VALUE only.
  }
}

task "a" {
  timout      = "1m"          # ERROR: There is no attribute "timout" in a task. Did you mean "timeout"?
  cron        = "* * * * *"   # ERROR: There is no attribute "cron" in a task. It belongs in a schedule block.
  max         = 3             # ERROR: It belongs in a retry block or a misfire block.
  timezone    = "UTC"         # ERROR: It belongs in a schedule block or a defaults block.
  retry       = { max = 3 }   # ERROR: "retry" in a task is a block: write retry { … } without the equals sign.
  entirely_different = true   # ERROR: There are: enabled, timeout,
  labels {                    # ERROR: "labels" in a task is an attribute: write labels = …
    team = "x"
  }
  misfire_polcy {             # ERROR: There is no block "misfire_polcy" in a task.
  }
  retrys {                    # ERROR: Did you mean "retry"?
  }
  schedule {
    crn     = "* * * * *"     # ERROR: Did you mean "cron"?
    cron    = "* * * * *"
    timeout = "1m"            # ERROR: It belongs in a task or a defaults block.
  }
  misfire {
    polcy = "all"             # ERROR: Did you mean "policy"?
    when {                    # ERROR: There is no block "when" in a misfire block.
    }
  }
  handler "shell" {
    comand  = "x"             # ERROR: There is no attribute "comand" in handler "shell". Did you mean "command"?
    command = "x"
    timeout = "1m"            # ERROR: There is no attribute "timeout" in handler "shell". It belongs in a task or a defaults block.
    env {                     # ERROR: "env" in handler "shell" is an attribute: write env = …
      A = "b"
    }
    case {                    # ERROR: There is no block "case" in handler "shell".
    }
  }
}
