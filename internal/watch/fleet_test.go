package watch

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"thru/internal/hypervisor"
	"thru/internal/measure"
)

// TestChangedFacts: a fact that changed has the time of the first turn that shows it, also if it went back and forth; what is as before is none.
func TestChangedFacts(t *testing.T) {
	begin := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	turn := func(n int, host, kernel string) *measure.Document {
		return &measure.Document{
			StartedAt: begin.Add(time.Duration(n) * time.Hour),
			EndPoints: []measure.EndPoint{
				{Name: "a", Facts: &measure.Facts{}},
				{Name: "b", Facts: &measure.Facts{Kernel: &kernel}, Placement: &measure.Placement{Guest: "vm-1", HostName: host}},
			},
			Cells: []measure.Cell{{From: "a", To: "b", Protocol: measure.TCP, Streams: 1, Goodput: &measure.Figure{Value: 1e9}, Runs: []measure.Run{{Flows: []measure.Flow{{From: "a", To: "b"}}}}}},
		}
	}
	h := Hosts{}.Open(nil)
	for i, host := range []string{"esx1", "esx1", "esx2", "esx1", "esx2"} {
		h.remember(pair, turn(i, host, "6.12"))
	}
	at := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Hour) }
	for _, c := range []struct {
		name   string
		since  time.Time
		now    *measure.Document
		fact   string // the only one; empty: none
		before string
		seen   time.Time
	}{
		{"it moved back and forth", at(2), turn(5, "esx2", "6.12"), "end_points.placement.host_name", "esx1", at(4)},
		{"it is back", at(2), turn(5, "esx1", "6.12"), "", "", begin},
		{"a new kernel", at(5), turn(5, "esx2", "6.13"), "kernel", "6.12", at(5)},
		{"before all turns", begin.Add(-time.Hour), turn(5, "esx2", "6.12"), "end_points.placement.host_name", "esx1", at(4)},
	} {
		facts := h.changedFacts(pair, c.since, c.now)
		if c.fact == "" && len(facts) == 0 {
			continue
		}
		if len(facts) != 1 || facts[0].Host != "b" || facts[0].Fact != c.fact || facts[0].Before != c.before || !facts[0].Since.Equal(c.seen) || facts[0].Name == "" {
			t.Errorf("%s: %+v", c.name, facts)
		}
	}
}

// TestHypervisorsAgain: hypervisors stay connected for an hour, and are connected again by another plan. Turns that use those of before end first.
func TestHypervisorsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var closed atomic.Int32 // by timers
		opened := 0
		plan := Hosts{Hypervisors: func(context.Context) ([]hypervisor.Source, func(), error) {
			opened++
			return make([]hypervisor.Source, opened), func() { closed.Add(1) }, nil
		}}
		first := plan.Open(nil)
		for i, c := range []struct {
			of     *Hosts
			after  time.Duration
			opened int
			closed int32
		}{
			{first, 0, 1, 0}, {first, 59 * time.Minute, 1, 0}, {first, 2 * time.Minute, 2, 0}, {plan.Open(first), 0, 3, 0}, {Hosts{}.Open(first), time.Hour, 0, 2},
		} {
			time.Sleep(c.after)
			synctest.Wait()
			if all, err := c.of.sources(t.Context()); len(all) != c.opened || closed.Load() != c.closed || err != nil {
				t.Errorf("%d: %d are connected, %d closed, %v", i, len(all), closed.Load(), err)
			}
		}
		first.Close()
		if n := closed.Load(); n != 3 {
			t.Errorf("%d are closed at the end", n)
		}
	})
}
