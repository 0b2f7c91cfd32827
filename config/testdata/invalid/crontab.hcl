# What is pasted from a crontab, and what only looks like it.
task "before" {
  handler "shell" { command = "true" }
}
# ERROR+1: A line of a crontab
30 2 * * mon-fri	backup 'all' > /tmp/${HOME}.log
# ERROR+1: handler "shell" { command = "echo \"hi\"" }
@daily   echo "hi"
# ERROR+1: Invalid character
@reboot start
