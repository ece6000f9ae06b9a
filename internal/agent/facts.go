package agent

import (
	"slices"
	"sync"
	"time"

	"thru/internal/host"
	"thru/internal/measure"
)

// facts keeps what was read of the host for as long as thirty readings take:
// 0.2 s on Linux, where they are files; minutes where they are commands.
type facts struct {
	mu    sync.Mutex
	last  measure.Facts
	until time.Time
}

const readings = 30

// read returns the facts; callers at the same time wait for one reading.
func (f *facts) read(h *host.Host) measure.Facts {
	f.mu.Lock()
	defer f.mu.Unlock()
	if begin := time.Now(); begin.After(f.until) {
		f.last = h.Facts()
		f.until = time.Now().Add(readings * time.Since(begin))
	}
	all := f.last
	all.NotChecked = slices.Clip(all.NotChecked) // a caller adds to its own
	return all
}
