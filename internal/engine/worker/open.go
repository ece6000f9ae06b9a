// Package worker moves test traffic: each end of a flow in its own process, so that its CPU and memory are accounted separately, garbage collection never
// interrupts it, and a crash or a hang does not affect the agent.
//
// The agent's side is Open, Adopt and Session (open.go, adopt.go, process.go, session.go); the worker's side is Main (worker.go, connect.go, sampler.go),
// which moves data along one of the paths of this system (copy_linux.go, portable.go). Open connects with thru's own handshake (docs/data.md); Adopt takes
// over connections that an engine has made with another protocol.
//
// # Design
//
// The hot threads make raw system calls, of which Go's scheduler does not know. So the process runs without garbage collection and without asynchronous
// preemption, which both would wait for a blocked thread. GOMAXPROCS is above the number of threads. Killing the process is always safe.
//
//   - A sample is a binary frame with the kernel's raw tcp_info: it allocates nothing.
//   - A hot thread only makes socket calls. So it was blocked in them for its wall time minus its time on a CPU and its
//     wait for one (/proc/TID/schedstat). The hot path reads no clock for it.
//   - A data path is a row of a table (paths.go). Each end tests its own paths, takes the requested one or the next that
//     works, and names it in its evidence. So the ends may differ: "sendfile -> lean", "gso -> mmsg".
//   - Threads are placed (host.Placement). Over loopback both ends of a TCP stream or of a request share one CPU, because the
//     kernel processes a packet where it was sent; that is 1.7 times the rate of two CPUs. UDP is left to the scheduler, which is
//     faster there. Near a NIC the threads use the CPUs of its NUMA node, without the one that handles its interrupts.
//   - With a restricted CPU set (the axis cpus of a plan) the worker binds all its threads before it connects. The kernel's
//     packet processing follows the interrupts, so the summary says how much of it ran outside the set.
//   - The kernel paces TCP (SO_MAX_PACING_RATE), which spaces segments. Each end enforces its own limit (--max-rate).
//     UDP leaves in bursts of at most 250 us, because kernel pacing of UDP needs the qdisc fq.
//   - At a request rate one thread sends requests and another receives the responses, so that a slow response delays no
//     request (no coordinated omission). Back to back one thread does both: that is faster, and its rate is the measurement.
package worker

import (
	"context"
	"time"

	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/token"
)

// connectWait limits the time from Open of the listening end to the last connection.
const connectWait = 30 * time.Second

// replyWait limits the time for a worker to start and answer.
const replyWait = 12 * time.Second

// Open starts a worker that connects with thru's own handshake. A listening end returns when it listens, a dialling end when all its streams are connected.
// without names features to disable, so that a test can see the effect: a data path of package measure, or "pacing".
func Open(ctx context.Context, p *Program, e engine.End, without []string) (*Session, error) {
	if err := Check(e.Spec); err != nil {
		return nil, err
	}
	if e.Spec.Duplex && e.Spec.Protocol == measure.UDP {
		return nil, fault.Usagef("omit --one-connection", "worker: checking the request: datagrams have no connection to share")
	}
	shown := e.Token
	if !e.Dials {
		shown = token.New()
	}
	proc, err := p.start(threads(e.Spec))
	if err != nil {
		return nil, err
	}
	s := newSession(e, proc, shown, without)
	if err := s.open(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}
