// Package worker moves test traffic: each end of a flow in a process of its
// own, so that its CPU and memory are accounted apart, garbage collection never
// interrupts it, and a crash or a hang does not take the agent along.
//
// The agent's side is Open, Adopt and Session (open.go, adopt.go, process.go,
// session.go); the worker's side is Main (worker.go, connect.go, sampler.go),
// which moves data along one of the paths of this system (copy_linux.go,
// portable.go). Open connects by thru's own handshake (docs/data.md); Adopt
// takes over what an engine has connected by another protocol.
//
// # Why it is built so
//
// The hot threads make raw system calls, of which Go's scheduler knows nothing. So the process runs without garbage
// collection and without asynchronous preemption, which both would wait for a blocked thread. GOMAXPROCS is above the
// number of threads. Killing the process is always safe.
//
//   - A sample is a binary frame with the kernel's raw tcp_info: taking one allocates nothing.
//   - Blocked time is the rest: a hot thread does nothing but socket calls. So wall time, less its time on a CPU and its
//     wait for one (/proc/TID/schedstat), was spent blocked in them. The hot path reads no clock for it.
//   - A data path is a row of a table (paths.go). Each end probes its own, takes what was asked for or the next that
//     works, and names it in its evidence. So the ends may differ: "sendfile -> lean", "gso -> mmsg".
//   - Threads are placed (host.Placement). Over loopback both ends of a TCP stream or of a request share one CPU, since the kernel
//     handles a packet where it was sent; that is 1.7 times the rate of two CPUs. UDP is left to the scheduler, which is
//     faster there. Near a NIC the CPUs of its NUMA node are taken, without the one that handles its interrupts.
//   - Few CPUs (the axis cpus of a plan) are a set: the worker binds all its threads before it connects. The kernel's work
//     for packets goes where interrupts go, so the summary says how much of it left the set.
//   - The kernel holds a rate of TCP (SO_MAX_PACING_RATE), which spaces segments. Each end holds what it allows (--max-rate) by
//     itself. UDP goes in bursts of at most 250 us, since pacing it in the kernel needs the qdisc fq.
//   - One thread sends requests at a rate and another takes the answers, so that a slow answer delays no request (no
//     coordinated omission). Back to back one thread does both: that is faster, and its rate is the measurement.
package worker

import (
	"context"
	"time"

	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/token"
)

// connectWait bounds the time from Open of the listening end to the last connection.
const connectWait = 30 * time.Second

// replyWait bounds what a worker may take to come up and answer.
const replyWait = 12 * time.Second

// Open starts a worker that connects by thru's own handshake. A listening end
// returns when it listens, a dialling end when all its streams are connected.
// without names features that are taken to be missing here, so that a test can
// see what happens then: a data path of package measure, or "pacing".
func Open(ctx context.Context, p *Program, e engine.End, without []string) (*Session, error) {
	if err := Check(e.Spec); err != nil {
		return nil, err
	}
	if e.Spec.Duplex && e.Spec.Protocol == measure.UDP {
		return nil, fault.Usagef("leave --one-connection out", "worker: checking the request: datagrams have no connection to share")
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
