package probing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"thru/internal/bus"
	"thru/internal/measure"
	"thru/internal/sock"
	"thru/internal/stamp"
	"thru/internal/token"
	"thru/internal/watch/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const name = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

func newProbing(t *testing.T, folder string) *Probing {
	p := New(Config{
		Listen: sock.Range{Addrs: []string{"127.0.0.1"}}, Folder: folder,
		Route: func(string, string) (*measure.Route, error) { return &measure.Route{Interface: "lo", MTU: 1500}, nil },
		Trusts: func(_ context.Context, shown string) error {
			if !token.Proves(shown) {
				return errors.New("no proof")
			}
			return nil
		},
	})
	t.Cleanup(p.Close)
	return p
}

// pairTo asks for a session at a reflector, and returns the assignment of its sender.
func pairTo(t *testing.T, far *Probing, from, to string) bus.Pair {
	t.Helper()
	r, err := far.Reflect(t.Context(), bus.ReflectRequest{Watch: name, LeaseNs: int64(time.Hour), From: from, To: to, IntervalNs: bus.LeastGap})
	if err != nil {
		t.Fatal(err)
	}
	return bus.Pair{From: from, To: to, Target: fmt.Sprintf("127.0.0.1:%d", r.Port), SSID: r.SSID, Token: r.Token, IntervalNs: bus.LeastGap, BoundNs: 1e3}
}

func (p *Probing) ask(t *testing.T, pairs ...bus.Pair) bus.PairsReply {
	t.Helper()
	r, err := p.Pairs(t.Context(), bus.PairsRequest{Watch: name, LeaseNs: int64(time.Hour), Pairs: pairs})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// samples waits for samples.
func (p *Probing) await(t *testing.T, n int, stored int64) []bus.Numbered {
	t.Helper()
	for range 3000 {
		r, err := p.Samples(bus.SamplesRequest{Watch: name, LeaseNs: int64(time.Hour), Stored: stored})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Samples) >= n {
			return r.Samples
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no samples")
	return nil
}

// TestPair: two agents measure a pair. A pair that stays goes on, one that is omitted ends with its last sample, which is fetched once.
func TestPair(t *testing.T) {
	near, far := newProbing(t, t.TempDir()), newProbing(t, "")
	a, b := pairTo(t, far, "a", "b"), pairTo(t, far, "a", "c")
	if again := pairTo(t, far, "a", "b"); again != a {
		t.Errorf("%+v, then %+v", a, again)
	}
	if r := near.ask(t, a, b); len(r.Refused) > 0 {
		t.Fatalf("%+v", r)
	}
	time.Sleep(time.Second)
	near.ask(t, a) // b ends
	got := near.await(t, 1, 0)
	s := got[0].Sample
	if len(got) != 1 || s.To != "c" || s.State != record.Up || s.Values[record.Sent] == 0 || s.Values[record.LossRatio] != 0 || s.Values[record.RTTMedian] <= 0 ||
		s.Values[record.DelayBound] != 1e3 || s.Route != "lo" || s.Layer != record.Probe {
		t.Errorf("%+v", s)
	}
	a.BoundNs = 5e8
	near.ask(t, a) // the same session
	if far.reflector == nil || len(near.sending) != 1 {
		t.Errorf("%d sessions", len(near.sending))
	}
	near.ask(t)
	got = near.await(t, 1, got[0].Number)
	if len(got) != 1 || got[0].Sample.To != "b" {
		t.Errorf("%+v", got)
	}
	for range 2 { // also if it is repeated
		if _, err := far.Reflect(t.Context(), bus.ReflectRequest{Watch: name, LeaseNs: int64(time.Hour), From: "a", To: "c"}); err != nil {
			t.Error(err)
		}
	}
	if all := far.watches[name].reflected; len(all) != 1 || all[record.Pair{From: "a", To: "b"}].SSID != a.SSID {
		t.Errorf("answered: %+v", all)
	}
	if all := near.Counts(); all["c"].Sent == 0 || all["c"].Received+all["c"].Lost != all["c"].Sent || len(all) != 2 {
		t.Errorf("%+v", all)
	}
}

// TestRestart: after a restart of each end, both go on without a client: with the sessions, and with samples that were not fetched.
func TestRestart(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	near, far := newProbing(t, here), newProbing(t, there)
	pair := pairTo(t, far, "a", "b")
	near.ask(t, pair)
	time.Sleep(300 * time.Millisecond)
	near.Close()
	far.Close()
	far = newProbing(t, there)
	if now := pairTo(t, far, "a", "b"); now != pair {
		t.Errorf("%+v, then %+v", pair, now)
	}
	near = newProbing(t, here)
	got := near.await(t, 1, 0)
	if len(got) != 1 || got[0].Sample.To != "b" {
		t.Errorf("%+v", got)
	}
	time.Sleep(500 * time.Millisecond)
	near.ask(t) // ends the session that goes on
	if got := near.await(t, 1, got[0].Number); got[0].Sample.State != record.Up {
		t.Errorf("%+v", got)
	}
}

// TestLeaseOver: what a watch left is removed once its lease is over.
func TestLeaseOver(t *testing.T) {
	folder := t.TempDir()
	p := newProbing(t, folder)
	p.ask(t, pairTo(t, p, "a", "b"))
	p.watches[name].until = time.Now()
	p.Close()
	p = newProbing(t, folder)
	if left, _ := os.ReadDir(folder); len(left) > 0 || len(p.watches) > 0 {
		t.Errorf("%v, %d watches", left, len(p.watches))
	}
}

// TestEnd: a watch that ends leaves no socket and no file.
func TestEnd(t *testing.T) {
	folder := t.TempDir()
	p := newProbing(t, folder)
	p.ask(t, pairTo(t, p, "a", "b"))
	if _, err := p.Pairs(t.Context(), bus.PairsRequest{Watch: name}); err != nil {
		t.Fatal(err)
	}
	if p.sender != nil || p.reflector != nil || len(p.sending)+len(p.watches) > 0 {
		t.Errorf("%+v", p)
	}
	if r, err := p.Samples(bus.SamplesRequest{Watch: name, LeaseNs: 1e9}); err != nil || len(r.Samples) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	short := bus.PairsRequest{Watch: name, LeaseNs: 1}
	if _, err := p.Pairs(t.Context(), short); err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		p.mu.Lock()
		n := len(p.watches)
		p.mu.Unlock()
		if n == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the lease does not end")
}

// TestRenewed: a lease that was renewed after its timer had fired goes on.
func TestRenewed(t *testing.T) {
	p := newProbing(t, t.TempDir())
	p.await(t, 0, 0)
	w := p.watches[name]
	p.expire(w)
	if p.watches[name] != w {
		t.Fatal("the watch has ended")
	}
	w.until = time.Now()
	p.expire(w)
	p.await(t, 0, 0)
	again := p.watches[name]
	w.until = time.Now()
	if p.expire(w); again == w || p.watches[name] != again {
		t.Error("the old lease ends the new watch")
	}
}

// TestEndAndBegin: a watch that begins as one of its name ends has its own folder.
func TestEndAndBegin(t *testing.T) {
	p := newProbing(t, t.TempDir())
	for range 20 {
		p.await(t, 0, 0)
		p.store()
		for i := range 500 { // so that it takes its time to remove them
			if err := os.WriteFile(filepath.Join(p.watches[name].samples.dir, fmt.Sprint(i)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		ended := make(chan error)
		go func() {
			_, err := p.Pairs(context.Background(), bus.PairsRequest{Watch: name})
			ended <- err
		}()
		p.await(t, 0, 0)
		p.store()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		w := p.watches[name]
		if w == nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(w.samples.dir, keptFile)); err != nil && !w.kept.IsZero() {
			t.Fatal(err)
		}
	}
}

// TestSlowDisk: whoever waits for a disk has mu, and the sender does not wait for him. What it reports meanwhile is bounded and counted.
func TestSlowDisk(t *testing.T) {
	p := newProbing(t, "")
	p.ask(t, pairTo(t, p, "a", "b"))
	w := p.watches[name]
	id := w.sent[record.Pair{From: "a", To: "b"}].id
	p.mu.Lock()
	reported := make(chan bool)
	go func() {
		defer close(reported)
		for range mostMemory + 5 {
			p.report(id, stamp.Summary{Sent: 1})
		}
	}()
	select {
	case <-reported:
	case <-time.After(30 * time.Second):
		t.Error("the sender waits")
	}
	p.mu.Unlock()
	p.store()
	if n := len(w.samples.open); n != mostMemory || w.samples.dropped < 5 {
		t.Errorf("%d samples, %d dropped", n, w.samples.dropped)
	}
}

// TestKeptOnce: many pairs in a row are written together, not once for each.
func TestKeptOnce(t *testing.T) {
	p := newProbing(t, t.TempDir())
	for i := range 20 {
		pairTo(t, p, "a", fmt.Sprint("b", i))
	}
	name := filepath.Join(p.folderOf(name), keptFile)
	if _, err := os.Stat(name); err == nil {
		t.Error("it is written at once")
	}
	p.store()
	var k kept
	if text, err := os.ReadFile(name); err != nil || json.Unmarshal(text, &k) != nil || len(k.Reflected) != 20 {
		t.Errorf("%d pairs, %v", len(k.Reflected), err)
	}
}

// TestRefused: what a client may not have an agent do.
func TestRefused(t *testing.T) {
	p := newProbing(t, "")
	good := pairTo(t, p, "a", "b")
	for what, change := range map[string]func(*bus.Pair){
		"no name": func(x *bus.Pair) { x.From = "" }, "a name as target": func(x *bus.Pair) { x.Target = "localhost:1" },
		"no port": func(x *bus.Pair) { x.Target = "127.0.0.1:0" }, "a group": func(x *bus.Pair) { x.Target = "224.0.0.1:5" },
		"too often": func(x *bus.Pair) { x.IntervalNs = 1e6 }, "no token": func(x *bus.Pair) { x.Token = "" },
		"a token without proof": func(x *bus.Pair) { x.Token = fmt.Sprintf("%064x", 0xab) }, "no identifier": func(x *bus.Pair) { x.SSID = 0 },
	} {
		x := good
		change(&x)
		if r := p.ask(t, x); len(r.Refused) != 1 || r.Refused[0].Error == "" {
			t.Errorf("%s: %+v", what, r)
		}
	}
	for _, m := range []bus.ReflectRequest{
		{Watch: "short", LeaseNs: 1e9, From: "a", To: "b", IntervalNs: 1e9}, {Watch: name, From: "a", To: "b", IntervalNs: 1e9},
		{Watch: name, LeaseNs: 1e9, From: "a", IntervalNs: 1e9}, {Watch: name, LeaseNs: 1e9, From: "a", To: "b", IntervalNs: 1},
	} {
		if _, err := p.Reflect(t.Context(), m); err == nil {
			t.Errorf("%+v is accepted", m)
		}
	}
	for i := range mostWatches + 1 {
		_, err := p.Samples(bus.SamplesRequest{Watch: name + string(rune('A'+i)), LeaseNs: 1e12})
		if (err != nil) != (i >= mostWatches-1) {
			t.Errorf("watch %d: %v", i+2, err)
		}
	}
}

// TestSampleOf: a state never says more than was measured.
func TestSampleOf(t *testing.T) {
	run := stamp.Run{Packets: 3}
	for _, tt := range []struct {
		name   string
		in     stamp.Summary
		state  record.State
		reason record.Reason
		values int
	}{
		{"healthy", stamp.Summary{Sent: 60, RTT: stamp.Delays{N: 60}, TTLThere: 250, MTU: 1500}, record.Up, "", 8},
		{"clocks in sync", stamp.Summary{Sent: 60, RTT: stamp.Delays{N: 60, Median: 2}, There: stamp.Delays{N: 60}, Bound: 1}, record.Up, "", 8},
		{"clocks apart by a round trip", stamp.Summary{Sent: 60, RTT: stamp.Delays{N: 60, Median: 2}, There: stamp.Delays{N: 60}, Bound: 2}, record.Up, "", 6},
		{"loss", stamp.Summary{Sent: 60, Lost: 3, RTT: stamp.Delays{N: 57}, Runs: []stamp.Run{run}}, record.Up, "", 6},
		{"down", stamp.Summary{Sent: 60, Lost: 60}, record.Down, record.NoAnswer, 3},
		{"suspended", stamp.Summary{Void: 3, Slept: 1}, record.NotMeasured, record.Slept, 2},
		{"stalled", stamp.Summary{Void: 3, Stalled: 1}, record.NotMeasured, record.Slept, 2},
		{"clock", stamp.Summary{Jumped: 1}, record.NotMeasured, record.ClockJump, 2},
		{"ended at once", stamp.Summary{Void: 3}, record.NotMeasured, record.NoSample, 2},
	} {
		tt.in.Begin = time.Unix(1_780_000_000, 123_456_789)
		s := sampleOf(&sending{}, tt.in)
		if want := record.SampleID(s.Pair, record.Probe, time.UnixMilli(1_780_000_000_123)); s.ID != want {
			t.Errorf("%s: the id is %q, but %q once it was stored", tt.name, s.ID, want)
		}
		if s.State != tt.state || s.Reason != tt.reason || len(s.Values) != tt.values || len(s.Gaps) != len(tt.in.Runs) {
			t.Errorf("%s: %+v", tt.name, s)
		}
	}
}
