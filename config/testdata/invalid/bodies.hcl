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
task "format" {
  handler "http" {
    url     = "foo"                           # ERROR: "url" in handler "http" is a URL with http:// or https:// and a host, as in "https://example.org/path", and this is "foo".
    headers = { "a b" = "c" }                 # ERROR: "a b" cannot be the name of one
  }
}
task "more_format" {
  handler "http" {
    url     = "ftp://example.org/"            # ERROR: and this is "ftp://example.org/"
    headers = { A = "b\r\nC: d" }             # ERROR: the value of "A" has a line break
  }
}
task "no_host" {
  handler "http" { url = "http:///path" }     # ERROR: and this is "http:///path"
}
task "no_url" {
  handler "http" { url = "https://a b/" }     # ERROR: and this is "https://a b/"
}
task "bounds" {
  handler "shell" {
    command  = "true"
    ok_codes = [
      0,
      256,                                    # ERROR: "ok_codes" in handler "shell" is an integer from 0 to 255, and this is 256.
      -1,                                     # ERROR: and this is -1
      1.5,                                    # ERROR: is an integer, and this is 1.5
    ]
    dir = "etc"                               # ERROR: "dir" in handler "shell" is an absolute path, which begins with /, and this is "etc".
  }
}
task "half_bounds" {
  handler "types" {
    atleast = -0.5                            # ERROR: is a number of at least 0, and this is -0.5
    atmost  = 255.5                           # ERROR: is a number of at most 255, and this is 255.5
    paths   = ["/a", "b"]                     # ERROR: and this is "b"
  }
}
task "no_lists_text" {
  handler "types" {
    paths = [for n in ["a"] : n]              # ERROR: and this is "a"
  }
}
