package control

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/capture/frame"
	"thru/internal/capture/pcapfile"
	"thru/internal/cause/diagnose"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
)

// The connection that the fakes have captured.
var (
	near = netip.MustParseAddrPort("10.0.0.1:40000")
	far  = netip.MustParseAddrPort("10.0.0.2:5202")
)

// segment is an Ethernet frame with IPv4 and TCP.
func segment(from, to netip.AddrPort, seq, ack uint32, flags byte, payload int) []byte {
	b := make([]byte, 14+20+20, 14+20+20+payload)
	b[12], b[13] = 0x08, 0x00
	ip, tcp := b[14:34], b[34:54]
	ip[0], ip[8], ip[9] = 0x45, 64, 6
	binary.BigEndian.PutUint16(ip[2:], uint16(40+payload))
	copy(ip[12:], from.Addr().AsSlice())
	copy(ip[16:], to.Addr().AsSlice())
	binary.BigEndian.PutUint16(tcp, from.Port())
	binary.BigEndian.PutUint16(tcp[2:], to.Port())
	binary.BigEndian.PutUint32(tcp[4:], seq)
	binary.BigEndian.PutUint32(tcp[8:], ack)
	tcp[12], tcp[13] = 5<<4, flags
	binary.BigEndian.PutUint16(tcp[14:], 60000)
	return append(b, make([]byte, payload)...)
}

// recorded returns a capture of one connection as an agent sends it, some microseconds
// later at the far end. The last segment is lost.
func recorded(t *testing.T, at time.Duration, arrives bool) []byte {
	t.Helper()
	const syn, ack = 0x02, 0x10
	frames := [][]byte{
		segment(near, far, 100, 0, syn, 0), segment(far, near, 500, 101, syn|ack, 0), segment(near, far, 101, 501, ack, 0),
		segment(near, far, 101, 501, ack, 1000), segment(near, far, 1101, 501, ack, 1000), segment(far, near, 501, 2101, ack, 0),
		segment(near, far, 2101, 501, ack, 1000),
	}
	if arrives {
		frames = frames[:len(frames)-1]
	}
	var file, packed bytes.Buffer
	about := []pcapfile.Interface{{Name: "eth0", Link: frame.Ethernet}}
	w, err := pcapfile.NewWriter(&file, about)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range frames {
		now := int64(1_700_000_000e9) + int64(i)*1e6 + int64(at)
		if bytes.Equal(f[26:30], far.Addr().AsSlice()) { // the segment leaves this end first
			now = int64(1_700_000_000e9) + int64(i)*1e6 + 2e5 - int64(at)
		}
		if err := w.Write(pcapfile.Record{TimeNs: now, WireBytes: len(f), Data: f}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(about); err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(&packed)
	z.Write(file.Bytes())
	z.Close()
	return packed.Bytes()
}

// hands returns a handler that sends a capture in parts of some bytes.
func hands(packed []byte, part int) func(bus.CaptureRequest) (bus.CaptureReply, error) {
	return func(m bus.CaptureRequest) (bus.CaptureReply, error) {
		end := min(m.Offset+int64(part), int64(len(packed)))
		return bus.CaptureReply{
			Pcapng: packed[m.Offset:end], Size: int64(len(packed)), Interface: "eth0", MTU: 1500, Packets: 7, Dropped: 3, Full: true, CPUNs: 1e6,
		}, nil
	}
}

// capturing returns a pair of agents that can capture.
func capturing(t *testing.T) (*Runner, *fakeAgent, *fakeAgent) {
	t.Helper()
	local, peer := newAgent(Local), newAgent("peer")
	local.packets, peer.packets = hands(recorded(t, 0, false), 50), hands(recorded(t, 100*time.Microsecond, true), 1<<20)
	for agent, ends := range map[*fakeAgent][2]netip.AddrPort{local: {near, far}, peer: {far, near}} {
		agent.evidence = func(r *bus.CollectReply) {
			r.Evidence.Streams = []measure.Stream{{Local: ends[0].String(), Peer: ends[1].String()}}
		}
	}
	r := &Runner{Ends: pairOf(local, peer), Watch: &quiet{}}
	for _, e := range r.Ends {
		e.Hello.NoCapture = ""
	}
	return r, local, peer
}

// captured returns the plan of one direction with a capture.
func captured(t *testing.T, change func(*plan.Request)) plan.Plan {
	t.Helper()
	r := request()
	r.OneWay, r.Capture = true, 5000
	if change != nil {
		change(&r)
	}
	p, err := plan.Test(r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCaptures(t *testing.T) {
	r, local, peer := capturing(t)
	doc, err := r.Run(t.Context(), captured(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	x := doc.Cells[0].Runs[0].Flows[0]
	if len(x.Captures) != 2 || x.Crossing == nil || len(x.Missing) > 0 {
		t.Fatalf("%d captures, crossing %v, missing %v", len(x.Captures), x.Crossing, x.Missing)
	}
	for i, want := range []struct{ end, place string }{{Local, measure.AtSender}, {"peer", measure.AtReceiver}} {
		c := x.Captures[i]
		if c.EndPoint != want.end || c.Place != want.place || c.PlacedBy == "" || c.Interface != "eth0" || c.MTU != 1500 || !c.Full || *c.Dropped != 3 || *c.CPUNs != 1e6 {
			t.Errorf("capture %d: %+v", i, c)
		}
		if len(c.Conns) != 1 || c.Conns[0].From != near.String() || c.Conns[0].To != far.String() {
			t.Errorf("connections of capture %d: %+v", i, c.Conns)
		}
	}
	if c := x.Crossing; c.Left != 0 || c.Right != 1 || len(c.Conns) != 1 {
		t.Errorf("crossing %+v", c)
	}
	for _, a := range []*fakeAgent{local, peer} {
		if !slices.Equal(a.captures, []int64{5000}) {
			t.Errorf("%s was to capture %v", a.name, a.captures)
		}
		calls := a.asked()
		if got := slices.IndexFunc(calls, func(s string) bool { return strings.HasPrefix(s, "captured") }); got < 0 || slices.Index(calls, "release") < got {
			t.Errorf("%s: %q: the packets go with the session", a.name, calls)
		}
	}
	if w := strings.Join(doc.Cells[0].Warnings, "\n"); !strings.Contains(w, "a capture ran: 7 packets at local") && !strings.Contains(w, "a capture ran: ") {
		t.Errorf("nothing says that the figures are with a capture: %q", w)
	}
	for _, e := range doc.EndPoints {
		if !e.Captures || e.NoCapture != "" {
			t.Errorf("%s: %+v", e.Name, e)
		}
	}
}

// TestCaptureFails: a failed capture is reported, and affects no figure.
func TestCaptureFails(t *testing.T) {
	good := func(t *testing.T) []byte { return recorded(t, 0, true) }
	for name, reply := range map[string]func(t *testing.T) func(bus.CaptureRequest) (bus.CaptureReply, error){
		"refused": func(*testing.T) func(bus.CaptureRequest) (bus.CaptureReply, error) {
			return func(bus.CaptureRequest) (bus.CaptureReply, error) {
				return bus.CaptureReply{}, fault.Failf("do this", "no ring")
			}
		},
		"no gzip": func(*testing.T) func(bus.CaptureRequest) (bus.CaptureReply, error) { return hands([]byte("plain"), 9) },
		"cut off": func(t *testing.T) func(bus.CaptureRequest) (bus.CaptureReply, error) {
			b := good(t)
			return hands(b[:len(b)/2], 1000)
		},
		"no packets": func(*testing.T) func(bus.CaptureRequest) (bus.CaptureReply, error) {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			z.Write([]byte("Lorem ipsum"))
			z.Close()
			return hands(b.Bytes(), 1000)
		},
		"never ends": func(*testing.T) func(bus.CaptureRequest) (bus.CaptureReply, error) {
			return func(bus.CaptureRequest) (bus.CaptureReply, error) {
				return bus.CaptureReply{Pcapng: []byte("more"), Size: 6}, nil
			}
		},
		"nothing comes": func(*testing.T) func(bus.CaptureRequest) (bus.CaptureReply, error) {
			return func(bus.CaptureRequest) (bus.CaptureReply, error) { return bus.CaptureReply{Size: 6}, nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, peer := capturing(t)
			peer.packets = reply(t)
			doc, err := r.Run(t.Context(), captured(t, nil))
			if err != nil || doc.Cells[0].Goodput == nil {
				t.Fatalf("the measurement failed: %v", err)
			}
			x := doc.Cells[0].Runs[0].Flows[0]
			if len(x.Captures) != 1 || x.Captures[0].EndPoint != Local || x.Crossing != nil {
				t.Errorf("captures %+v, crossing %v", x.Captures, x.Crossing)
			}
			if m := doc.Cells[0].Missing; !slices.ContainsFunc(m, func(m measure.NotChecked) bool { return m.Fact == "captures at peer" && m.Why != "" }) {
				t.Errorf("nothing says why: %+v", m)
			}
		})
	}
}

// TestCaptureNotAllowed: a forbidden capture is an error with a hint before anything runs.
func TestCaptureNotAllowed(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*bus.HelloReply)
		says   string
	}{
		"privilege": {func(h *bus.HelloReply) { h.Privileges = h.Privileges[:1] }, "--allow capture"},
		"root":      {func(h *bus.HelloReply) { h.NoCapture = "needs root" }, "needs root"},
	} {
		t.Run(name, func(t *testing.T) {
			r, local, peer := capturing(t)
			tt.change(&r.Ends["peer"].Hello)
			_, err := r.Run(t.Context(), captured(t, nil))
			if err == nil || !strings.Contains(fault.Text(err), tt.says) || !strings.Contains(err.Error(), "peer") {
				t.Errorf("%v, hint %q", err, fault.Hint(err))
			}
			if len(local.captures)+len(peer.captures) > 0 {
				t.Error("it was measured all the same")
			}
		})
	}
}

// TestCaptureOfOneEnd: a foreign end captures nothing, and with both ends on one
// machine one capture is enough.
func TestCaptureOfOneEnd(t *testing.T) {
	t.Run("foreign", func(t *testing.T) {
		r, local, _ := capturing(t)
		r.Ends["peer"] = &EndPoint{Name: "peer", Foreign: true, Port: 5201, DataHosts: []string{"10.0.0.2"}}
		p := captured(t, func(r *plan.Request) { r.Engine = measure.IPerf3 })
		doc, err := r.Run(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		x := doc.Cells[0].Runs[0].Flows[0]
		if len(x.Captures) != 1 || !slices.Equal(local.captures, []int64{5000}) || len(x.Missing) != 1 || !strings.Contains(x.Missing[0].Why, "no thru runs at peer") {
			t.Errorf("%d captures, missing %+v", len(x.Captures), x.Missing)
		}
	})
	t.Run("one machine", func(t *testing.T) {
		r, local, _ := capturing(t)
		delete(r.Ends, "peer")
		doc, err := r.Run(t.Context(), captured(t, func(r *plan.Request) { r.Peer = Local }))
		if err != nil {
			t.Fatal(err)
		}
		x := doc.Cells[0].Runs[0].Flows[0]
		if len(x.Captures) != 1 || !slices.Equal(local.captures, []int64{0, 5000}) || len(x.Missing) > 0 {
			t.Errorf("%d captures of %v, missing %+v", len(x.Captures), local.captures, x.Missing)
		}
	})
}

// TestCaptureKept: the document names the files, and of several runs only the captures
// of the shown one are kept.
func TestCaptureKept(t *testing.T) {
	r, _, _ := capturing(t)
	var kept []string
	r.Keep = func(p Packets) (string, error) {
		kept = append(kept, fmt.Sprint(p.From, " ", p.To, " ", p.EndPoint))
		if p.EndPoint == "peer" {
			return "", errors.New("the disk is full")
		}
		return p.EndPoint + ".pcapng", nil
	}
	doc, err := r.Run(t.Context(), captured(t, func(r *plan.Request) { r.Repeat = 3 }))
	if err != nil {
		t.Fatal(err)
	}
	with := 0
	for i := range doc.Cells[0].Runs {
		run := &doc.Cells[0].Runs[i]
		if len(run.Flows[0].Captures) == 0 {
			continue
		}
		with++
		if run != diagnose.Shown(&doc.Cells[0]) || run.Flows[0].Captures[0].File != "local.pcapng" {
			t.Errorf("run %d: %+v", i, run.Flows[0].Captures)
		}
	}
	if with != 1 || len(kept) != 6 || kept[0] != "local peer local" {
		t.Errorf("%d runs with captures, kept %q", with, kept)
	}
	if m := doc.Cells[0].Missing; !slices.ContainsFunc(m, func(m measure.NotChecked) bool { return strings.Contains(m.Why, "disk is full") }) {
		t.Errorf("a file that was not written: %+v", m)
	}
}

// TestCaptureInterrupted: an interrupt keeps the results.
func TestCaptureInterrupted(t *testing.T) {
	r, local, _ := capturing(t)
	ctx, cancel := context.WithCancel(t.Context())
	local.packets = func(bus.CaptureRequest) (bus.CaptureReply, error) {
		cancel()
		return bus.CaptureReply{}, context.Cause(ctx)
	}
	doc, err := r.Run(ctx, captured(t, nil))
	if err == nil || doc.Cells[0].Goodput == nil {
		t.Errorf("%v, %v", err, doc.Cells[0].Goodput)
	}
}

// TestCaptureOfInterrupted: the packets of an interrupted test are fetched and kept,
// from both ends.
func TestCaptureOfInterrupted(t *testing.T) {
	r, local, peer := capturing(t)
	ctx, cancel := context.WithCancel(t.Context())
	local.silent, peer.silent = true, true
	time.AfterFunc(50*time.Millisecond, cancel)
	var kept []string
	r.Keep = func(p Packets) (string, error) {
		kept = append(kept, p.EndPoint)
		return p.EndPoint + ".pcapng", nil
	}
	doc, err := r.Run(ctx, captured(t, nil))
	if !errors.Is(err, fault.ErrInterrupted) || !slices.Equal(kept, []string{Local, "peer"}) {
		t.Fatalf("kept %q, %v", kept, err)
	}
	if x := doc.Cells[0].Runs[0].Flows[0]; len(x.Captures) != 2 || x.Crossing == nil {
		t.Errorf("%d captures, crossing %v, missing %v", len(x.Captures), x.Crossing, x.Missing)
	}
}

// TestCaptureOfExperiments: an explanation keeps the packets of each run separately.
// These files hold no packets: they decide nothing, and every experiment is made.
func TestCaptureOfExperiments(t *testing.T) {
	r, local, peer := capturing(t)
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte("Lorem ipsum"))
	z.Close()
	for _, a := range []*fakeAgent{local, peer} {
		a.evidence, a.packets = open, hands(b.Bytes(), 1000)
	}
	written := map[string]bool{}
	r.Keep = func(p Packets) (string, error) {
		name := p.From + " " + p.Experiment + " " + p.EndPoint
		if written[name] {
			t.Errorf("%q is written again", name)
		}
		written[name] = true
		return name, nil
	}
	q := request()
	q.OneWay, q.Capture = true, 5000
	p, err := plan.Explain(q)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := r.Explain(t.Context(), p, Probing{}, time.Hour)
	if err != nil || len(doc.Cells) < 2 {
		t.Fatalf("%d cells, %v", len(doc.Cells), err)
	}
	for _, c := range doc.Cells {
		if c.Spec.Capture > 0 && !(written["local "+c.Experiment+" local"] && written["local "+c.Experiment+" peer"]) {
			t.Errorf("the packets of %s are not among %v", c.Experiment, written)
		}
	}
	if len(written) < 2 || !written["local base local"] {
		t.Errorf("written: %v", written)
	}
}
