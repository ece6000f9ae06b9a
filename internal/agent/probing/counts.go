package probing

import (
	"maps"

	"thru/internal/bus"
	"thru/internal/stamp"
)

// Counts are the probes to a receiver since the start, those of the last minute excepted.
type Counts struct{ Sent, Received, Lost int64 }

// Counts returns the counts by the names of receivers, as their watches call them.
func (p *Probing) Counts() map[string]Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// count counts a summary. The first receivers have counts: clients choose the names. The caller holds mu.
func (p *Probing) count(to string, s stamp.Summary) {
	c, known := p.counts[to]
	if !known && len(p.counts) >= bus.MostPairs {
		return
	}
	p.counts[to] = Counts{c.Sent + int64(s.Sent), c.Received + int64(s.Sent-s.Lost), c.Lost + int64(s.Lost)}
}
