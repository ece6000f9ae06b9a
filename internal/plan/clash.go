package plan

import (
	"thru/internal/fault"
	"thru/internal/measure"
)

// clash refuses options that do not go together.
func (r Request) clash() error {
	udp, bulk, crr := r.Protocol == measure.UDP, r.Traffic == measure.Bulk, r.Traffic == measure.CRR
	lean := (r.IO == measure.IOSendfile || r.IO == measure.IOLean) && !r.IOForced
	for _, c := range []struct {
		bad               bool
		hint, these, with string
	}{
		{r.RRUL && (!bulk || udp || r.Bidir || r.Reverse || r.OneWay || r.Streams > 1 || r.DSCP > 0 || r.BindPort != 0),
			"it is four streams of TCP each way at once, each with a DSCP of its own", "--rrul", "-u --rr --crr --bidir -R --one-way -P --dscp --cport"},
		{r.Search && (!bulk || r.Bidir || r.Rate > 0 || r.TotalRate > 0), "take -u --search, with -R for the other direction, and without -b: it finds the rate", "--search", "--rr --crr --bidir -b --total-bitrate"},
		{lean && udp, "UDP takes --io gso, mmsg or portable", "-Z --lean", "-u"},
		{lean && !bulk, "a request is too small to gain by it: leave it out", "-Z --lean", "--rr --crr"},
		{r.Verify && (r.IO == measure.IOSendfile || r.IO == measure.IOLean || !bulk), "data can only be compared where it is copied", "--verify", "-Z --lean --io --rr --crr"},
		{(r.Rate > 0 || r.TotalRate > 0) && !bulk, "requests take --rate N, in requests a second", "-b --total-bitrate", "--rr --crr"},
		{(r.Amount > 0 || r.Blocks > 0) && (!bulk || r.Latency || r.Search), "-n and -k are of bulk traffic alone", "-n -k", "--rr --crr --latency --rrul --search"},
		{crr && udp, "--crr opens TCP connections; by UDP: --rr -u", "--crr", "-u"},
		{crr && r.Reverse, "--crr goes from here only: run it at the other end instead", "-R", "--crr"},
		{crr && (r.Congestion != "" || r.MSS != 0 || r.Window != (measure.Pair{}) || r.BindDev != "" || r.BindPort != 0), "of the socket options --crr takes --dscp and -B", "-C -M -w --bind-dev --cport", "--crr"},
		{!bulk && r.Bidir, "a request's answer takes the other direction anyway", "--bidir", "--rr --crr"},
		{r.OneConnection && udp, "datagrams have no connection: leave it out", "--one-connection", "-u"},
		{r.Latency && !bulk, "--rr measures latency itself", "--latency", "--rr --crr"},
		{udp && (r.Congestion != "" || r.MSS != 0 || r.NoDelay), "it is of TCP", "-C -M -N", "-u"},
		{r.Capture > 0 && (udp || !bulk), "a capture follows connections of TCP that carry data", "--capture --keep", "-u --rr --crr"},
	} {
		if c.bad {
			return fault.Clashing(c.hint, c.these, c.with)
		}
	}
	return nil
}
