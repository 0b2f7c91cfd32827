# What a body is as JSON.
task "types" {
  handler "types" {
    text    = "a\tb <&> ü"
    count   = 1.50
    flag    = true
    wait    = "90s"
    names   = ["b", "a"]
    codes   = [0, 1.5, -3, 9007199254740993]
    headers = { b = "2", a = "1" }
    tree = {
      z = [1, "x", null, { k = true }]
      a = 1e3
    }
  }
}

task "sets" {
  handler "types" {
    names = toset(["b", "a"])
    tree  = "just a string"
  }
}

task "defaults" {
  handler "http" { url = "http://x/" }
}

# At the bounds, and of a format that this release does not know.
task "formats" {
  handler "types" {
    atleast = 0
    atmost  = 255
    paths   = ["/"]
    later   = "anything"
  }
}

task "headers" {
  handler "http" {
    url     = "HTTPS://user@[::1]:80/?a=b c"
    headers = { "X-Any_1" = "tab\tand ü", Empty = "" }
  }
}

task "empty" {
  handler "types" {}
}
