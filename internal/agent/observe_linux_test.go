package agent

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/sock"
)

// joined returns a connection over loopback from a client to a server.
func joined(t *testing.T) (client, server net.Conn, as measure.Addresses) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server, measure.Addresses{Local: client.LocalAddr().String(), Peer: client.RemoteAddr().String()}
}

// pass moves bytes from the server to the client.
func pass(t *testing.T, from, to net.Conn, n int) {
	t.Helper()
	go from.Write(make([]byte, n))
	if _, err := io.ReadFull(to, make([]byte, n)); err != nil {
		t.Fatal(err)
	}
}

// TestObserve: the connections of a client are seen as in the server's kernel, with the
// process that owns them; earlier ones count from the start of the observation.
func TestObserve(t *testing.T) {
	a, _, _ := newFake(t, DefaultLimits())
	c := stranger(t, a, bus.PrivilegeMeasure)
	if _, err := bus.Call(t.Context(), c, bus.Observe.Begin, bus.ObserveStart{}); err == nil || !strings.Contains(err.Error(), "turn") {
		t.Error("without the turn:", err)
	}
	if r, err := bus.Call(t.Context(), c, bus.Reserve, bus.ReserveRequest{}); err != nil || !r.Granted {
		t.Fatal(r, err)
	}
	near, far, as := joined(t)
	pass(t, far, near, 5000)
	o, err := bus.Call(t.Context(), c, bus.Observe.Begin, bus.ObserveStart{Conns: []measure.Addresses{as}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bus.Call(t.Context(), c, bus.Observe.Begin, bus.ObserveStart{}); err == nil {
		t.Error("a client has two observations")
	}
	if busy := a.Busy(); !strings.Contains(busy, "a file transfer") {
		t.Errorf("the agent says that it does %q", busy)
	}
	pass(t, far, near, 300_000)
	near2, far2, as2 := joined(t)
	pass(t, far2, near2, 100_000)
	none := measure.Addresses{Local: "127.0.0.1:1", Peer: "127.0.0.1:2"}
	if _, err := bus.Call(t.Context(), c, bus.Observe.Begin, bus.ObserveStart{Session: o.Session, Conns: []measure.Addresses{as2, none, none, none}}); err != nil {
		t.Fatal(err)
	}
	got, err := bus.Call(t.Context(), c, bus.Observe.End, bus.JobEnd(o))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Streams) != 2 || got.Streams[0].Bytes != 300_000 || got.Streams[1].Bytes != 100_000 || got.Streams[0].Local != as.Peer || got.Streams[0].Peer != as.Local {
		t.Errorf("streams %+v", got.Streams)
	}
	if s := got.Streams[0]; s.TCP == nil || s.TCPStart == nil || s.Timeline == nil || s.Timeline.InFlight == nil || s.Timeline.BufferFull == nil || s.Window.Granted <= 0 || s.Congestion == "" {
		t.Errorf("of a connection that was there %+v", s)
	}
	if s := got.Streams[1]; s.TCPStart == nil || *s.TCPStart.BytesAcked != 0 {
		t.Errorf("of one that came later %+v", s)
	}
	if got.Host.Worker == nil || len(got.Programs) != 1 || got.Host.NIC == nil || got.Host.NIC.Name != "lo" {
		t.Errorf("host %+v, by %v", got.Host, got.Programs)
	}
	if len(got.Missing) != 1 || got.Missing[0].Fact != "streams" || !strings.HasPrefix(got.Missing[0].Why, "this kernel does not know 3 of 5 connections") {
		t.Errorf("missing %+v", got.Missing)
	}
	if _, err := bus.Call(t.Context(), c, bus.Observe.End, bus.JobEnd(o)); err == nil {
		t.Error("it is reported twice")
	}
}

// TestObserveOthers: connections of others are not observed, and an invalid address is
// rejected.
func TestObserveOthers(t *testing.T) {
	a, _, _ := newFake(t, DefaultLimits())
	c := stranger(t, a, bus.PrivilegeMeasure)
	if _, err := bus.Call(t.Context(), c, bus.Reserve, bus.ReserveRequest{}); err != nil {
		t.Fatal(err)
	}
	ask := func(conns ...measure.Addresses) (bus.ObserveResult, error) {
		r, err := bus.Call(t.Context(), c, bus.Observe.Begin, bus.ObserveStart{Conns: conns})
		if err != nil {
			return bus.ObserveResult{}, err
		}
		return bus.Call(t.Context(), c, bus.Observe.End, bus.JobEnd(r))
	}
	for name, tt := range map[string]struct {
		conn measure.Addresses
		why  string
	}{
		"another's":  {measure.Addresses{Local: "192.0.2.7:5", Peer: "127.0.0.1:80"}, "they do not lead to a known address of this client"},
		"not there":  {measure.Addresses{Local: "127.0.0.1:1", Peer: "127.0.0.1:2"}, "this kernel does not know 1 of 1 connections"},
		"its mapped": {measure.Addresses{Local: "[::ffff:127.0.0.1]:1", Peer: "[::ffff:127.0.0.1]:2"}, "this kernel does not know 1 of 1 connections"},
	} {
		got, err := ask(tt.conn)
		if err != nil || len(got.Streams) != 0 || len(got.Missing) != 2 || !strings.HasPrefix(got.Missing[0].Why, tt.why) || got.Missing[1].Fact != "worker" {
			t.Errorf("%s: %+v, %v", name, got.Missing, err)
		}
	}
	if got, err := ask(); err != nil || len(got.Missing) != 2 || got.Missing[0].Why != "the client knows none of its connections" {
		t.Errorf("none: %+v, %v", got.Missing, err)
	}
	if _, err := ask(measure.Addresses{Local: "here", Peer: "there"}); err == nil || !strings.Contains(err.Error(), "not a pair of addresses") {
		t.Error(err)
	}
	if _, err := ask(make([]measure.Addresses, bus.MostObserved+1)...); err == nil || !strings.Contains(err.Error(), "4096") {
		t.Error(err)
	}
	if _, err := bus.Call(t.Context(), c, bus.Observe.End, bus.JobEnd{Session: "x"}); err == nil {
		t.Error("an observation that nobody began is known")
	}
}

// TestObserveMet: the addresses from which a client has measured count as its own, until
// it is gone.
func TestObserveMet(t *testing.T) {
	a, _, _ := newFake(t, DefaultLimits())
	takeTurn(t, a, "c")
	a.prove("c", "[::ffff:192.0.2.7]:4000")
	a.prove("c", "192.0.2.7:4001")
	a.prove("c", "nonsense")
	if len(a.proved["c"]) != 1 {
		t.Errorf("met %v", a.proved)
	}
	from := a.isOf(t.Context(), "c")
	for addr, want := range map[string]bool{"192.0.2.7": true, "::ffff:192.0.2.7": true, "192.0.2.8": false, "127.0.0.1": false} {
		x, _ := addrOf(addr)
		if from(x) != want {
			t.Errorf("%s: %v", addr, !want)
		}
	}
	a.Gone("c")
	a.prove("c", "192.0.2.7:4002") // a running flow ends late
	if len(a.proved) != 0 {
		t.Errorf("of one that is gone: %v", a.proved)
	}
}

// TestObserveGone: an observation ends with its client, and with the agent.
func TestObserveGone(t *testing.T) {
	a, _, _ := newFake(t, DefaultLimits())
	for _, end := range []func(){
		func() { a.Gone("c") },
		func() { a.Release(t.Context(), "c", bus.ReleaseRequest{}) },
		a.Close,
	} {
		takeTurn(t, a, "c")
		r, err := a.BeginObserve(t.Context(), "c", bus.ObserveStart{})
		if err != nil {
			t.Fatal(err)
		}
		end()
		if _, err := a.EndObserve(t.Context(), "c", bus.JobEnd(r)); err == nil || a.Busy() != "" {
			t.Errorf("it goes on: %v, %q", err, a.Busy())
		}
	}
	takeTurn(t, a, "c")
	if _, err := a.BeginObserve(t.Context(), "c", bus.ObserveStart{}); err == nil {
		t.Error("an agent that has ended observes")
	}
}

// TestPrograms: a process that began during the observation counts from its begin, an
// earlier one from when it was found, and another process with its pid not at all.
func TestPrograms(t *testing.T) {
	root := t.TempDir()
	write := func(pid int, born, used time.Duration) {
		dir := filepath.Join(root, "proc", strconv.Itoa(pid))
		stat := fmt.Sprintf("%d (server) S 1 1 1 0 -1 1 1 0 0 0 %d 0 0 0 20 0 1 0 %d 0", pid, used/(10*time.Millisecond), born/(10*time.Millisecond))
		for _, err := range []error{
			os.MkdirAll(filepath.Join(dir, "task"), 0o755), os.WriteFile(filepath.Join(dir, "stat"), []byte(stat), 0o644),
			os.WriteFile(filepath.Join(dir, "status"), []byte("voluntary_ctxt_switches: 1\nnonvoluntary_ctxt_switches: 1\n"), 0o644),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	o := &observation{host: host.At(root), begun: 100 * time.Second}
	write(5, 50*time.Second, 3*time.Second)
	write(6, 101*time.Second, 2*time.Second)
	for range 2 { // it is found by each of its connections
		o.watch(host.Holder{PID: 5})
		o.watch(host.Holder{PID: 6})
	}
	o.watch(host.Holder{PID: 7}) // it has just ended
	used := func() (all []time.Duration) {
		o.readPrograms()
		for _, p := range o.programs {
			all = append(all, time.Duration(p.used()))
		}
		return all
	}
	if got := used(); !slices.Equal(got, []time.Duration{0, 2 * time.Second}) {
		t.Errorf("found: %v", got)
	}
	write(5, 50*time.Second, 4*time.Second)
	if got := used(); !slices.Equal(got, []time.Duration{time.Second, 2 * time.Second}) {
		t.Errorf("later: %v", got)
	}
	write(5, 103*time.Second, 9*time.Second)
	if got := used(); !slices.Equal(got, []time.Duration{time.Second, 2 * time.Second}) {
		t.Errorf("another under its number: %v", got)
	}
	o.watch(host.Holder{PID: 5})
	if got := used(); !slices.Equal(got, []time.Duration{time.Second, 2 * time.Second, 9 * time.Second}) {
		t.Errorf("the other one has a connection: %v", got)
	}
}

// TestComeWithin: a connection unknown to this kernel is given up in time, and one named
// late is found.
func TestComeWithin(t *testing.T) {
	diag, err := sock.OpenDiag()
	if err != nil {
		t.Skip(err)
	}
	defer diag.Close()
	o := &observation{diag: diag, from: func(netip.Addr) bool { return true }}
	if err := o.add([]measure.Addresses{{Local: "127.0.0.1:1", Peer: "127.0.0.1:2"}}, true); err != nil {
		t.Fatal(err)
	}
	o.look(o.conns[0].named.Add(comeWithin))
	if o.conns[0].gone {
		t.Error("it may still come")
	}
	o.look(o.conns[0].named.Add(comeWithin + 1))
	if !o.conns[0].gone {
		t.Error("it is looked for for ever")
	}
}

// TestObserveKeepsTurn: a client with a running observation keeps the turn.
func TestObserveKeepsTurn(t *testing.T) {
	a, _, _ := newFake(t, DefaultLimits())
	takeTurn(t, a, "c")
	r, err := a.BeginObserve(t.Context(), "c", bus.ObserveStart{})
	if err != nil {
		t.Fatal(err)
	}
	a.Release(t.Context(), "c", bus.ReleaseRequest{Session: "nobody's"})
	if !a.turns.has("c") {
		t.Error("it is another's turn while the observation goes on")
	}
	a.Release(t.Context(), "c", bus.ReleaseRequest(r))
	if a.turns.has("c") {
		t.Error("the turn is not given back")
	}
}
