// Package control runs a plan over end points and assembles the result. It is a
// state machine that prints nothing: it reports progress to an Observer. A run on
// this machine alone uses an agent in this process, so that one host and many
// share one code path.
//
// # One run of a flow
//
//  1. reserve: each agent has one turn; clients queue, or share it (--together).
//  2. prepare at the end that listens: its worker opens a port of the data range and makes a token. prepare at the end that dials
//     (the end that runs the command, so firewalls see one direction): its worker opens all connections, has the
//     other end prove on each that it holds the token, and measures the idle RTT on the first.
//  3. start at the receiver, then at the sender. A receiver's clock begins with its first byte, so no clocks need to agree. The ramp (20 RTT, at
//     least 1 s, in an explanation 0.4 s) is not counted; both ends count the measured time in bins of 1 s. With a capture, the dialling end's ring (capture/live)
//     opens before the connections, that of the listening end once its port is known. control fetches both captures after the traffic
//     (CapturePart) and analyses their connections in one place (capture/trace).
//  4. The receiver reports the end of its time: on stream 0, or on the control connection of the streams (docs/data.md). Until
//     then the sender keeps sending, so the last bin is full.
//  5. collect fetches the evidence of both ends; release gives the turn to the next client.
//
// No process or session survives a failure: a worker ends when its pipe closes, an agent ends the sessions of a client whose lease expired, and
// every wait has a time limit. A flow has one direction. Bidirectional traffic is two flows at once, each with its own workers and evidence; on one
// connection (--one-connection) the workers of the first flow move both, and the second takes its evidence from them.
//
// # One run of many pairs
//
// `thru run` connects all end points at the same time, and keeps plan and document in a folder (package runs), rewritten after each step:
// an interrupt or a kill costs only the current step, and --resume runs the rest.
//
//  1. Run walks plan.Schedule(). A plan of many pairs continues after a pair failed; a command about two hosts ends there. A step with
//     Independent (independent.go) has the same phases as a step of one pair, but each flow has its own error.
//  2. turns.go takes the turn at every agent: all at once where no other client is ahead, else one after the other in the order of the agents' ids,
//     which all controllers share. So two controllers never wait for each other.
//  3. clock.go compares each agent's monotonic clock with this process's (NTP's formula, the shortest of 8 exchanges; half its
//     round trip is the error bound), before and after the traffic. Wall clocks are not used; a warning names those that are far apart.
//  4. All pairs are prepared, 64 at a time. Where the plan leaves open which end dials, the other end tries too (either.go).
//  5. Every session gets the same start time on its agent's clock, receivers a little before; agent/start.go waits for it in a goroutine.
//     The measured time begins after a ramp that all share. Its start, as the worker reports it, is Evidence.BeganNs.
//  6. watch.go receives the events of all agents. An agent that is lost, fails or falls silent ends its flows; the others run to their end
//     and are collected. The next steps leave it out. stat.Groups judges what the pairs carried while all of them ran.
//  7. Before the traffic fitall.go judges each host and probes up to 64 paths, in parallel where they share no host. A gate that fails
//     excludes its host or its pair, by name; the run ends where none is left.
//  8. Variants that need a manual step or a reboot run in blocks (plan/blocks.go): cli/manual.go says what to do, waits until
//     a fact of the host shows it, reconnects, and the next Runner continues from the document so far (Runner.Until, as --resume does).
//     stat/blocks.go compares.
//
// Observers of a run receive events (events.go) and show those they choose.
//
// # One check
//
//  1. `thru check` (check.go) takes the turn at every agent, reads its facts (package host) and its load for a second, and has the
//     peer answer a probe (package path) that the local agent dials; all at the same time. cause.Judge judges the result.
//  2. `thru test` and `thru ladder` judge the same gates before any traffic (fit.go), on facts that take milliseconds and a quick probe of the
//     path. The result is kept for ten minutes (library/known.go) under a key of all that it depends on at both ends. A gate
//     that fails ends the command (exit code 3); --force continues, and the document says so.
//  3. The two ends of a probe share one TCP connection, on which they show the token and agree on each stage; datagrams use a UDP socket. So
//     a probe needs no ICMP, no root, and one port of the data range.
//  4. Systems without an agent (ssh://root@esx) are read by their own commands (host/platform), and judged by the same gates.
package control
