variable "missing" { # ERROR: The variable "missing" has no default. Give it a value: -var missing=…
  type = string
}
variable "nothing" { # ERROR: A variable has a type, as in type = string, or a default that shows it.
}
variable "wrong" {
  type    = number
  default = "x" # ERROR: The default does not fit the type of variable "wrong": a number is required.
}
variable "deep" {
  type    = map(list(number))
  default = { a = [1, "x"] } # ERROR: at ["a"][1] a number is required
}
variable "type" {
  type    = strin # ERROR: Invalid type
  default = "x"
}
variable "null" {
  type     = string
  default  = null # ERROR: The variable "null" is not nullable.
  nullable = false
}
variable "meta" {
  type        = string
  default     = "x"
  sensitive   = "true" # ERROR: Write true without quotes.
  description = 5      # ERROR: Write "5".
}
variable "validated" {
  default = 3
  validation {
    condition     = var.validated > 5 # ERROR: Invalid value for variable validated: It is 3, and must be above 5.
    error_message = "It is ${var.validated}, and must be above 5."
  }
  validation {
    condition     = var.other # ERROR: A validation refers to its own variable only: var.validated.
    error_message = "x"
  }
  validation { # ERROR: has a condition and an error_message
    condition = true
  }
  validation {
    condition     = "yes" # ERROR: is true or false, and this is a string
    error_message = "x"
  }
  validation {
    condition     = var.validated == 3
    error_message = "x"
  }
}
task "a" {
  description = var.missing
  owner       = var.wrong
  schedule { cron = var.missing }
  schedule { at = [var.missing] }
  handler "shell" { command = "true" }
}
