# Labels, names, duplicates, and what must be there.
ax {}
ax {} # ERROR: A block "ax" stands already
defaults {}
defaults {} # ERROR: A block "defaults" stands already

task {} # ERROR: Write task "NAME" { … }.
task "a" "b" {} # ERROR: Write task "NAME" { … }.
task "a b" {} # ERROR: "a b" is no name
task "1st" {} # ERROR: "1st" is no name
task "" {} # ERROR: "" is no name
locals "x" {} # ERROR: Write locals { … }.
variable {} # ERROR: Write variable "NAME" { … }.
variable "x y" {} # ERROR: is no name

task "twice" {
  handler "shell" { command = "true" }
}
task "twice" { # ERROR: A task named "twice" is defined already, at testdata/invalid/blocks.hcl:16.
  handler "shell" { command = "true" }
}

variable "v" {
  default = 1
}
variable "v" { # ERROR: A variable "v" is declared already, at testdata/invalid/blocks.hcl:23.
  default = 2
}

locals {
  l = 1
}
locals {
  l = 2 # ERROR: A local "l" is declared already, at testdata/invalid/blocks.hcl:31.
}

task "no_handler" { # ERROR: A task has a handler block that says what runs
}
task "handler_label" {
  handler { # ERROR: Write handler "NAME" { … }.
    command = "true"
  }
}
task "handler_name" {
  handler "shel" { # ERROR: There is no handler "shel". Did you mean "shell"?
    command = "true"
  }
}
task "handler_far" {
  handler "kubernetes" {} # WARNING: Nothing here knows handler "kubernetes" (known are: "shell", "http", "types")
}
task "labels_on_blocks" {
  schedule "x" { # ERROR: Write schedule { … }.
    cron = "* * * * *"
  }
  retry "x" {}   # ERROR: Write retry { … }.
  misfire "x" {} # ERROR: Write misfire { … }.
  handler "shell" { command = "true" }
}
