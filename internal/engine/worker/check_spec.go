package worker

import (
	"slices"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/unit"
)

// threads returns how many threads block in raw calls.
func threads(s measure.Spec) int {
	if s.Duplex || s.PerSecond > 0 {
		return 2 * s.Streams // both directions, or one thread that requests and one that receives the responses
	}
	return s.Streams
}

// Check refuses a Spec that a worker cannot run safely. The command line has its own, friendlier checks, but an agent trusts no client.
func Check(s measure.Spec) error {
	bad := func(format string, args ...any) error {
		return fault.Usagef("", "worker: checking the request: "+format, args...)
	}
	switch {
	case !slices.Contains([]string{measure.TCP, measure.UDP}, s.Protocol):
		return bad("unknown protocol %q", s.Protocol)
	case !slices.Contains([]string{measure.Bulk, measure.RR, measure.CRR}, s.Traffic):
		return bad("unknown traffic %q", s.Traffic)
	case s.Streams < 1 || s.Streams > measure.MaxStreams:
		return bad("%d streams are outside 1 to %d", s.Streams, measure.MaxStreams)
	case outside(s.Window, measure.MaxWindow):
		return bad("a window of %d/%d bytes is outside 0 to %d", s.Window.Send, s.Window.Recv, int64(measure.MaxWindow))
	case outside(s.Length, measure.MaxLength):
		return bad("a length of %d/%d bytes is outside 1 to %d", s.Length.Send, s.Length.Recv, int64(measure.MaxLength))
	case s.Duration < int64(measure.MinDuration) || s.Duration > int64(measure.MaxDuration):
		return bad("a duration of %v is outside %v to %v", time.Duration(s.Duration), measure.MinDuration, measure.MaxDuration)
	case s.Ramp < 0 || s.Ramp > int64(measure.MaxRamp):
		return bad("a ramp of %v is outside 0 to %v", time.Duration(s.Ramp), measure.MaxRamp)
	case s.DSCP < 0 || s.DSCP > 63:
		return bad("DSCP %d is outside 0 to 63", s.DSCP)
	case s.BindPort < 0 || s.BindPort+s.Streams > 65536:
		return bad("there are not enough source ports from %d on for %d streams", s.BindPort, s.Streams)
	case s.IO != "" && !slices.Contains(measure.Paths(s.Protocol, s.Traffic), s.IO):
		return bad("data path %q does not exist for this traffic", s.IO)
	case !slices.Contains([]int{0, 4, 6}, s.Family):
		return bad("IP family %d is not 4 or 6", s.Family)
	case badCPUs(s.SenderCPUs) || badCPUs(s.ReceiverCPUs):
		return bad("%q or %q is not a list of CPUs such as 0-3,8", s.SenderCPUs, s.ReceiverCPUs)
	case s.Rate < 0 || s.Rate > measure.MaxRate || s.Amount < 0 || s.FirstStream < 0:
		return bad("a rate, an amount or a number of a stream is out of range")
	}
	return validateKind(s, bad)
}

// validateKind refuses options that do not fit the kind of traffic.
func validateKind(s measure.Spec, bad func(string, ...any) error) error {
	udp, bulk := s.Protocol == measure.UDP, s.Traffic == measure.Bulk
	switch {
	case udp && bulk && s.Length.Send != 0 && s.Length.Send < measure.MinDatagram || udp && (s.Length.Send > measure.MaxDatagram || s.Length.Recv > measure.MaxDatagram):
		return bad("datagrams of %d bytes are outside %d to %d", s.Length.Send, measure.MinDatagram, measure.MaxDatagram)
	case !bulk && (s.Length.Send > measure.MaxMessage || s.Length.Recv > measure.MaxMessage):
		return bad("messages of %d and %d bytes exceed %d", s.Length.Send, s.Length.Recv, measure.MaxMessage)
	case s.PerSecond < 0 || s.PerSecond > measure.MaxPerSecond || s.PerSecond > 0 && bulk:
		return bad("%g requests a second are outside 0 to %d", s.PerSecond, measure.MaxPerSecond)
	case s.Duplex && !bulk, s.Search && !(udp && bulk), s.Amount > 0 && !bulk, s.Verify && !bulk:
		return bad("this traffic does not support these options")
	case s.Verify && s.IO == measure.IOLean, s.Verify && s.IO == measure.IOSendfile:
		return bad("--verify needs a data path that copies")
	case s.Traffic == measure.CRR && (udp || !s.DialFrom):
		return bad("connect, request, response needs TCP, and the requesting end must dial")
	}
	return nil
}

func outside(p measure.Pair, most int64) bool {
	return p.Send < 0 || p.Recv < 0 || p.Send > most || p.Recv > most
}

// badCPUs accepts an empty list, for all CPUs.
func badCPUs(list string) bool {
	_, err := unit.ParseList(list, unit.MaxCPU)
	return list != "" && err != nil
}
