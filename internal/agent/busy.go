package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// mostNamed bounds how many tests Busy names.
const mostNamed = 3

// OnBusy sets the function to call when Busy may have changed. It must not block.
func (a *Agent) OnBusy(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy = f
}

// Busy describes the running tests for other clients: "web1 to web2, and 4 more; 2
// clients wait". It is empty when nothing runs.
func (a *Agent) Busy() string {
	clients := map[string]bool{}
	a.mu.Lock()
	tunedBy, tuner := a.tunedBy, a.tuner
	flows := a.flowsOf(clients)
	for _, s := range a.sessions {
		clients[s.client] = true
		if f := s.spec.From + " to " + s.spec.To; !slices.Contains(flows, f) {
			flows = append(flows, f)
		}
	}
	a.mu.Unlock()
	slices.Sort(flows)
	text := strings.Join(flows[:min(len(flows), mostNamed)], ", ")
	if more := len(flows) - mostNamed; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	waiting := a.turns.queued() - len(clients)
	if tuner != "" {
		waiting = a.turns.othersQueued(tuner)
		text = strings.TrimSuffix("is being tuned by "+cmp.Or(tunedBy, "a client")+": "+text, ": ")
	}
	switch {
	case text == "" && waiting > 0: // between two tests
		text, waiting = "a client has the turn", waiting-1
	case text == "":
		return ""
	}
	if waiting > 0 {
		text += fmt.Sprintf("; %d waiting", waiting)
	}
	return text
}

// flowsOf lists the jobs for Busy, and marks their clients. The caller holds mu.
func (a *Agent) flowsOf(clients map[string]bool) (flows []string) {
	for _, w := range a.jobs {
		j := w.base()
		if j.isFree {
			continue
		}
		clients[j.client] = true
		if !slices.Contains(flows, j.what) && !(j.what == movingFiles && j.isOver()) {
			flows = append(flows, j.what)
		}
	}
	return flows
}
