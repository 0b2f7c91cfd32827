# What `make demo` runs: three tasks that are due every few seconds, so that a
# quarter of a minute shows firing, retrying and calling by HTTP.

ax {
  stack = "demo"
}

variable "healthz_url" {
  type        = string
  default     = "http://127.0.0.1:7420/healthz"
  description = "Where axd itself answers; axd -demo sets it to its own port."
}

# Fires each 2 seconds, counted from 1970, so always at even seconds.
task "tick" {
  description = "Says what it is due for, and that it ran."
  schedule { every = "2s" }
  handler "shell" { command = "echo \"due $AX_DUE, attempt $AX_ATTEMPT\"" }
}

# Its first attempt always fails. An exit code other than 0 has the class
# failed, which is retried because a retry block is there.
task "flaky" {
  description = "Fails once, is retried a second later, and succeeds."
  schedule { every = "5s" }
  retry {
    max     = 2
    initial = "1s"
    jitter  = 0
  }
  handler "shell" {
    script = <<-EOT
      if [ "$AX_ATTEMPT" -lt 2 ]; then
        echo "attempt $AX_ATTEMPT: not this time" >&2
        exit 1
      fi
      echo "attempt $AX_ATTEMPT: done"
    EOT
  }
}

task "healthz" {
  description = "Asks axd whether it is well."
  timeout     = "2s"
  schedule { every = "3s" }
  handler "http" {
    url           = var.healthz_url
    expect_status = [200]
  }
}
