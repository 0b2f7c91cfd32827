# Names in expressions.
variable "tenant" {
  default = "x"
}
locals {
  base  = "x"
  wrong = local.bsae # ERROR: There is no local "bsae". Did you mean "base"?
  each  = each.key   # ERROR: only in a task that has for_each
  whole = local      # ERROR: A reference to a local names it: local.NAME.
  user  = local.wrong
}
task "a" {
  description = var.tennant # ERROR: There is no variable "tennant". Did you mean "tenant"?
  owner       = var.nobody  # ERROR: Declare it with: variable "nobody" { }
  timeout     = vra.tenant  # ERROR: There is no "vra" here. Did you mean "var"?
  kill_after  = local.user
  handler "shell" {
    command = "echo ${HOME} ${each.value}" # ERROR: To hand ${HOME} on as it is, to a shell for instance, write $${HOME} or $HOME. | only in a task that has for_each
    env = {
      A = upcase("x")  # ERROR: There is no function "upcase".
      B = uper("x")    # ERROR: Did you mean "upper"?
      C = timestamp()  # ERROR: a plan must be the same twice
      D = uuid()       # ERROR: a plan must be the same twice
    }
  }
}
task "b" {
  for_each    = toset(["a"])
  description = each.kye # ERROR: each has key and value
  owner       = "${count.index}" # ERROR: There is no count
  handler "shell" { command = "true" }
}
task "c" {
  description = var["tenant"] # ERROR: names it: var.NAME
  owner       = var.tenant.name # ERROR: Unsupported attribute
  timeout     = "${1 + "x"}s"   # ERROR: Invalid operand
  handler "shell" { command = local.base.x[3] } # ERROR: Unsupported attribute
}
variable "constant" {
  type        = string
  default     = var.tenant     # ERROR: cannot refer to anything
  description = upper("x")     # ERROR: Functions may not be called here
}
