# A sensitive value is refused wherever it would be stored (line for line), and
# stands in no diagnostic.
variable "password" {
  type      = string
  default   = "hunter2-hunter2"
  sensitive = true
}
variable "checked" { # ERROR: The default does not fit the type of variable "checked".
  type      = number
  default   = "other-secret"
  sensitive = true
}
variable "validated" {
  type      = string
  default   = "hunter3-hunter3"
  sensitive = true
  validation {
    condition     = length(var.validated) > 100 # ERROR: reads a sensitive value, so it is not shown
    error_message = "Too short: ${var.validated}."
  }
}
locals {
  derived = "x-${var.password}"
  list    = [var.password]
}
task "direct" {
  description = var.password # ERROR: var.password is sensitive
  owner       = "${var.password}!" # ERROR: Sensitive value would be stored
  labels      = { a = var.password } # ERROR: Sensitive value would be stored
  timeout     = var.password # ERROR: Sensitive value would be stored
  schedule { cron = var.password } # ERROR: Sensitive value would be stored
  retry { on = [var.password] } # ERROR: Sensitive value would be stored
  handler "shell" {
    command = ["mysql", "-p${var.password}"] # ERROR: let the command itself read the secret
    env = { # ERROR: local.derived is sensitive
      PW = local.derived
    }
  }
}
task "derived" {
  handler "http" {
    url  = upper(local.derived) # ERROR: local.derived is sensitive
    json = { (local.list[0]) = 1, nested = { deep = [local.list] } } # ERROR: Sensitive value would be stored
  }
}
task "heredoc" {
  handler "shell" {
    # ERROR+1: var.password is sensitive
    script = <<-EOT
      login ${var.password}
    EOT
  }
}
task "broken" {
  handler "shell" {
    command = lookup({ a = 1 }, var.password) # ERROR: reads a sensitive value, so what is wrong with it is not shown
    env     = { A = regex("x+", var.password) } # ERROR: reads a sensitive value, so what is wrong with it is not shown
  }
}
