// Package capture analyses captured packets: live ones, from a ring of the
// kernel (live), or files (pcapfile). It decodes frames (frame), follows each
// TCP connection (trace), and makes a measure.Document, which the rules of
// package diagnose judge like any other.
//
// # One capture
//
//  1. `thru explain FILE.pcap`: Load streams the file, decodes each frame, and follows its TCP connections (trace.Builder) in bounded
//     memory; trace.Recorder keeps the packet records for a comparison of two captures of one flow (trace.Cross). Document makes an
//     ordinary result. A rule has a second judge for packets.
//  2. `thru test --capture`: the agent opens the ring before the engine opens its connections, and keeps the first bytes of the
//     test's own packets. Nothing is analysed while the traffic runs. Package control fetches the packets of both ends as pcapng after the run, and
//     from then on treats them as files.
//  3. An end captures for its own process, or for a client with the join string of `thru serve --allow capture`.
package capture
