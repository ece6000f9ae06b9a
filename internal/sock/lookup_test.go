package sock

import (
	"errors"
	"net"
	"strings"
	"testing"
)

// TestLookup: errors of looking up a name are one plain cause with a hint, and keep their value.
func TestLookup(t *testing.T) {
	for want, dns := range map[string]*net.DNSError{
		"unknown host":                       {Err: "no such host", Name: "nosuch", Server: "192.0.2.53:53", IsNotFound: true},
		"no answer from the DNS server":      {Err: "i/o timeout", Name: "nosuch", IsTimeout: true},
		"the DNS server does not resolve it": {Err: "server misbehaving", Name: "nosuch", IsTemporary: true},
	} {
		err := Lookup(&net.OpError{Op: "dial", Net: "tcp", Err: dns})
		if kept := (*net.DNSError)(nil); err.Error() != want || !errors.As(err, &kept) || kept != dns {
			t.Errorf("%v", err)
		}
		if hint := LookupHint(err, ""); !strings.HasSuffix(hint, "give its address") {
			t.Errorf("%v: %q", err, hint)
		}
	}
	other := errors.New("other")
	if Lookup(other) != other || Lookup(nil) != nil || LookupHint(other, "wait") != "wait" {
		t.Error("another error changed")
	}
}
