package agent

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/host"
	"thru/internal/measure"
)

// Many sessions that end together read the idle host once, also where it was not idle.
func TestBaselineIsShared(t *testing.T) {
	for name, quiet := range map[string]bool{"quiet": true, "tests run": false} {
		var b baseline
		var asked atomic.Int64
		reading := make(chan struct{})
		var once sync.Once
		isQuiet := func() bool {
			asked.Add(1)
			once.Do(func() { close(reading) })
			return quiet
		}
		h := host.New()
		var wg sync.WaitGroup
		var got atomic.Int64
		one := func() {
			if b.get(t.Context(), h, isQuiet, 0) != nil {
				got.Add(1)
			}
		}
		wg.Go(one)
		<-reading
		before := asked.Load()
		for range 20 { // they ask while the first reads
			wg.Go(one)
		}
		wg.Wait()
		if n := got.Load(); quiet && n != 21 || !quiet && n != 0 {
			t.Errorf("%s: %d of 21 got a reading", name, n)
		}
		if quiet && asked.Load()-before > 10 { // two for each reading; after a slow start one more
			t.Errorf("%s: the host was looked at %d times", name, asked.Load())
		}
	}
}

// An experiment is content with an older reading, also of a busy host; other runs are not.
func TestBaselineOfAnAge(t *testing.T) {
	old := &measure.HostSpan{}
	b := baseline{at: time.Now().Add(-2 * baselineKeeps), span: old}
	quiet := func() bool { return true }
	if b.get(t.Context(), host.New(), quiet, time.Hour) != old {
		t.Error("an older reading is not enough")
	}
	if b.get(t.Context(), host.New(), quiet, 0) == old {
		t.Error("a reading of a busy host is reused")
	}
}

// The load that a check reads is also the idle host of the test that follows, although the path is probed meanwhile.
func TestLoadIsTheBaseline(t *testing.T) {
	a, _, _ := newFake(t, DefaultLimits())
	a.opening = 1
	if _, err := a.Facts(t.Context(), "c", bus.FactsRequest{LoadNs: 1}); err != nil {
		t.Fatal(err)
	}
	if a.baseline.span == nil || len(a.baseline.span.CPUs) == 0 {
		t.Errorf("no reading of the idle host: %+v", a.baseline.span)
	}
}
