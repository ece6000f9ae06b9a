package watch

import (
	"context"
	"sync"
	"time"

	"thru/internal/hypervisor"
)

const (
	// sourcesLast is how long hypervisors stay connected: one that restarted, or was away, is found again.
	sourcesLast = time.Hour
	// placeTime bounds what they may delay a turn.
	placeTime = 5 * time.Second
)

// hypervisors are the connected hypervisors of a watch.
type hypervisors struct {
	mu      sync.Mutex
	by      *Hosts // whose plan names them
	at      time.Time
	sources []hypervisor.Source
	close   func()
}

// sources returns the hypervisors that may run the end points. They are connected for as long as the context lasts; those of before close when no
// turn uses them any more.
func (h *Hosts) sources(ctx context.Context) ([]hypervisor.Source, error) {
	x := &h.above
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case h.Hypervisors == nil:
		return nil, nil
	case x.by == h && time.Since(x.at) < sourcesLast:
		return x.sources, nil
	case x.close != nil:
		time.AfterFunc(explainTime+patience, x.close)
	}
	var err error
	x.sources, x.close, err = h.Hypervisors(ctx)
	x.by, x.at = h, time.Now()
	return x.sources, err
}
