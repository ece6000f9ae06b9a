package agent

import (
	"sync"
	"sync/atomic"
	"testing"

	"thru/internal/host"
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
			if b.get(t.Context(), h, isQuiet) != nil {
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
