package worker

import (
	"net"
	"slices"

	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/sock"
	"thru/internal/unit"
)

// confine restricts the whole process to the CPUs that the request allows this end, to measure on a large host what a host with fewer CPUs would carry (B-16).
// Later threads inherit the restriction, and placement stays within it.
func (w *worker) confine() error {
	list, cpu := w.cmd.Spec.ReceiverCPUs, w.cmd.Spec.ReceiverCPU
	if w.cmd.Sends {
		list, cpu = w.cmd.Spec.SenderCPUs, w.cmd.Spec.SenderCPU
	}
	if list == "" {
		return nil
	}
	cpus, err := unit.ParseList(list, unit.MaxCPU)
	if err != nil {
		return fault.Usagef("give a list of CPUs such as 0-3,8", "worker: restricting to CPUs: %w", err)
	}
	if cpu != nil && !slices.Contains(cpus, *cpu) {
		return fault.Usagef("use a CPU of the list, or omit -A", "worker: restricting to CPUs %s: its thread is requested on CPU %d, which is not in the list", list, *cpu)
	}
	allowed := host.Allowed()
	lacking := slices.DeleteFunc(slices.Clone(cpus), func(c int) bool { return slices.Contains(allowed, c) })
	if len(allowed) > 0 && len(lacking) > 0 {
		return fault.Usagef("choose among the CPUs "+unit.List(allowed)+": the others do not exist there, or the cpuset or affinity of thru excludes them (taskset -p, cpuset(7))",
			"worker: restricting to CPUs %s: it may not use %s", list, unit.List(lacking))
	}
	if err := confineProcess(cpus); err != nil {
		return err
	}
	w.confined = unit.List(cpus)
	return nil
}

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
