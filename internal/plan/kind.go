package plan

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/fault"
	"thru/internal/measure"
)

// checkKind refuses what does not go with the kind of traffic that is asked for.
func (r Request) checkKind() error {
	udp, bulk := r.Protocol == measure.UDP, r.Traffic == measure.Bulk
	paths := measure.Paths(r.Protocol, r.Traffic)
	lean := r.IO == measure.IOSendfile || r.IO == measure.IOLean
	for _, c := range []struct {
		bad     bool
		hint    string
		message string
	}{
		{lean && udp, "-Z and --lean are TCP's: UDP takes --io gso, mmsg or portable", "-Z and --lean do not go with -u"},
		{lean && !bulk, "leave -Z or --lean out: a request is too small to gain by them", "-Z and --lean do not go with requests"},
		{r.IO != "" && !slices.Contains(paths, r.IO), "--io takes " + strings.Join(paths, ", ") + " for this traffic", fmt.Sprintf("data path %q does not exist for this traffic", r.IO)},
		{r.Verify && (lean || !bulk), "data can only be compared where it is copied: leave -Z, --lean, --rr or --crr out", "--verify does not go with -Z, --lean and requests"},
		{udp && bulk && badSize(r.Length, measure.MinDatagram, measure.MaxDatagram), "with -u, -l takes 16 to 65507 bytes", "the length of a datagram is out of range"},
		{udp && !bulk && badSize(r.Length, 1, measure.MaxDatagram), "with -u, -l takes 1 to 65507 bytes", "the length of a message is out of range"},
		{!bulk && badSize(r.Length, 1, measure.MaxMessage), "with --rr and --crr, -l takes REQUEST/RESPONSE up to 1M", "the length of a message is out of range"},
		{r.Rate < 0 || r.TotalRate < 0 || r.rate() > measure.MaxRate, "-b takes a rate such as 500M or 5G, at most 10T; 0 is as fast as it goes", "the rate is out of range"},
		{r.Rate > 0 && r.TotalRate > 0, "-b is of each stream, --total-bitrate of all: take one", "two rates are asked for"},
		{(r.Rate > 0 || r.TotalRate > 0) && !bulk, "requests take --rate N, in requests a second", "-b does not go with requests"},
		{r.PerSecond < 0 || r.PerSecond > measure.MaxPerSecond, "--rate takes up to 1000000 requests a second", "the rate of requests is out of range"},
		{r.PerSecond > 0 && bulk, "--rate is of requests: add --rr or --crr; for bulk traffic -b", "--rate does not go with bulk traffic"},
		{r.Amount < 0 || r.Blocks < 0 || r.Amount > 0 && r.Blocks > 0, "-n takes bytes such as 10G, -k a number of blocks: take one", "the amount is not clear"},
		{(r.Amount > 0 || r.Blocks > 0) && (!bulk || r.Latency || r.Search), "-n and -k are of bulk traffic alone", "an amount does not go with --rr, --crr, --latency or --search"},
		{r.Traffic == measure.CRR && udp, "--crr opens TCP connections; by UDP: --rr -u", "--crr does not go with -u"},
		{r.Traffic == measure.CRR && r.Reverse, "run it at the other end instead", "--crr goes from here only: -R does not go with it"},
		{r.Traffic == measure.CRR && (r.Congestion != "" || r.MSS != 0 || r.Window != (measure.Pair{}) || r.BindDev != "" || r.BindPort != 0), "of the socket options --crr takes --dscp and -B", "-C, -M, -w, --bind-dev and --cport do not go with --crr"},
		{!bulk && r.Bidir, "a request's answer takes the other direction anyway", "--bidir does not go with requests"},
		{r.OneConnection && udp, "datagrams have no connection: leave it out", "--one-connection does not go with -u"},
		{r.OneConnection && !r.Bidir, "it is of --bidir: both directions on the same connections", "--one-connection does not go without --bidir"},
		{r.Search && (!udp || !bulk || r.Bidir || r.Rate > 0 || r.TotalRate > 0), "take -u --search, with -R for the other direction, and without -b: it finds the rate", "--search does not go with TCP, requests, --bidir or a rate"},
		{r.DontFragment && !udp, "TCP never splits its segments; with -u it says whether datagrams may be", "--dont-fragment does not go with TCP"},
		{r.Latency && !bulk, "--rr measures latency itself", "--latency does not go with requests"},
		{udp && r.Congestion != "" || udp && r.MSS != 0 || udp && r.NoDelay, "they are TCP's", "-C, -M and -N do not go with -u"},
		{r.Capture < 0 || r.Capture > measure.MaxCapture, fmt.Sprintf("--capture-packets takes 1 to %d", measure.MaxCapture), "the bound of the capture is out of range"},
		{r.Capture > 0 && (udp || !bulk), "a capture follows connections of TCP that carry data: leave -u, --rr and --crr out", "--capture does not go with datagrams and requests"},
		{r.Unplaced && (r.LocalCPU != nil || r.PeerCPU != nil), "-A takes CPUs, or off", "-A contradicts itself"},
	} {
		if c.bad {
			return fault.Usagef(c.hint, "%s", c.message)
		}
	}
	if err := r.checkRRUL(); err != nil {
		return err
	}
	return r.checkFar()
}

// mostIPerf3Length is the most that an iperf3 server takes of -l with TCP.
const mostIPerf3Length = 1 << 20

// checkFar refuses what an end point that is no agent cannot do.
func (r Request) checkFar() error {
	name := r.engine()
	far, three, two := name != measure.Native, name == measure.IPerf3, name == measure.IPerf2
	const agent = "it takes thru at both ends (thru serve)"
	for _, c := range []struct {
		bad     bool
		hint    string
		message string
	}{
		{far && r.Traffic != measure.Bulk, agent, "requests do not go to an " + name + " end point"},
		{far && r.Latency, agent, "--latency does not go to an " + name + " end point"},
		{far && r.Search, agent, "--search does not go to an " + name + " end point"},
		{far && r.Verify, agent, "--verify does not go to an " + name + " end point"},
		{far && r.DataAddr != "", "the address is in the end point", "--data-addr does not go to an " + name + " end point"},
		{three && r.OneConnection, "iperf3 opens connections for each direction: leave it out", "--one-connection does not go to an iperf3 end point"},
		{three && r.Protocol != measure.UDP && max(r.Length.Send, r.Length.Recv) > mostIPerf3Length, "iperf3 takes -l up to 1M", "the length is out of range"},
		{two && r.Bidir && r.Protocol == measure.UDP, "leave --bidir out: both directions are measured one after the other", "iperf2 does not send datagrams both ways at once"},
		{two && differ(r.Window), "name one size: an iperf2 server sets its own by its -w", "the receiver's window cannot be set at an iperf2 end point"},
		{two && r.Bidir && !r.OneConnection, "an iperf2 end point does both directions on one TCP connection: --bidir --one-connection", "--bidir alone does not go to an iperf2 end point"},
		{two && r.PeerCPU != nil, "name the local CPU alone: -A N", "iperf2 takes no CPU from its client"},
		{!three && r.FarOutput, "it is of iperf3:// end points", "--get-server-output does not go to this end point"},
	} {
		if c.bad {
			return fault.Usagef(c.hint, "%s", c.message)
		}
	}
	return nil
}

// differ tells whether both sizes of a pair were asked for, and not the same.
func differ(p measure.Pair) bool { return p.Send != p.Recv }
