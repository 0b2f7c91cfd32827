# Blocks of the configuration are every task's; a task's own block of a class
# takes the place of that of the configuration, and its codes are its own.
error_class "transient" {
  exit_codes  = [75, 7, 75]
  http_status = [500]
  match       = "(?i)connection (refused|reset)"
}

error_class "permanent" {
  exit_codes = [64, 2]
}

task "all" {
  handler "shell" { command = "true" }
}

task "own" {
  error_class "resource" {
    exit_codes = [137, 75]
    match      = "No space left"
  }
  error_class "permanent" { exit_codes = [3] }
  handler "shell" { command = "true" }
}

# for_each has its say in it too.
task "each" {
  for_each = { a = 64, b = 65 }
  error_class "resource" { exit_codes = [each.value, 2] }
  handler "shell" { command = "true" }
}
