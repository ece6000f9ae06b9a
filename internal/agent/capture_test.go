package agent

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/capture/live"
	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/measure"
)

// fakeCapturer returns rings with a fixed file.
type fakeCapturer struct {
	possible, start, stop error
	file                  []byte

	mu    sync.Mutex
	confs []live.Config
	rings []*fakeRing
	order *[]string // order of calls, with the engine's openings
}

func (c *fakeCapturer) Possible() error { return c.possible }

func (c *fakeCapturer) Start(conf live.Config) (Ring, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.confs = append(c.confs, conf)
	if c.order != nil {
		*c.order = append(*c.order, "ring")
	}
	if c.start != nil {
		return nil, c.start
	}
	c.rings = append(c.rings, &fakeRing{of: c})
	return c.rings[len(c.rings)-1], nil
}

type fakeRing struct {
	of             *fakeCapturer
	stopped, ended int
	iface          string
	peer           netip.AddrPort
}

func (r *fakeRing) Stop(iface string, peer netip.AddrPort) (live.Recording, error) {
	r.stopped++
	r.iface, r.peer = iface, peer
	return live.Recording{Pcapng: r.of.file, Interface: iface, MTU: 1500, Packets: 7, Dropped: 2, Full: true, CPUNs: 9}, r.of.stop
}

func (r *fakeRing) Close() { r.ended++ }

// capturing returns a client of the own process, and an agent with fakes.
func capturing(t *testing.T, c *fakeCapturer) (*bus.Client, *fakeEngine) {
	t.Helper()
	f := &fakeEngine{}
	conf := Config{Name: "x", Version: "v", Engines: engine.Table{measure.Native: f}, Host: host.New(), Limits: DefaultLimits()}
	if c != nil {
		conf.Capture = c
	}
	a := New(conf)
	client, err := bus.InProcess(a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); a.Close() })
	if r, err := bus.Call(t.Context(), client, bus.Reserve, bus.ReserveRequest{}); err != nil || !r.Granted {
		t.Fatal(r, err)
	}
	return client, f
}

// capture returns a Prepare with a capture.
func capture(dials bool) bus.PrepareRequest {
	m := bus.PrepareRequest{Dials: dials, Spec: measure.Spec{Engine: measure.Native, Protocol: measure.TCP, Streams: 1, Duration: int64(time.Second), Capture: 5000}}
	if dials {
		m.Targets = []string{"127.0.0.1:5202", "[fe80::1%lo]:5203", "no.such.name.invalid:5204", "nonsense"}
	}
	return m
}

// fetch joins the parts of a capture, as a controller does.
func fetch(t *testing.T, c *bus.Client, session string) (bus.CaptureReply, []byte, error) {
	t.Helper()
	var file []byte
	for {
		r, err := bus.Call(t.Context(), c, bus.CapturePart, bus.CaptureRequest{Session: session, Offset: int64(len(file))})
		if err != nil {
			return r, nil, err
		}
		file = append(file, r.Pcapng...)
		if int64(len(file)) >= r.Size || len(r.Pcapng) == 0 {
			return r, file, nil
		}
	}
}

// noise returns bytes that gzip cannot compress, so that they come in several parts.
func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(b)
	return b
}

func TestCaptureOfASession(t *testing.T) {
	for _, dials := range []bool{true, false} {
		for _, size := range []int{0, 100, bus.CapturePartBytes - 100, 3*bus.CapturePartBytes + 17} {
			t.Run(fmt.Sprint(dials, size), func(t *testing.T) {
				c := &fakeCapturer{file: noise(size)}
				client, _ := capturing(t, c)
				r, err := bus.Call(t.Context(), client, bus.Prepare, capture(dials))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := bus.Call(t.Context(), client, bus.Start, bus.StartRequest{Session: r.Session}); err != nil {
					t.Fatal(err)
				}
				last, file, err := fetch(t, client, r.Session)
				if err != nil {
					t.Fatal(err)
				}
				if got := unpack(t, file); !bytes.Equal(got, c.file) {
					t.Errorf("%d bytes arrived of %d", len(got), size)
				}
				last.Pcapng, last.Size = nil, 0
				if want := (bus.CaptureReply{Interface: "lo", MTU: 1500, Packets: 7, Dropped: 2, Full: true, CPUNs: 9}); fmt.Sprint(last) != fmt.Sprint(want) {
					t.Errorf("reported %+v, want %+v", last, want)
				}
				if n := c.rings[0].stopped; n != 1 {
					t.Errorf("the ring was stopped %d times", n)
				}
				if peer := c.rings[0].peer; peer.IsValid() != dials || dials && peer.String() != "127.0.0.1:9" { // the fake engine's peer
					t.Errorf("of the targets, the packets of %v were taken", peer)
				}
				conf := c.confs[0]
				if dials {
					want := "[127.0.0.1:5202 [fe80::1]:5203]"
					if fmt.Sprint(conf.Peers) != want || conf.Ports != [2]int{} {
						t.Errorf("captured %+v, want the peers %s", conf, want)
					}
				} else if conf.Ports != [2]int{5202, 5202} || len(conf.Peers) > 0 { // the fake engine's port
					t.Errorf("captured %+v, want the port that listens", conf)
				}
				if conf.Packets != 5000 {
					t.Errorf("%d packets at most", conf.Packets)
				}
			})
		}
	}
}

func unpack(t *testing.T, file []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCaptureBeginsFirst: the dialling end starts the capture before it dials, so that
// the handshakes are in it.
func TestCaptureBeginsFirst(t *testing.T) {
	var order []string
	c, e := &fakeCapturer{order: &order}, &fakeEngine{}
	e.opening = func() { order = append(order, "engine") }
	a := New(Config{Engines: engine.Table{measure.Native: e}, Host: host.New(), Limits: DefaultLimits(), Capture: c})
	client, err := bus.InProcess(a)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer client.Close()
	if _, err := bus.Call(t.Context(), client, bus.Reserve, bus.ReserveRequest{}); err != nil {
		t.Fatal(err)
	}
	for _, dials := range []bool{true, false} {
		if _, err := bus.Call(t.Context(), client, bus.Prepare, capture(dials)); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"ring", "engine", "engine", "ring"}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
}

// TestCaptureLeavesNothing: a session's ring ends in every case.
func TestCaptureLeavesNothing(t *testing.T) {
	tests := map[string]func(c *bus.Client, f *fakeEngine){
		"released": func(c *bus.Client, f *fakeEngine) {
			r, _ := bus.Call(t.Context(), c, bus.Prepare, capture(true))
			bus.Call(t.Context(), c, bus.Release, bus.ReleaseRequest{Session: r.Session})
		},
		"gone": func(c *bus.Client, f *fakeEngine) {
			bus.Call(t.Context(), c, bus.Prepare, capture(false))
			c.Close()
		},
		"not opened": func(c *bus.Client, f *fakeEngine) {
			f.err = errors.New("no")
			bus.Call(t.Context(), c, bus.Prepare, capture(true))
		},
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			c := &fakeCapturer{}
			client, f := capturing(t, c)
			end(client, f)
			if len(c.rings) != 1 || c.rings[0].ended != 1 {
				t.Errorf("rings: %d, ended %v", len(c.rings), c.rings)
			}
		})
	}
}

// TestCaptureThatFails: a failed capture does not fail the measurement; only a request
// for the packets returns the error.
func TestCaptureThatFails(t *testing.T) {
	no := fault.Failf("run it as root", "live: not permitted")
	for name, c := range map[string]*fakeCapturer{"start": {start: no}, "stop": {stop: no}, "not built": nil} {
		t.Run(name, func(t *testing.T) {
			client, _ := capturing(t, c)
			for _, dials := range []bool{true, false} {
				r, err := bus.Call(t.Context(), client, bus.Prepare, capture(dials))
				if err != nil {
					t.Fatal("the measurement failed:", err)
				}
				if _, err := bus.Call(t.Context(), client, bus.Start, bus.StartRequest{Session: r.Session}); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if _, _, err := fetch(t, client, r.Session); err == nil || fault.Hint(err) == "" {
						t.Errorf("fetching it: %v, hint %q", err, fault.Hint(err))
					}
				}
			}
		})
	}
}

// TestCaptureWantsItsPrivilege: a client without the privilege cannot prepare a capture,
// and no client gets another's capture.
func TestCaptureWantsItsPrivilege(t *testing.T) {
	c := &fakeCapturer{}
	a := New(Config{Engines: engine.Table{measure.Native: &fakeEngine{}}, Host: host.New(), Limits: DefaultLimits(), Capture: c})
	defer a.Close()
	server, _, err := bus.Listen(t.Context(), bus.ServerConfig{Addrs: []string{"127.0.0.1:0"}, Allow: bus.Privileges()})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	service, err := bus.Serve(server, a)
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	for _, privilege := range []string{bus.PrivilegeMeasure, bus.PrivilegeCapture} {
		j := server.JoinFor(privilege, nil)
		client, err := bus.Dial(t.Context(), bus.DialConfig{Addrs: j.Control, Secret: j.Secret, Pin: j.Pin})
		if err != nil {
			t.Fatal(err)
		}
		hello, err := client.Hello(t.Context())
		may := privilege == bus.PrivilegeCapture
		if err != nil || slices.Contains(hello.Privileges, bus.PrivilegeCapture) != may {
			t.Errorf("%s: hello %v %v", privilege, hello.Privileges, err)
		}
		for granted := false; !granted; time.Sleep(time.Millisecond) { // the agent may not know yet that the client before is gone
			r, err := bus.Call(t.Context(), client, bus.Reserve, bus.ReserveRequest{})
			if granted = r.Granted; err != nil {
				t.Fatal(err)
			}
		}
		r, err := bus.Call(t.Context(), client, bus.Prepare, capture(true))
		if may != (err == nil) || !may && !strings.Contains(fault.Hint(err), "--allow capture") {
			t.Errorf("%s: preparing a capture: %v, hint %q", privilege, err, fault.Hint(err))
		}
		if _, err := a.CapturePart(t.Context(), "thief", bus.CaptureRequest{Session: r.Session}); err == nil {
			t.Error("another client's packets were given away")
		}
		client.Close()
	}
	if len(c.confs) != 1 {
		t.Errorf("%d captures were begun, want that of one client", len(c.confs))
	}
}

// TestOffsets outside of the file are errors, and no capture is one too.
func TestOffsets(t *testing.T) {
	client, _ := capturing(t, &fakeCapturer{file: noise(100)})
	r, err := bus.Call(t.Context(), client, bus.Prepare, capture(true))
	if err != nil {
		t.Fatal(err)
	}
	for _, offset := range []int64{-1, 1 << 40} {
		if _, err := bus.Call(t.Context(), client, bus.CapturePart, bus.CaptureRequest{Session: r.Session, Offset: offset}); err == nil {
			t.Errorf("offset %d was answered", offset)
		}
	}
	plain := capture(true)
	plain.Spec.Capture = 0
	if r, err = bus.Call(t.Context(), client, bus.Prepare, plain); err != nil {
		t.Fatal(err)
	}
	if _, err := bus.Call(t.Context(), client, bus.CapturePart, bus.CaptureRequest{Session: r.Session}); err == nil {
		t.Error("packets of a session that captures none")
	}
}

// TestHelloReportsCapture: Hello says that the host cannot capture.
func TestHelloReportsCapture(t *testing.T) {
	for _, tt := range []struct {
		c    *fakeCapturer
		want string
	}{{nil, "cannot capture"}, {&fakeCapturer{}, ""}, {&fakeCapturer{possible: errors.New("not as root")}, "not as root"}} {
		client, _ := capturing(t, tt.c)
		r, err := client.Hello(t.Context())
		if err != nil || (r.NoCapture == "") != (tt.want == "") || !strings.Contains(r.NoCapture, tt.want) {
			t.Errorf("%q %v, want %q", r.NoCapture, err, tt.want)
		}
	}
}
