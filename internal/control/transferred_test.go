package control

import (
	"context"
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
)

// TestUneven: a difference between clients that their sum hides is reported.
func TestUneven(t *testing.T) {
	for _, tt := range []struct {
		name string
		each []float64
		want string
	}{
		{"one client", nil, ""},
		{"alike", []float64{24e6, 28e6, 26e6}, ""},
		{"one is starved", []float64{24e6, 60e6, 26e6}, "from 24.0 Mb/s to 60.0 Mb/s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := uneven(&measure.Transfer{Runs: []measure.TransferRun{{Each: tt.each}}})
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestTooShort: a short path needs no long transfer.
func TestTooShort(t *testing.T) {
	for _, tt := range []struct {
		name    string
		seconds float64
		rtt     int64
		want    string
	}{
		{"many round trips of loopback", 4.95, 47_000, ""},
		{"few of a long way", 4.95, 100_000_000, "49 round trips"},
		{"enough of a long way", 11, 100_000_000, ""},
		{"half a second", 0.5, 47_000, "too short for a reliable figure"},
		{"the round trip is not known", 3, 0, "too short for a reliable figure"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run := measure.TransferRun{ElapsedNs: int64(tt.seconds * 1e9), Bps: &measure.Figure{Value: 1e9}}
			if tt.rtt > 0 {
				run.Sockets = []measure.Stream{{TCP: &measure.TCPInfo{MinRTT: &tt.rtt}}}
			}
			got := tooShort(&measure.Transfer{Runs: []measure.TransferRun{run}})
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// pacedMover carries the listed rates (Mb/s), one per run over memory.
type pacedMover struct {
	TransferRunner
	memory []float64
	whole  float64
	moved  int

	elapsed int64
	ceiling *float64
	again   *float64 // rate of the repetition
	single  bool     // no disk takes part
}

func (m *pacedMover) Layers() []string {
	if m.single {
		return []string{measure.LayerMemory}
	}
	return []string{measure.LayerMemory, measure.LayerWhole}
}
func (m *pacedMover) Greet(context.Context, *measure.Transfer) error  { return nil }
func (m *pacedMover) Settle(context.Context, *measure.Transfer) error { return nil }
func (m *pacedMover) Ceiling(context.Context) measure.Layer {
	l := measure.Layer{Name: measure.LayerLibrary, Bps: m.ceiling}
	if m.again != nil {
		m.ceiling = m.again
	}
	return l
}
func (m *pacedMover) Small(context.Context) (*measure.TransferRun, error) { return nil, nil }
func (m *pacedMover) Clean() error                                        { return nil }
func (m *pacedMover) Warnings() []string                                  { return nil }
func (m *pacedMover) Move(_ context.Context, layer string, _ PeerWatch) (measure.TransferRun, error) {
	mbps := m.whole
	if layer == measure.LayerMemory {
		mbps = m.memory[min(m.moved, len(m.memory)-1)]
		m.moved++
	}
	return measure.TransferRun{Bytes: 1e9, ElapsedNs: max(m.elapsed, 10e9), LocalNs: 1e6, Bps: &measure.Figure{Value: mbps * 1e6}}, nil
}

// TestMemoryIsRepeated: a layer slower than one that includes it is measured again, the
// best counts, and one that stays too slow is not binding. The time in a file is not a
// disk rate.
func TestMemoryIsRepeated(t *testing.T) {
	for name, tt := range map[string]struct {
		memory []float64
		moved  int
		best   float64
		warns  bool
	}{
		"a cold cache":      {[]float64{697, 950}, 2, 950, false},
		"warmer each time":  {[]float64{500, 697, 930}, 3, 930, false},
		"too low each time": {[]float64{697, 600, 710}, 3, 710, true},
		"as it should be":   {[]float64{950}, 1, 950, false},
		"about as much":     {[]float64{900}, 1, 900, false},
	} {
		m := &pacedMover{memory: tt.memory, whole: 916}
		r := &Runner{Ends: pairOf(newAgent("L"), newAgent("P")), Watch: &quiet{}}
		doc, err := r.Transfer(t.Context(), Transferring{Runner: m, Transfer: measure.Transfer{Direction: measure.Download, Asked: measure.Amount{Clients: 1, To: "disk"}}})
		if err != nil {
			t.Fatal(err)
		}
		layers := map[string]measure.Layer{}
		for _, l := range doc.Transfer.Layers {
			layers[l.Name] = l
		}
		warned := strings.Contains(strings.Join(doc.Warnings, "; "), "too low")
		if got := *layers[measure.LayerMemory].Bps; m.moved != tt.moved || got != tt.best*1e6 || warned != tt.warns || len(doc.Transfer.Runs) != 2 {
			t.Errorf("%s: %d runs over memory, %g bit/s, warnings %q", name, m.moved, got, doc.Warnings)
		}
		if tt.warns && doc.Transfer.Binds == measure.LayerMemory {
			t.Errorf("%s: what was measured wrong binds: %s", name, doc.Transfer.Why)
		}
		if disk := layers[measure.LayerDiskHere]; disk.Bps != nil || !strings.Contains(disk.Missing, "no disk rate") {
			t.Errorf("%s: %+v", name, disk)
		}
	}
}

// TestWarmUp: for every protocol, a first pass that filled the server's cache is not the
// figure of a download; where a layer below explains it, or nothing came from a cold
// cache, it is.
func TestWarmUp(t *testing.T) {
	down := measure.Transfer{Direction: measure.Download, Asked: measure.Amount{Clients: 1, From: "server", To: "nowhere"}}
	generated, up := down, down
	generated.Asked.From = "generated"
	up.Direction, up.Asked.From, up.Asked.To = measure.Upload, "generated", "server"
	for name, tt := range map[string]struct {
		transfer measure.Transfer
		mover    pacedMover
		passes   []float64 // Mb/s
		best     float64
		warns    bool
	}{
		"a cold cache":            {down, pacedMover{memory: []float64{697, 950, 940}}, []float64{697, 950, 940}, 950, true},
		"a warm one":              {down, pacedMover{memory: []float64{950, 940}}, []float64{950, 940}, 950, false},
		"never the same":          {down, pacedMover{memory: []float64{100, 300, 900, 999}}, []float64{100, 300, 900}, 900, true},
		"what the client carries": {down, pacedMover{memory: []float64{697, 950}, ceiling: new(700e6)}, nil, 697, false},
		"more than that":          {down, pacedMover{memory: []float64{697, 700}, ceiling: new(500e6)}, []float64{697, 700}, 700, false},
		"a long one":              {down, pacedMover{memory: []float64{697, 950}, elapsed: 31e9}, nil, 697, false},
		"generated a moment ago":  {generated, pacedMover{memory: []float64{697, 950}}, nil, 697, false},
		"an upload":               {up, pacedMover{memory: []float64{697, 950}}, nil, 697, false},
	} {
		for _, protocol := range []string{"ftp", "sftp", "smb", "nfs", "nfs4", "rsync", "https", "thru"} {
			m, transfer := tt.mover, tt.transfer
			m.single, transfer.Protocol = true, protocol
			r := &Runner{Ends: pairOf(newAgent("L"), newAgent("P")), Watch: &quiet{}}
			doc, err := r.Transfer(t.Context(), Transferring{Runner: &m, Transfer: transfer})
			if err != nil {
				t.Fatal(err)
			}
			run := doc.Transfer.Runs[0]
			layer := doc.Transfer.Layers[len(doc.Transfer.Layers)-1]
			var passes []float64
			for _, bps := range run.Passes {
				passes = append(passes, bps/1e6)
			}
			warned := strings.Contains(strings.Join(doc.Warnings, "; "), "filled the server's cache")
			if !slices.Equal(passes, tt.passes) || run.Bps.Value != tt.best*1e6 || *layer.Bps != run.Bps.Value || warned != tt.warns {
				t.Errorf("%s by %s: passes %v, %g of them, layer %q, warnings %q", name, protocol, passes, run.Bps.Value, layer.How, doc.Warnings)
			}
			if strings.Contains(layer.How, "the best of") != (tt.passes != nil) {
				t.Errorf("%s by %s: %q", name, protocol, layer.How)
			}
		}
	}
}

// TestAloneIsRepeated: a client slower alone than in the transfer is measured again; one
// that stays slower is marked as not binding.
func TestAloneIsRepeated(t *testing.T) {
	for name, tt := range map[string]struct {
		ceiling, again, best float64 // Mb/s
		how                  string
	}{
		"as it should be":   {2000, 3000, 2000, ""},
		"about as much":     {900, 3000, 900, ""},
		"too low once":      {500, 2000, 2000, ", the best of 2"},
		"too low each time": {500, 400, 500, ", the best of 2; the transfer was faster, so this is not the limit"},
	} {
		m := &pacedMover{memory: []float64{950}, whole: 300, ceiling: new(tt.ceiling * 1e6), again: new(tt.again * 1e6)}
		r := &Runner{Ends: pairOf(newAgent("L"), newAgent("P")), Watch: &quiet{}}
		doc, err := r.Transfer(t.Context(), Transferring{Runner: m, Transfer: measure.Transfer{Direction: measure.Upload, Asked: measure.Amount{Clients: 1, From: "generated"}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range doc.Transfer.Layers {
			if l.Name == measure.LayerWhole && strings.Contains(l.How, "no bar") {
				t.Errorf("%s: what lies above is no layer below: %s", name, l.How)
			}
			if l.Name == measure.LayerLibrary && (*l.Bps != tt.best*1e6 || l.How != tt.how) {
				t.Errorf("%s: %g, %q", name, *l.Bps, l.How)
			}
		}
	}
}
