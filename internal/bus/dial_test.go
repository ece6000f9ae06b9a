package bus_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/bus/bustest"
	"thru/internal/fault"
)

// TestNotThru dials servers that are not thru.
func TestNotThru(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	state, err := tls.X509KeyPair(selfSigned(t))
	if err != nil {
		t.Fatal(err)
	}
	other := listener(t, func(c net.Conn) { // TLS without application protocols
		tls.Server(c, &tls.Config{Certificates: []tls.Certificate{state}}).Handshake()
		io.Copy(io.Discard, c)
		c.Close()
	})
	rude := listener(t, func(c net.Conn) { io.ReadFull(c, make([]byte, 37)); c.Write([]byte{9}); c.Close() }) // as iperf3 does
	closes := listener(t, func(c net.Conn) { c.Close() })
	mute := listener(t, func(c net.Conn) { io.Copy(io.Discard, c); c.Close() })
	closed := listener(t, nil)
	closedAddr := closed.Addr().String()
	closed.Close()
	tests := []struct {
		name, addr string
		family     int
		want       error
	}{
		{"http", plain.Listener.Addr().String(), 0, bus.ErrNotThru},
		{"https", secure.Listener.Addr().String(), 0, bus.ErrNotThru},
		{"tls", other.Addr().String(), 0, bus.ErrNotThru},
		{"iperf3", rude.Addr().String(), 0, bus.ErrNotThru},
		{"closes", closes.Addr().String(), 0, bus.ErrNotThru},
		{"mute", mute.Addr().String(), 0, bus.ErrTimeout},
		{"refused", closedAddr, 0, bus.ErrRefused},
		{"family", "127.0.0.1:5200", 6, bus.ErrFamily},
		{"family of a name", "[::1]:5200", 4, bus.ErrFamily},
	}
	for _, tt := range tests {
		pinned := false
		conf := bus.DialConfig{
			Addrs: []string{tt.addr}, Family: tt.family, Timeout: time.Second,
			Pin: func(string, [32]byte) error { pinned = true; return nil },
		}
		_, err := bus.Dial(t.Context(), conf)
		if !errors.Is(err, tt.want) || fault.Hint(err) == "" || pinned {
			t.Errorf("%s: %v, hint %q, trusted: %v", tt.name, err, fault.Hint(err), pinned)
		}
	}
}

// selfSigned returns a certificate and its key in PEM.
func selfSigned(t *testing.T) (cert, key []byte) {
	t.Helper()
	dir := t.TempDir()
	if _, err := bus.OpenState(filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "state", "agent.json"))
	var doc struct{ Certificate, Key string }
	if err != nil || json.Unmarshal(b, &doc) != nil {
		t.Fatal("no certificate in the state:", err)
	}
	return []byte(doc.Certificate), []byte(doc.Key)
}

// listener serves each connection with f; nil serves none.
func listener(t *testing.T, f func(net.Conn)) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if f == nil {
				c.Close()
				continue
			}
			wg.Go(func() { f(c) })
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l
}

// TestSecondAddress: a wrong answer at one address does not fail the connection.
func TestSecondAddress(t *testing.T) {
	s, _ := serve(t, bustest.New(), bus.ServerConfig{})
	impostor, _ := serve(t, bustest.New(), bus.ServerConfig{})
	mute := listener(t, func(c net.Conn) { io.Copy(io.Discard, c); c.Close() })
	refused := listener(t, nil)
	refused.Close()
	conf := config(s)
	right := conf.Addrs[0]
	conf.Addrs = []string{refused.Addr().String(), mute.Addr().String(), impostor.Join(nil).Control[0], right}
	c, err := bus.Dial(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.RemoteAddr() != right {
		t.Errorf("connected to %s, not %s", c.RemoteAddr(), right)
	}
	conf.Addrs = conf.Addrs[:3]
	conf.Timeout = 2 * time.Second
	if _, err := bus.Dial(t.Context(), conf); !errors.Is(err, bus.ErrCertificate) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("the most telling of several errors: %v", err)
	}
}

func TestUnknownHost(t *testing.T) {
	// The resolver itself rejects a name with an empty label: no query leaves this host.
	conf := bus.DialConfig{Addrs: []string{"no..name:5200"}, Timeout: 3 * time.Second, Pin: func(string, [32]byte) error { return nil }}
	if _, err := bus.Dial(t.Context(), conf); !errors.Is(err, bus.ErrUnknownHost) || fault.Hint(err) == "" {
		t.Error(err)
	}
}

func TestDialCancelled(t *testing.T) {
	mute := listener(t, func(c net.Conn) { io.Copy(io.Discard, c); c.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	conf := bus.DialConfig{Addrs: []string{mute.Addr().String()}, Timeout: patience, Pin: func(string, [32]byte) error { return nil }}
	if _, err := bus.Dial(ctx, conf); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestListen(t *testing.T) {
	taken := listener(t, nil)
	busy := taken.Addr().String()
	_, _, err := bus.Listen(t.Context(), bus.ServerConfig{Addrs: []string{busy}})
	if err == nil || !strings.Contains(fault.Hint(err), "--port") {
		t.Errorf("%v, hint %q", err, fault.Hint(err))
	}
	s, warnings, err := bus.Listen(t.Context(), bus.ServerConfig{Addrs: []string{busy, "127.0.0.1:0"}})
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], busy) {
		t.Fatal(err, warnings)
	}
	defer s.Close()
	if j := s.Join([]string{"10.0.0.1"}); len(j.Control) != 1 || j.Data[0] != "10.0.0.1" || j.Privilege != bus.PrivilegeMeasure {
		t.Errorf("%v", j)
	}
	if _, _, err := bus.Listen(t.Context(), bus.ServerConfig{Addrs: []string{"127.0.0.1:0"}, Device: "no-such-dev"}); err == nil {
		t.Error("a device that does not exist was bound")
	}
}

// TestWildcard: a join string lists addresses that can be dialled.
func TestWildcard(t *testing.T) {
	s, _ := serve(t, bustest.New(), bus.ServerConfig{Addrs: []string{":0"}})
	for _, a := range s.Join(nil).Control {
		host, _, err := net.SplitHostPort(a)
		if ip := net.ParseIP(host); err != nil || ip == nil || ip.IsUnspecified() {
			t.Errorf("%s in a join string", a)
		}
	}
	dial(t, s)
}
