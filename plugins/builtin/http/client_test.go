package http

import (
	"net/netip"
	"testing"
)

func TestForbiddenAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"169.254.169.254":         true,
		"169.254.0.1":             true,
		"::ffff:169.254.169.254":  true,
		"64:ff9b::a9fe:a9fe":      true,
		"fe80::1":                 true,
		"fe80::1%eth0":            true,
		"febf::1":                 true,
		"224.0.0.1":               true,
		"fd00:ec2::254":           true,
		"100.100.100.200":         true,
		"127.0.0.1":               false,
		"::1":                     false,
		"10.0.0.1":                false,
		"169.253.255.255":         false,
		"fec0::1":                 false,
		"64:ff9b::a00:1":          false,
		"2001:db8::a9fe:a9fe":     false,
		"::ffff:93.184.216.34":    false,
		"fd00:ec2::253":           false,
		"fd12:3456:789a::1":       false,
		"100.100.100.201":         false,
		"2606:2800:220:1::248":    false,
		"255.255.255.255":         false,
		"64:ff9b:1::a9fe:a9fe":    false,
		"2002:a9fe:a9fe::":        false,
		"::a9fe:a9fe":             false,
		"0:0:0:0:0:ffff:a9fe:1":   true,
		"fe80:0:0:0:0:5efe:a00:1": true,
	} {
		if got := forbidden(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
}
