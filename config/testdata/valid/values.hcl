# Variables, locals, functions and templates.
variable "name" {
  type        = string
  default     = "world"
  description = "Whom to greet."
  nullable    = false
  validation {
    condition     = length(var.name) > 0
    error_message = "Nobody is called ${var.name}."
  }
}

variable "untyped" {
  default = ["a", "b"]
}

variable "server" {
  type = object({
    host = string
    port = optional(number, 8080)
  })
  default = { host = "localhost" }
}

variable "limit" {
  type     = number
  default  = null
}

variable "secret" {
  default   = "not stored anywhere"
  sensitive = true
}

locals {
  url   = "http://${local.host}/"
  host  = join(":", [var.server.host, tostring(var.server.port)])
  names = { for n in var.untyped : n => upper(n) if n != "c" }
}

locals {
  greeting = "hello ${var.name}"
}

task "values" {
  description = local.greeting
  timeout     = try(var.limit, null) == null ? "1m" : "2m"
  handler "shell" {
    command = "echo '${local.greeting}' $HOME $${HOME} %%{if}"
    env = merge(local.names, {
      URL   = local.url
      (format("KEY_%s", "1")) = jsonencode({ b = 1, a = [true, null] })
      LINES = <<-EOT
        one
          two ${var.name}
        %{~ for n in var.untyped }
        - ${n}
        %{~ endfor }
      EOT
    })
  }
}
