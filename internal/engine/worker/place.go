package worker

import (
	"net"
	"slices"

	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/sock"
)

// place chooses the CPUs of every stream's thread, where neither the user has
// chosen nor the choice is left to the scheduler.
func (w *worker) place(near host.PlacementFacts) {
	if w.cmd.Spec.Unplaced {
		return
	}
	q := near.Query()
	q.Allowed = host.Allowed() // this process's own, which may be fewer
	q.Streams = w.cmd.Spec.FirstStream + len(w.flow.streams)
	for _, s := range w.flow.streams {
		if len(s.cpus) > 0 {
			s.placementReason = "asked for (-A)"
			continue
		}
		q.Loopback = isLoopback(s.sock)
		q.Stream = w.cmd.Spec.FirstStream + s.index
		if q.Loopback && w.cmd.Spec.Protocol == measure.UDP && w.cmd.Spec.Traffic == measure.Bulk {
			s.placementReason = "left to the scheduler: over loopback datagrams pass faster on two CPUs"
			continue
		}
		if q.Loopback && w.cmd.Adopt != nil {
			s.placementReason = "left to the scheduler: over loopback both ends want one CPU, and the other one is not thru's to place"
			continue
		}
		q.IncomingCPU = sock.Read(s.sock, sock.IncomingCPU)
		s.cpus, s.placementReason = host.Placement(q)
	}
}

// avoidDataCPUs keeps the caller, the sampler, off the CPUs that data threads are
// bound to, where there are others: a reading would hold up what it reads.
func (w *worker) avoidDataCPUs() {
	rest := host.Allowed()
	for _, s := range w.flow.streams {
		rest = slices.DeleteFunc(rest, func(cpu int) bool { return slices.Contains(s.cpus, cpu) })
	}
	if len(rest) > 0 {
		bindThread(rest) // refused, it samples all the same
	}
}

// isLoopback tells whether both ends of a socket are this host.
func isLoopback(s socket) bool {
	local, _, err := net.SplitHostPort(s.LocalAddr().String())
	if err != nil {
		return false
	}
	peer, _, err := net.SplitHostPort(s.RemoteAddr().String())
	return err == nil && (local == peer || net.ParseIP(peer).IsLoopback())
}
