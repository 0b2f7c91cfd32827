# A real host's crontab, as ax has it. The host serves an application from
# app_dir. Try it:
#
#   axctl validate crontab.hcl
#   axctl plan crontab.hcl

ax {
  # All that this file defines belongs to one stack. What is deleted here, the
  # next apply deletes from the stack; other stacks are not touched.
  stack = "crontab"
}

variable "app_dir" {
  type        = string
  default     = "/srv/app"
  description = "Folder of the application: app.db, logs/, backups/."
}

variable "app_url" {
  type        = string
  default     = "http://127.0.0.1:8080"
  description = "Where the application answers."
}

variable "certificate" {
  type        = string
  default     = "/etc/ssl/certs/app.pem"
  description = "Certificate that the web server shows."
}

variable "tenants" {
  type        = map(number)
  default     = { acme = 50, globex = 200 }
  description = "Tenants, and how many pages of each are kept warm."

  validation {
    condition     = alltrue([for pages in var.tenants : pages > 0])
    error_message = "Each tenant has at least one page."
  }
}

locals {
  backups = "${var.app_dir}/backups"
}

# What holds for every task below, unless it says otherwise.
defaults {
  timezone = "Europe/Berlin" # never the machine's own
  owner    = "ops@example.org"
  timeout  = "10m"
  labels   = { host = "app1" }
}

# crontab: 10 0 * * * find /srv/app/logs -name '*.log' …
task "rotate_logs" {
  description = "Compresses logs of 10 MiB and more, drops those older than 30 days."
  schedule { cron = "10 0 * * *" }

  handler "shell" {
    # Values go to a script through its environment, never into its text: no
    # quoting can go wrong, and $VAR is the shell's own.
    env    = { LOGS = "${var.app_dir}/logs" }
    script = <<-EOT
      set -eu
      stamp=$(date -u +%Y%m%dT%H%M%SZ)
      find "$LOGS" -name '*.log' -type f -size +10M | while read -r log; do
        cp -p "$log" "$log.$stamp"
        : > "$log" # the application keeps its file open
        gzip "$log.$stamp"
        echo "rotated $log"
      done
      find "$LOGS" -name '*.log.*.gz' -type f -mtime +30 -print -delete
    EOT
  }
}

# crontab: 30 2 * * * sqlite3 /srv/app/app.db ".backup …"
task "backup" {
  description = "A consistent copy of the live database, checked, 14 of them kept."
  schedule { cron = "30 2 * * *" } # 02:30 even on the day that has none: then at 03:00

  timeout = "30m"

  # Without a retry block only what was nobody's fault is tried again. With
  # one, a failed command is, too.
  retry {
    max     = 2
    initial = "5m"
  }

  # After an outage over 02:30 one backup is made, however many were missed.
  # That is the default; "skip" waits for tomorrow, "all" makes up for each.
  misfire {
    policy = "once"
  }

  handler "shell" {
    env = {
      DB      = "${var.app_dir}/app.db"
      BACKUPS = local.backups
    }
    script = <<-EOT
      set -eu
      test -f "$DB"
      mkdir -p "$BACKUPS"
      # Named by the day it is due for: a retry replaces its own half.
      copy="$BACKUPS/app-$AX_DATE.db"
      sqlite3 "$DB" ".timeout 10000" ".backup '$copy.part'"
      test "$(sqlite3 "$copy.part" 'PRAGMA integrity_check')" = ok
      mv "$copy.part" "$copy"
      ls -1 "$BACKUPS"/app-*.db | head -n -14 | xargs -r rm -v --
    EOT
  }
}

# crontab: 0 9 * * mon-fri openssl x509 -checkend …
task "certificate" {
  description = "Fails when the certificate ends within 14 days, in working hours."
  schedule { cron = "0 9 * * mon-fri" }

  handler "shell" {
    # A list runs without a shell: each item is one argument as it is.
    command = ["openssl", "x509", "-noout", "-checkend", "1209600", "-in", var.certificate]
  }
}

# crontab: one line for each tenant
task "refresh_cache" {
  description = "Warms the pages of ${each.key}."
  for_each    = var.tenants # task.refresh_cache["acme"], task.refresh_cache["globex"]
  labels      = { host = "app1", tenant = each.key }

  schedule { cron = "*/15 7-19 * * *" }
  schedule { cron = "0 0-6,20-23 * * *" } # both: every 15 minutes by day, hourly by night

  # When one refresh is still at work the next has nothing to add.
  overlap = "skip"
  misfire { policy = "skip" }

  handler "http" {
    method = "POST"
    url    = "${var.app_url}/cache/refresh"
    json   = { tenant = each.key, pages = each.value }
  }
}

# crontab: * * * * * curl -fsS http://127.0.0.1:8080/health
task "health" {
  description = "The application answers, and says ok."
  timeout     = "5s"
  schedule { every = "30s" }
  misfire { policy = "skip" }

  retry {
    max     = 2
    initial = "2s"
    within  = "20s" # before the next check
  }

  handler "http" {
    url           = "${var.app_url}/health"
    expect_status = [200]
    expect_body   = "ok"
  }
}
