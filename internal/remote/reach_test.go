package remote

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"thru/internal/fault"
)

// TestReach: a server that accepts a connection and stays silent is given up, and costs a
// test only its counters.
func TestReach(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	known := httptest.NewTLSServer(nil)
	known.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: known.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	held := make(chan struct{})
	go func() {
		defer close(held)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			go c.(*tls.Conn).HandshakeContext(t.Context())
		}
	}()
	defer func() { l.Close(); <-held }()
	at := "vsphere://reader@" + l.Addr().(*net.TCPAddr).String()
	d := Dialer{Network: New(scribe{io.Discard}, ""), Password: noPassword, Insecure: true, ReachTime: 200 * time.Millisecond}
	_, err = d.Reach(t.Context(), at)
	if fault.Code(err) != fault.Failed || !strings.Contains(err.Error(), "no answer within") || fault.Hint(err) == "" {
		t.Errorf("%v (%s)", err, fault.Hint(err))
	}
	all, end, err := d.Hypervisors(t.Context(), []string{at, at, strings.Replace(at, "vsphere", "VSPHERE", 1) + "/sdk"})
	if err != nil || len(all) != 1 {
		t.Fatalf("%d sources, %v", len(all), err)
	}
	defer end()
	if _, err := all[0].Inventory(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "no answer within") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := d.Hypervisors(ctx, []string{at}); err == nil {
		t.Error("an interrupt is no end")
	}
}
