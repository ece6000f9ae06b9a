//go:build watches

package lab_test

import (
	"bufio"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thru/internal/store"
	"thru/internal/watch/record"
	"thru/lab"
	"thru/lab/wire"
)

// changed is a path that changes between the stored samples of a watch and its run.
type changed struct {
	name   string
	delay  time.Duration // one way
	change func(*wire.Impairment)
	metric record.Metric
	causes []string // one of which the alarm must name; nil: the metric says it
}

func changes() []changed {
	return []changed{
		{"rate -10%", 2 * time.Millisecond, func(i *wire.Impairment) { i.Rate = 90e6 }, record.Goodput, []string{"shaper", "link-rate", "token-bucket"}},
		{"loss 0.1%", 10 * time.Millisecond, func(i *wire.Impairment) { i.Loss = 0.001 }, record.Goodput, []string{"loss"}},
		{"+5 ms", 2 * time.Millisecond, func(i *wire.Impairment) { i.Delay += 5 * time.Millisecond }, record.RTTMedian, nil},
		{"MTU 1400", 2 * time.Millisecond, func(i *wire.Impairment) { i.MTU, i.ICMP = 1400, true }, record.MTU, nil},
	}
}

// remember stores two weeks of a watch of a healthy path, the last hour of which may have 10 ms more: a change of delay takes an hour to be found.
func remember(t *testing.T, home string, pair record.Pair, goodput float64, late bool) {
	t.Helper()
	s, err := store.Open(filepath.Join(home, ".local", "share", "thru", "results.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	noise := rand.New(rand.NewPCG(1, 2))
	var all []record.Sample
	now := time.Now().Add(-2 * time.Minute)
	for at := now.Add(-13 * 24 * time.Hour); at.Before(now); at = at.Add(2 * time.Hour) {
		all = append(all, record.Sample{Pair: pair, Layer: record.TCP, Begin: at, Seconds: 3, State: record.Up, Values: map[record.Metric]float64{record.Goodput: goodput * (1 + 0.01*noise.NormFloat64())}})
	}
	end := now.Truncate(20 * time.Minute) // of what is judged together
	for at := end.Add(-13 * 24 * time.Hour); at.Before(end); at = at.Add(time.Minute) {
		rtt := 4.3e6 + 5e4*noise.NormFloat64()
		if late && at.After(end.Add(-time.Hour-time.Second)) {
			rtt += 10e6
		}
		all = append(all, record.Sample{Pair: pair, Layer: record.Probe, Begin: at, Seconds: 60, State: record.Up, Values: map[record.Metric]float64{record.Sent: 60, record.LossRatio: 0, record.MTU: 1500, record.RTTMedian: rtt}})
	}
	if err := s.PutSamples(t.Context(), all); err != nil {
		t.Fatal(err)
	}
}

// alarmsOf returns the alarms that a watch has raised, as last told.
func alarmsOf(p *output) map[string]record.Alarm {
	all := map[string]record.Alarm{}
	for lines := bufio.NewScanner(strings.NewReader(p.String())); lines.Scan(); {
		var e record.Event
		if json.Unmarshal(lines.Bytes(), &e) == nil && (e.Kind == record.AlarmRaised || e.Kind == record.AlarmUpdated) {
			all[e.Alarm.ID] = *e.Alarm
		}
	}
	return all
}

// TestWatchNamesChanges: what changes on a path is an alarm that names the changed figure and its cause.
func TestWatchNamesChanges(t *testing.T) {
	lab.Require(t, lab.Root(), lab.Namespaces())
	for _, c := range changes() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			healthy := wire.Impairment{Rate: 100e6, Delay: c.delay}
			w := lab.NewWired(t, lab.WiredOptions{AtoB: healthy, BtoA: healthy, NoOffloads: true})
			state, home := t.TempDir(), t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
			defer cancel()
			run := func(h *lab.Host, args ...string) *output {
				cmd, out := h.Command(ctx, lab.Binary(t), args...), new(output)
				cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CACHE_HOME=")
				cmd.Stdout, cmd.Stderr = out, out
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { cancel(); _ = cmd.Wait() })
				return out
			}
			served := run(w.B, "serve", "--state", state, "--no-auth")
			lab.Eventually(t, 20*time.Second, "thru serve is ready", func() bool { return strings.Contains(served.String(), "ready") })
			doc := test(t, w.A, "--one-way", "-t", "3", w.Data.B4.String())
			remember(t, home, record.Pair{From: "local", To: "b"}, doc.Cells[0].Goodput.Value, c.metric == record.RTTMedian)
			for _, d := range []wire.Direction{wire.AtoB, wire.BtoA} {
				bad := healthy
				c.change(&bad)
				w.Wire.Set(d, bad)
			}
			plan := strings.Replace(watchPlan, `, {name: b2, at: "fd00:77::2"}`, "", 1)
			plan = strings.Replace(plan, ", {from: b, to: local}, {from: local, to: b2}, {from: b2, to: local}", "", 1)
			plan = strings.Replace(plan, "time: 500ms", "time: 3s", 1)
			if err := os.WriteFile(filepath.Join(home, "plan.yaml"), []byte(plan), 0o600); err != nil {
				t.Fatal(err)
			}
			out := run(w.A, "watch", filepath.Join(home, "plan.yaml"), "--json")
			named := func() bool {
				for _, a := range alarmsOf(out) {
					for _, x := range a.Changes {
						if x.Metric != c.metric {
							continue
						}
						for _, f := range a.Findings {
							for _, cause := range c.causes {
								if f.Cause == cause {
									t.Logf("%s: %+v; %s", c.name, x, f.Summary)
									return true
								}
							}
						}
						if c.causes == nil {
							t.Logf("%s: %+v; %+v", c.name, x, a.Findings)
							return true
						}
					}
				}
				return false
			}
			begin := time.Now()
			for !named() {
				if time.Since(begin) > 10*time.Minute {
					t.Fatalf("no such alarm; %s", out)
				}
				time.Sleep(time.Second)
			}
			t.Logf("%s: named after %v", c.name, time.Since(begin).Round(time.Second))
		})
	}
}
