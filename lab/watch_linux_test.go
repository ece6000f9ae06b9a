package lab_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thru/internal/watch/record"
	"thru/lab"
)

// watchPlan has four TCP turns a minute, with one host at two addresses.
const watchPlan = `thru: 1
link_rate: 100M
end_points: [{name: b, at: 10.77.0.2}, {name: b2, at: "fd00:77::2"}]
pairs: [{from: local, to: b}, {from: b, to: local}, {from: local, to: b2}, {from: b2, to: local}]
watch: {tcp: 1440, time: 500ms, budget: 1T}
`

// samplesOf returns the samples that a watch has printed.
func samplesOf(t *testing.T, p *program) (all []record.Sample) {
	t.Helper()
	for lines := bufio.NewScanner(strings.NewReader(p.stdout.String())); lines.Scan(); {
		var x struct{ Sample *record.Sample }
		if json.Unmarshal(lines.Bytes(), &x) == nil && x.Sample != nil { // the last line may not be whole
			all = append(all, *x.Sample)
		}
	}
	return all
}

// TestWatchUnderLoad: other traffic to b takes 60% of the link. Turns to b are deferred with that figure, those from b are not.
func TestWatchUnderLoad(t *testing.T) {
	lab.Require(t, lab.Root(), lab.Namespaces(), lab.Program("iperf3"))
	t.Parallel()
	x := lab.NewPair(t, lab.Options{Rate: 100e6})
	serve(t, x.B, "--no-auth")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, args := range [][]string{{"-s", "-p", "6201"}, {"-c", x.Data.B4.String(), "-p", "6201", "-u", "-b", "60M", "-t", "60"}} {
		h := map[string]*lab.Host{"-s": x.B, "-c": x.A}[args[0]]
		other := h.Command(ctx, "iperf3", args...)
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { cancel(); _ = other.Wait() }()
		time.Sleep(300 * time.Millisecond) // the server listens
	}
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "plan.yaml"), []byte(watchPlan), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, x.A, home, "", "watch", filepath.Join(home, "plan.yaml"), "--json")
	lab.Eventually(t, 50*time.Second, "there are turns of both directions", func() bool {
		there, back := 0, 0
		for _, s := range samplesOf(t, p) {
			switch {
			case s.Layer != record.TCP:
				if s.State != record.Up {
					t.Fatalf("%+v", s)
				}
			case s.From == "local":
				there++
				if share := s.Values[record.OtherLoad]; s.State != record.Deferred || s.Reason != record.Load || len(s.Values) != 1 || share < 0.5 || share > 0.7 {
					t.Fatalf("%+v", s)
				}
			default:
				back++
				if share, known := s.Values[record.OtherLoad]; s.State != record.Up || s.Values[record.Goodput] < 50e6 || !known || share > 0.1 {
					t.Fatalf("%+v", s)
				}
			}
		}
		return there > 0 && back > 0
	})
}
