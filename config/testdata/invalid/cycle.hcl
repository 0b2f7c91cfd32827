locals {
  a = local.b # ERROR: local.a at testdata/invalid/cycle.hcl:2, local.b at testdata/invalid/cycle.hcl:3, local.c at testdata/invalid/cycle.hcl:4, local.a at
  b = "${local.c}-"
  c = [for x in [1] : local.a]
  d = local.d # ERROR: local.d at testdata/invalid/cycle.hcl:5, local.d at
  e = local.c
}
task "a" {
  description = local.e
  handler "shell" { command = "true" }
}
