package lab_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"thru/lab"
	"thru/lab/wire"
)

// trouble is an impairment of a path that control and traffic share.
type trouble struct {
	name  string
	usual wire.Impairment // both directions
	bad   wire.Impairment // both directions, for some seconds once the test runs; zero: nothing changes
	args  string
}

// troubles returns the impairments that both ends must survive.
func troubles() []trouble {
	const delay = 2 * time.Millisecond
	usual := wire.Impairment{Rate: 100e6, Delay: delay}
	half := usual
	half.Loss = 0.5
	return []trouble{
		{name: "half of the packets are lost", usual: usual, bad: half},
		{name: "a policer", usual: wire.Impairment{PoliceRate: 90e6, Delay: delay}, args: "-P 4"},
		{name: "a queue of 3 s", usual: wire.Impairment{Rate: 20e6, Queue: 20e6 / 8 * 3, Delay: delay}, args: "-u -b 40M"},
		{name: "a bucket runs empty", usual: wire.Impairment{PeakRate: 350e6, Rate: 100e6, Burst: (350e6 - 100e6) / 8 * 3, Delay: delay}, args: "-u -b 400M"},
	}
}

// runs starts a test over the path, and applies the trouble once traffic flows.
func (x trouble) runs(t *testing.T, seed uint64, seconds int) (*lab.Wired, *program, *program) {
	t.Helper()
	w := lab.NewWired(t, lab.WiredOptions{AtoB: x.usual, BtoA: x.usual})
	server := serve(t, w.B, "--no-auth")
	args := append([]string{"test", "--json", "--one-way", "-t", fmt.Sprint(seconds), w.Data.B4.String()}, strings.Fields(x.args)...)
	client := start(t, w.A, t.TempDir(), "", args...)
	if x.bad == (wire.Impairment{}) {
		return w, server, client
	}
	lab.Eventually(t, 40*time.Second, "the test is under way", func() bool { return w.Wire.Counters(wire.AtoB).Out.Bytes > 100e6/8*2 })
	forth, back := x.bad, x.bad
	forth.Seed, back.Seed = 2*seed, 2*seed+1
	w.Wire.Set(wire.AtoB, forth)
	w.Wire.Set(wire.BtoA, back)
	return w, server, client
}

// survives fails the test unless the client ends with a result after some seconds of the trouble.
func (x trouble) survives(t *testing.T, seed uint64, seconds int) {
	t.Helper()
	if said := x.ends(t, seed, seconds); said != "" {
		t.Error(said)
	}
}

// ends runs the test to its end and returns its error, "" where it has a result.
func (x trouble) ends(t *testing.T, seed uint64, seconds int) string {
	t.Helper()
	w, _, client := x.runs(t, seed, seconds+4)
	if x.bad != (wire.Impairment{}) {
		time.Sleep(time.Duration(seconds) * time.Second) // the trouble itself
		w.Wire.Set(wire.AtoB, x.usual)
		w.Wire.Set(wire.BtoA, x.usual)
	}
	code := client.wait(t, 50*time.Second)
	doc := client.document(t)
	if doc.Error != nil {
		return doc.Error.Message
	}
	if code != 0 || len(mainCells(doc)) != 1 {
		return fmt.Sprintf("exit %d, %d cells", code, len(mainCells(doc)))
	}
	return ""
}

// TestControlSurvives: neither end may declare its peer gone while the peer is alive.
func TestControlSurvives(t *testing.T) {
	t.Parallel()
	for _, x := range troubles() {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			x.survives(t, 1, 8)
		})
	}
}

// goneLimit is how long an end may take to notice that its peer is gone.
const goneLimit = 15 * time.Second

// TestReallyGone: an end notices in time that its peer has ended or was cut off for good, also on a path with
// 50% packet loss.
func TestReallyGone(t *testing.T) {
	t.Parallel()
	none := wire.Impairment{Loss: 1}
	for _, c := range []struct {
		name   string
		kill   bool
		then   wire.Impairment // of the path
		reason string
	}{
		{"killed on a lossy path", true, troubles()[0].bad, "is lost: "},
		{"the lossy path is cut", false, none, "does not answer any more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, server, client := troubles()[0].runs(t, 3, 40)
			time.Sleep(3 * time.Second) // of trouble
			w.Wire.Set(wire.AtoB, c.then)
			w.Wire.Set(wire.BtoA, c.then)
			if c.kill {
				server.signal(t, syscall.SIGKILL)
			}
			if code := client.wait(t, goneLimit); code != 1 {
				t.Errorf("exit %d", code)
			}
			if doc := client.document(t); doc.Error == nil || !strings.Contains(doc.Error.Message, c.reason) {
				t.Errorf("error %+v, want %q", doc.Error, c.reason)
			}
		})
	}
}
