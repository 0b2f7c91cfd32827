# Bodies that the handler's schema refuses.
task "none" {
  handler "shell" {} # ERROR: Handler "shell" has one of: command, script.
}
task "both" {
  handler "shell" {
    command = "true"
    script  = "true" # ERROR: Handler "shell" has only one of: command, script.
  }
}
task "nothing" {
  handler "shell" { command = " " } # ERROR: "command" in handler "shell" is empty
}
task "nothing_in_a_list" {
  handler "shell" { command = [] } # ERROR: "command" in handler "shell" is empty
}
task "needs" {
  handler "shell" {
    command     = "true"
    interpreter = "perl" # ERROR: "interpreter" in handler "shell" needs "script" beside it.
  }
}
task "required" {
  handler "http" { # ERROR: Handler "http" needs "url": Where to.
    method = "PUSH" # ERROR: "method" in handler "http" is one of "GET", "POST"; "PUSH" is none of them.
  }
}
task "conflict" {
  handler "http" {
    url  = "http://x/"
    body = "x"
    json = null
  }
}
task "conflict_too" {
  handler "http" {
    url  = "http://x/"
    body = "x"
    json = {} # ERROR: Handler "http" has only one of: body, json.
  }
}
task "required_null" {
  handler "http" { # ERROR: needs "url"
    url = null
  }
}
task "strings" {
  handler "shell" {
    command = 5            # ERROR: is a string or a list of strings, and this is a number. Write "5".
    env     = { PORT = 80 } # ERROR: The values of "env" in handler "shell" are strings, and that of "PORT" is a number. Write "80".
  }
}
task "nul" {
  handler "shell" {
    command = ["echo", "a\u0000b"] # ERROR: NUL character
  }
}
task "types" {
  handler "types" {
    text    = true       # ERROR: Write "true".
    count   = "3"        # ERROR: "count" in handler "types" is a number, and this is a string. Write 3 without quotes.
    flag    = "false"    # ERROR: Write false without quotes.
    wait    = 30         # ERROR: as in "30s"
    names   = "a"        # ERROR: Write ["a"].
    codes   = [1, "2"]   # ERROR: is a list of numbers, and this is a list with a string in it.
    headers = ["a"]      # ERROR: is a map of strings, and this is a list
    tree    = 1e400      # ERROR: too large
  }
}
task "more_types" {
  handler "types" {
    wait    = "3 days"             # ERROR: "3 days" is no duration; write it like "30s", "1h30m" or, for a day, "24h"
    names   = ["a", null]          # ERROR: is a list of strings
    codes   = [null]               # ERROR: is a list of numbers
    headers = { a = null }         # ERROR: that of "a" is null
    count   = 1e30                 # ERROR: too large
    flag    = null
  }
}
