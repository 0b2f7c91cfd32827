variable "secret" {
  type      = map(string)
  default   = { a = "hidden-value" }
  sensitive = true
}
variable "none" {
  type    = map(string)
  default = null
}
task "list" {
  for_each = ["a", "b"] # ERROR: for_each takes a set of strings or a map, and this is a list. Write toset(…) around it.
  handler "shell" { command = "true" }
}
task "list_twice" {
  for_each = ["a", "b", "a"] # ERROR: "a" stands in it twice
  handler "shell" { command = "true" }
}
task "set_twice" {
  for_each = toset(["a", "b", "a"]) # ERROR: The key "a" stands in for_each twice.
  handler "shell" { command = "true" }
}
task "null" {
  for_each = var.none # ERROR: for_each is null
  handler "shell" { command = "true" }
}
task "null_key" {
  for_each = toset(["a", null]) # ERROR: The set has a null in it
  handler "shell" { command = "true" }
}
task "numbers" {
  for_each = toset([1, 2]) # ERROR: this is a set of number
  handler "shell" { command = "true" }
}
task "text" {
  for_each = "abc" # ERROR: this is a string
  handler "shell" { command = "true" }
}
task "sensitive" {
  for_each = var.secret # ERROR: var.secret is sensitive, and keys of for_each become names
  handler "shell" { command = "true" }
}
task "sensitive_key" {
  for_each = toset([sensitive("hidden")]) # ERROR: keys of for_each become names
  handler "shell" { command = "true" }
}
task "long" {
  for_each = toset([join("", [for i in range(201) : "x"])]) # ERROR: more than 200 characters
  handler "shell" { command = "true" }
}
task "unknown" {
  for_each = toset([var.later]) # ERROR: There is no variable "later"
  handler "shell" { command = "true" }
}
task "once" {
  for_each = toset(["a", "b", "c"])
  timeout  = each.key # ERROR: "a" is no duration
  handler "shell" { command = "true" }
}
