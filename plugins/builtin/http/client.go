package http

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/axctl/ax/plugins/sdk"
)

// newClient returns a client whose every connection is checked by control.
// It uses no proxy: nothing of the daemon's environment reaches a task.
func newClient(control func(network, address string, c syscall.RawConn) error) *http.Client {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, Control: control}
	return &http.Client{Transport: &http.Transport{
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   10 * time.Second,
		MaxIdleConns:          100,
		MaxIdleConnsPerHost:   4,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
	}}
}

// metadata are addresses of clouds' metadata services that are not link-local.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("192.0.0.192"),
}

// nat64 is the prefix under which IPv4 addresses hide in IPv6 ones.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// refuseLinkLocal is called with the address that a connection is about to be
// made to, after names were resolved.
func refuseLinkLocal(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	if forbidden(ap.Addr()) {
		return sdk.Permanent(fmt.Errorf("address %s is link-local or a metadata service; allow_link_local = true allows it", ap.Addr()))
	}
	return nil
}

func forbidden(a netip.Addr) bool {
	a = a.WithZone("").Unmap()
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	if a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() {
		return true
	}
	for _, m := range metadata {
		if a == m {
			return true
		}
	}
	return false
}
