# The key of for_each is who a task is; its order means nothing.
variable "tenants" {
  default = {
    eu = { host = "eu.example.org", every = "1m", cron = null }
    us = { host = "us.example.org", every = null, cron = "0 * * * *" }
  }
}

task "tenant" {
  for_each    = var.tenants
  description = "Tenant ${each.key}"
  schedule { # one of the two is null, which is as good as not said
    every = each.value.every
    cron  = each.value.cron
  }
  handler "http" { url = "http://${each.value.host}/" }
}

task "set" {
  for_each = toset(["b", "a/b", "say \"x\"", "$${x}", "ü", ""])
  handler "shell" { command = ["echo", each.key, each.value] }
}

task "none" {
  for_each = {}
  handler "shell" { command = "true" }
}

task "no_strings" {
  for_each = toset([])
  handler "shell" { command = "true" }
}

# The secret values of a map are fine as long as nothing stores them.
variable "tokens" {
  default   = { a = "token-of-a" }
  sensitive = true
}

task "keys" {
  for_each = { for k in ["a"] : k => sensitive("value-of-${k}") }
  handler "shell" { command = ["use-token", each.key] }
}
