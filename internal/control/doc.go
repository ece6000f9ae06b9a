// Package control runs a plan over end points and assembles the result. It is
// a state machine that prints nothing: what a person may want to see on the
// way goes to an Observer. A run on this machine alone goes through an agent
// in this process, so that one host and many are one code path.
//
// # One run of a flow
//
//  1. reserve: each agent has one turn; clients queue, or share it (--together).
//  2. prepare at the end that listens: its worker opens a port of the data range and makes a token. prepare at the end that dials
//     (the end that runs the command, so firewalls see one direction): its worker opens all connections, has the
//     other end prove on each that it holds the token, and measures the idle RTT on the first.
//  3. start at the receiver, then at the sender. A receiver's clock begins with its first byte, so no clocks need to agree. The ramp (20 RTT, at
//     least 1 s) is not counted; the measured time is read in 1 s bins at both ends. Where packets are captured, the dialling
//     end's ring (capture/live) opens before the connections, the listening one's when its port is known. control fetches both
//     after the traffic (captured) and follows their connections in one place (capture/trace).
//  4. The receiver says that its time is over: on stream 0, or on the connection beside the streams (docs/data.md). Until
//     then the sender keeps sending, so the last bin is full.
//  5. collect fetches the evidence of both ends; release passes the turn on.
//
// Whoever dies, nothing stays: a worker ends when its pipe closes, an agent ends the sessions of a client whose lease is over, and every wait
// has a bound. A flow is one direction. Bidirectional traffic is two flows at once, each with its own workers and evidence; on one
// connection (--one-connection) the workers of the first flow move both, and the second takes its evidence from them.
//
// # One run of many pairs
//
// `thru run` connects all end points at the same time, and keeps plan and document in a folder (package runs), written anew after each step:
// an interrupt or a kill costs the step under way, and --resume runs the rest.
//
//  1. Run walks plan.Schedule(). A plan of many pairs goes on after one that failed; a command about two hosts ends there. A step with Apart
//     (independent.go) shares its phases with a step of one pair, but each flow has an error of its own.
//  2. turns.go takes the turn at every agent: all at once where nobody else is ahead, else one after the other in the order of the agents' ids,
//     which all controllers share. So two of them never wait for each other.
//  3. clock.go compares each agent's monotonic clock with this process's (NTP's formula, the quickest of 8 exchanges; half its
//     round trip is the bound), before the traffic and after it. No wall clock counts; a warning names clocks that are far apart.
//  4. All pairs are prepared, 64 at a time. Where the plan leaves open who dials, the other end tries too (either.go).
//  5. Every session is told the same moment on its agent's clock, receivers a little before; agent/start.go waits for it beside the
//     request. The measured time begins after a ramp that all share. Its start, as the worker reports it, is Evidence.BeganNs.
//  6. watch.go hears all agents. One that is lost, fails or falls silent ends its flows; the others run to their end and are
//     collected. The next steps leave it out. stat.Groups judges what the pairs carried while all of them ran.
//  7. Before the traffic fitall.go judges each host and probes up to 64 paths, those at the same time that share no host. A gate that fails
//     takes out its host or its pair, by name; the run ends where none is left.
//  8. Variants that a person or a reboot brings into force run in blocks (plan/blocks.go): cli/manual.go says what to do, waits until
//     a fact of the host shows it, connects anew, and lets the next Runner go on from the document so far (Runner.Until, as --resume does).
//     stat/blocks.go compares.
//
// Observers of a run hear events (events.go), and look at those that they show.
//
// # One check
//
//  1. `thru check` (check.go) takes the turn at every agent, has each read its facts (package host) and watch its load for a second, and has the
//     peer answer a probe (package path) that the local agent dials; all at the same time. cause.Judge judges the outcome.
//  2. `thru test` and `thru ladder` judge the same gates before any traffic (fit.go), on facts that take milliseconds and a quick probe of the
//     path. Its outcome is kept for ten minutes (library/known.go) under a key of all that it depends on at both ends. A gate
//     that fails ends the command (exit code 3); --force goes on, and the document says so.
//  3. The two ends of a probe share one TCP connection, on which they show the token and agree on each stage; datagrams go beside it. So it
//     needs no ICMP, no root, and one port of the data range.
//  4. Systems for which there is no agent (ssh://root@esx) are read by their own commands (host/platform), and judged by the same gates.
package control
