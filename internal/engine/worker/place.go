package worker

import (
	"net"
	"slices"

	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/sock"
)

// place chooses the CPUs of every stream's thread, unless the user has chosen them or leaves the choice to the scheduler.
func (w *worker) place(near host.PlacementFacts) {
	if w.cmd.Spec.Unplaced {
		return
	}
	q := near.Query()
	q.Allowed = host.Allowed() // the CPUs of this process, which may be fewer
	q.Streams = w.cmd.Spec.FirstStream + len(w.flow.streams)
	for _, s := range w.flow.streams {
		if len(s.cpus) > 0 {
			s.placementReason = "requested (-A)"
			continue
		}
		q.Loopback = isLoopback(s.sock)
		q.Stream = w.cmd.Spec.FirstStream + s.index
		if q.Loopback && w.cmd.Spec.Protocol == measure.UDP && w.cmd.Spec.Traffic == measure.Bulk {
			s.placementReason = "left to the scheduler: over loopback, datagrams are faster on two CPUs"
			continue
		}
		if q.Loopback && w.cmd.Adopt != nil {
			s.placementReason = "left to the scheduler: over loopback both ends should share a CPU, but thru cannot place the other program"
			continue
		}
		q.IncomingCPU = sock.Read(s.sock, sock.IncomingCPU)
		s.cpus, s.placementReason = host.Placement(q)
	}
}

// avoidDataCPUs moves the caller, the sampler, to CPUs without data threads, if there are any: a reading would delay the stream that it reads.
func (w *worker) avoidDataCPUs() {
	rest := host.Allowed()
	for _, s := range w.flow.streams {
		rest = slices.DeleteFunc(rest, func(cpu int) bool { return slices.Contains(s.cpus, cpu) })
	}
	if len(rest) > 0 {
		bindThread(rest) // if refused, it samples all the same
	}
}

// isLoopback reports whether both ends of a socket are on this host.
func isLoopback(s socket) bool {
	local, _, err := net.SplitHostPort(s.LocalAddr().String())
	if err != nil {
		return false
	}
	peer, _, err := net.SplitHostPort(s.RemoteAddr().String())
	return err == nil && (local == peer || net.ParseIP(peer).IsLoopback())
}
