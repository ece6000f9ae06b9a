package cause

import (
	"slices"
	"testing"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/stat"
)

// tries returns the experiments that Next proposes one after the other, none of which is made.
func tries(d *measure.Document) (ids []string) {
	for {
		t, ok := Next(d, 0, ids)
		if !ok {
			return ids
		}
		ids = append(ids, t.ID)
	}
}

// If nothing passes, only smaller packets could.
func TestNextWherePacketsDoNotPass(t *testing.T) {
	hole := made{bps: 0, againPct: 100}.document()
	Diagnose(hole)
	for _, id := range tries(hole) {
		if id != diagnose.SmallSegments {
			t.Errorf("%s is tried on a path that carries nothing", id)
		}
	}
	lossy := made{bps: 20e6, againPct: 0.1, recoveries: 30}.document()
	Diagnose(lossy)
	if ids := tries(lossy); len(ids) < 2 || !slices.Contains(ids, diagnose.UdpBelow) {
		t.Errorf("on a path that loses: %q", ids)
	}
}

// No experiment is proposed twice, and a certain cause needs none.
func TestNextEnds(t *testing.T) {
	d := made{bps: 20e6, againPct: 0.1, recoveries: 30}.document()
	Diagnose(d)
	ids := tries(d)
	slices.Sort(ids)
	if len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("twice: %q", ids)
	}
	d.Cells[0].Findings[0].Confidence = measure.Certain
	if x, more := Next(d, 0, nil); more {
		t.Errorf("certain, and %s is tried", x.ID)
	}
}

// A gain that would prove a cause is not accepted from single runs: base and experiment alternate until scatter
// cannot explain it, or enough runs were made.
func TestNextTakesTurns(t *testing.T) {
	m := smallSend()
	m.rtt, m.bps = 33*ms, 25*mb
	for name, x := range map[string]struct {
		carries float64
		turns   int
		want    string
	}{
		"twice as much":          {50 * mb, 1, measure.Certain},
		"half more":              {37 * mb, 6, measure.Certain},
		"a quarter more":         {31 * mb, 2*stat.TurnsMost - 2, measure.Likely},
		"no more than by chance": {29 * mb, 0, measure.Likely},
	} {
		d := m.document(experiment(diagnose.MoreBuffer, x.carries))
		made, turns := []string{diagnose.MoreBuffer}, 0
		for Diagnose(d); ; Diagnose(d) {
			next, ok := Next(d, 0, made)
			if !ok || !next.Again {
				break
			}
			if next.OfBase != (turns%2 == 0) || next.Spec.Duration != int64(diagnose.ShortTrial) && next.OfBase {
				t.Fatalf("%s: turn %d is %+v", name, turns, next)
			}
			turns++
			if next.Cell < 0 {
				d.Cells = append(d.Cells, inTurn(m, diagnose.MoreBuffer))
				continue
			}
			c := &d.Cells[next.Cell]
			c.Runs = append(c.Runs, c.Runs[0])
		}
		if got := outcomeOf(d.Cells[0].Diagnosis, "send-buffer"); turns != x.turns || got != x.want {
			t.Errorf("%s: %d turns, %s; want %d, %s", name, turns, got, x.turns, x.want)
		}
	}
}

// stopped is an experiment that failed.
func stopped(c measure.Cell) measure.Cell {
	fails(&c)
	return c
}

// The partial result of a failed experiment neither proves nor excludes a cause.
func TestFailedIsNoEvidence(t *testing.T) {
	m := smallSend()
	m.rtt, m.bps = 33*ms, 25*mb
	asked := func(d *measure.Document) string {
		Diagnose(d)
		return outcomeOf(d.Cells[0].Diagnosis, "send-buffer")
	}
	failed := m.document(stopped(experiment(diagnose.MoreBuffer, 1*mb)))
	if got, want := asked(failed), asked(m.document()); got != want {
		t.Errorf("an experiment that failed makes %q of %q", got, want)
	}
	cell := experiment(diagnose.MoreBuffer, 50*mb)
	cell.Runs = append(cell.Runs, stopped(experiment(diagnose.MoreBuffer, 1*mb)).Runs...)
	cell.Error = cell.Runs[1].Error
	d := m.document(cell, inTurn(m, diagnose.MoreBuffer))
	if f := diagnose.NewFlow(theCatalogue(), d, &d.Cells[0]); f.Against(f.Experiment(diagnose.MoreBuffer)).Trial != 1 {
		t.Errorf("a run that failed counts: %+v", f.Against(f.Experiment(diagnose.MoreBuffer)))
	}
	for _, r := range twoHosts(onCore(1, 2), sending(99, 0), alsoTried(8, 1e9), func(h *hosts) {
		c := &h.doc.Cells[1]
		c.Experiment = diagnose.EightStreams
		fails(c)
	}).judged() {
		if r.Cause == "single-flow" && r.Why == "it failed: the data stopped" {
			return
		}
	}
	t.Error("8 streams that failed settle what one stream costs")
}

// Foreign programs have one window for both ends.
func TestWindowOfOtherPrograms(t *testing.T) {
	for engine, want := range map[string]measure.Pair{
		measure.Native: {Recv: 200_000},
		measure.IPerf3: {Send: 200_000, Recv: 200_000},
		measure.IPerf2: {Send: 200_000, Recv: 200_000},
	} {
		d := made{bps: 40e6, window: 100_000}.document()
		s := d.Cells[0].Spec
		s.Engine = engine
		if !diagnose.VaryWindow(diagnose.NewFlow(theCatalogue(), d, &d.Cells[0]), &s) || s.Window != want {
			t.Errorf("%s: %+v", engine, s.Window)
		}
	}
}

// The proposed next test was not made yet, and is possible.
func TestNextOf(t *testing.T) {
	tests := func(ids ...string) diagnose.Rule { return diagnose.Rule{Tests: ids} }
	udp := made{bps: 20e6, streams: 8}.document()
	udp.Cells[0].Protocol, udp.Cells[0].Spec.Protocol = measure.UDP, measure.UDP
	imported := made{bps: 20e6}.document()
	imported.Cells[0].Spec.Engine = measure.IPerf3
	for name, x := range map[string]struct {
		doc  *measure.Document
		rule diagnose.Rule
		want string
	}{
		"none was made":              {made{bps: 20e6}.document(), tests(diagnose.UdpBelow, diagnose.BbrControl), "UDP at 0.9 of the TCP rate"},
		"one was made":               {made{bps: 20e6}.document(experiment(diagnose.UdpBelow, 18e6)), tests(diagnose.UdpBelow, diagnose.BbrControl), "bbr instead of a loss-based congestion control"},
		"all were made":              {made{bps: 20e6}.document(experiment(diagnose.UdpBelow, 18e6)), tests(diagnose.UdpBelow), ""},
		"one failed":                 {made{bps: 20e6}.document(stopped(experiment(diagnose.UdpBelow, 1e6))), tests(diagnose.UdpBelow, diagnose.BbrControl), "UDP at 0.9 of the TCP rate, again: the first try failed (the data stopped)"},
		"of datagrams":               {udp, tests(diagnose.UdpBelow, diagnose.EightStreams), ""},
		"measured by another one":    {imported, tests(diagnose.UdpBelow), "UDP at 0.9 of the TCP rate"},
		"cubic paces not":            {made{bps: 20e6}.document(), tests(diagnose.OtherControl, diagnose.Longer), "a longer run"},
		"reno paces no more":         {made{bps: 20e6, control: "reno"}.document(), tests(diagnose.OtherControl), ""},
		"bbr paces":                  {made{bps: 20e6, control: "bbr"}.document(), tests(diagnose.OtherControl), "cubic or reno instead of a pacing congestion control"},
		"four streams may be eight":  {made{bps: 20e6, streams: 4}.document(), tests(diagnose.EightStreams), "8 streams instead of fewer"},
		"eight are eight":            {made{bps: 20e6, streams: 8}.document(), tests(diagnose.EightStreams), ""},
		"one stream is one":          {made{bps: 20e6}.document(), tests(diagnose.OneStream), ""},
		"an unknown id is no test":   {made{bps: 20e6}.document(), tests("unheard-of"), ""},
		"no window was set":          {made{bps: 20e6}.document(), tests(diagnose.NoWindow), ""},
		"a window that was set goes": {made{bps: 20e6, asked: measure.Pair{Send: 1 << 16}}.document(), tests(diagnose.NoWindow), "windows tuned by the kernel"},
	} {
		if got := diagnose.NewFlow(theCatalogue(), x.doc, &x.doc.Cells[0]).NextOf(x.rule); got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}
