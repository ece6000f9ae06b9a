// Package capture makes facts of captured packets: live, in a ring of the
// kernel (live), or from files (pcapfile). Frames are decoded (frame), followed
// connection by connection (trace), and become a measure.Document that the
// rules of package diagnose judge as any other.
//
// # One capture
//
//  1. `thru explain FILE.pcap`: Load streams the file, decodes each frame, and follows its TCP connections (trace.Builder) in bounded
//     memory; trace.Recorder keeps what two captures of one flow are compared by (trace.Cross). Document makes an ordinary result of it. A
//     rule has a second judge for packets.
//  2. `thru test --capture`: the agent opens the ring before the engine opens its connections, and keeps the first bytes of the
//     test's own packets. Nothing is analysed while the traffic runs. Package control fetches the packets of both ends as pcapng after the run, and
//     from there on they are treated as files.
//  3. An end captures for its own process, or for a client with the join string of `thru serve --allow capture`.
package capture
