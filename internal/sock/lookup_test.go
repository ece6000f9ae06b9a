package sock

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestLookup: errors of looking up a name are one plain cause with a hint, and keep their value.
func TestLookup(t *testing.T) {
	for want, dns := range map[string]*net.DNSError{
		"unknown host":                       {Err: "no such host", Name: "nosuch", Server: "192.0.2.53:53", IsNotFound: true},
		"no answer from the DNS server":      {Err: "i/o timeout", Name: "nosuch", IsTimeout: true},
		"the DNS server does not resolve it": {Err: "server misbehaving", Name: "nosuch", IsTemporary: true},
	} {
		err := Cause(&net.OpError{Op: "dial", Net: "tcp", Err: dns})
		if kept := (*net.DNSError)(nil); err.Error() != want || !errors.As(err, &kept) || kept != dns {
			t.Errorf("%v", err)
		}
		if hint := LookupHint(err, ""); !strings.HasSuffix(hint, "give its address") {
			t.Errorf("%v: %q", err, hint)
		}
	}
	other := errors.New("other")
	if Cause(other) != other || Cause(nil) != nil || LookupHint(other, "wait") != "wait" {
		t.Error("another error changed")
	}
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{Port: 5201}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	if got := Cause(refused); got != syscall.ECONNREFUSED {
		t.Errorf("%v", got)
	}
}
