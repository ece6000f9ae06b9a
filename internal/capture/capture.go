// Package capture makes facts of captured packets: live, in a ring of the
// kernel (live), or from files (pcapfile). Frames are decoded (frame), followed
// connection by connection (trace), and become a measure.Document that the
// rules of package diagnose judge as any other.
package capture
