package agent

import "thru/internal/agent/probing"

// Stats are counts of an agent, for monitoring.
type Stats struct {
	Sessions int                       // ends of flows that are open now
	Opened   int                       // since the start
	Waiting  *int                      // results that no controller has yet; nil: they are not kept
	Probes   map[string]probing.Counts // of watches, by the name of the receiver
}

// Stats returns the counts of the moment.
func (a *Agent) Stats() Stats {
	s := Stats{Probes: a.probing.Counts()}
	if a.conf.Spool != nil {
		s.Waiting = new(a.conf.Spool.Waiting())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s.Sessions, s.Opened = len(a.sessions), a.opened
	return s
}
