# Plugins: what is not written has its effective value.
plugin "report" {}
plugin "pinned" {
  path    = "v2/./ax-handler-pinned"
  sha256  = "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"
  version = "1.4.0"
  env     = ["REPORT_TOKEN", "LANG", "LANG"]
}
