package diagnose

import (
	"math"
	"slices"
	"time"

	"thru/internal/measure"
)

// Ids of the experiments.
const (
	OneStream     = "streams-1"
	EightStreams  = "streams-8"
	ManyPorts     = "ports-16"
	NoWindow      = "default-window"
	MoreWindow    = "double-window"
	MoreBuffer    = "double-buffer"
	LargeMessages = "messages-1m"
	LeanPath      = "lean"
	OtherControl  = "other-congestion"
	BbrControl    = "bbr"
	Longer        = "longer"
	Rested        = "rested"
	FreeCPU       = "other-cpu"
	UdpBelow      = "udp-below"
	UdpAbove      = "udp-above"
	UdpThrice     = "udp-3x"
	UdpTenfold    = "udp-10x"
	UdpThirtyfold = "udp-30x"
	SmallSegments = "small-segments"
	Captured      = "capture"
)

// The measured time of an experiment: enough for two statistical seconds.
const (
	ShortTrial = 2 * time.Second
	longTrial  = 12 * time.Second
	// fallTrial shows whether the level to which a rate has fallen stays.
	fallTrial = 6 * time.Second
	// afterFall is how much longer than the first level a run with a full token bucket takes.
	afterFall = 4 * time.Second
	// captureTrial goes beyond slow start, and fits the size limit of a capture up to a few Gb/s.
	captureTrial = 3 * time.Second
)

// Experiments returns the catalogue, the cheapest first.
func Experiments() []Experiment {
	return []Experiment{
		{SmallSegments, "the same traffic in segments of 536 bytes at a low rate", ShortTrial, varySegments},
		{Captured, "the same traffic with a packet capture", captureTrial, varyCapture},
		{EightStreams, "8 streams instead of fewer", ShortTrial, varyStreams(8)},
		{OneStream, "one stream instead of several", ShortTrial, varyStreams(1)},
		{ManyPorts, "16 source ports", ShortTrial, varyStreams(16)},
		{NoWindow, "windows tuned by the kernel", ShortTrial, varyNoWindow},
		{MoreWindow, "a receive window of twice the size", ShortTrial, VaryWindow},
		{MoreBuffer, "a send buffer of twice the size", ShortTrial, varyBuffer},
		{LargeMessages, "messages of 1 MiB", ShortTrial, varyMessage},
		{LeanPath, "zero-copy at both ends", ShortTrial, varyLean},
		{OtherControl, "cubic or reno instead of a pacing congestion control", ShortTrial, varyUnpaced},
		{BbrControl, "bbr instead of a loss-based congestion control", ShortTrial, varyBbr},
		{FreeCPU, "threads placed by the scheduler", ShortTrial, varyPlace},
		{UdpBelow, "UDP at 0.9 of the TCP rate", ShortTrial, varyUDP(0.9)},
		{UdpAbove, "UDP at 1.1 of the TCP rate", ShortTrial, varyUDP(1.1)},
		{UdpThrice, "UDP at 3 times the TCP rate", ShortTrial, varyUDP(3)},
		{UdpTenfold, "UDP at 10 times the TCP rate", ShortTrial, varyUDP(10)},
		{UdpThirtyfold, "UDP at 30 times the TCP rate", ShortTrial, varyUDP(30)},
		{Longer, "a longer run", longTrial, varyLonger},
		{Rested, "a longer run after a pause, in which a token bucket fills", longTrial, varyRested},
	}
}

func varyStreams(n int) func(*Flow, *measure.Spec) bool {
	return func(_ *Flow, s *measure.Spec) bool {
		if n == 1 && s.Streams == 1 || n > 1 && s.Streams >= n || s.Rate > 0 { // the rate is per stream, so more streams would change the question
			return false
		}
		s.Streams = n
		return true
	}
}

func varyNoWindow(_ *Flow, s *measure.Spec) bool {
	had := s.Window != measure.Pair{}
	s.Window = measure.Pair{}
	return had
}

// VaryWindow asks for twice the mean advertised window.
func VaryWindow(f *Flow, s *measure.Spec) bool {
	w, ok := f.SendWindow()
	if !ok || w <= 0 || s.Window.Recv > 0 || 2*w > measure.MaxWindow {
		return false
	}
	s.Window.Recv = int64(2 * w)
	if s.Engine != measure.Native { // other programs set one size for both ends
		s.Window.Send = s.Window.Recv
	}
	return true
}

// varyBuffer asks for twice the buffer that the sender's kernel gave; the kernel reports the double (socket(7),
// SO_SNDBUF).
func varyBuffer(f *Flow, s *measure.Spec) bool {
	has := int64(f.SendBuffer())
	if has <= 0 || s.Window.Send > 0 || has > measure.MaxWindow {
		return false
	}
	s.Window.Send = has
	return s.Engine == measure.Native
}

// largeMessage is well above the length at which the cost of a call vanishes (C-19).
const largeMessage = 1 << 20

func varyMessage(_ *Flow, s *measure.Spec) bool {
	if !IsSmall(s.Length.Send) && !IsSmall(s.Length.Recv) {
		return false
	}
	s.Length = measure.Pair{Send: largeMessage, Recv: largeMessage}
	return true
}

func varyLean(_ *Flow, s *measure.Spec) bool {
	if s.Engine != measure.Native || dataPath(*s) != measure.IOCopy || s.Verify {
		return false
	}
	s.IO = measure.IOLean
	return true
}

// varyControl takes the first of the congestion controls that the sender's host has and does not use already.
func varyControl(names ...string) func(*Flow, *measure.Spec) bool {
	return func(f *Flow, s *measure.Spec) bool {
		used := f.Congestion()
		if f.IsUDP() {
			return false
		}
		for _, n := range names {
			if slices.Contains(f.Sender.CongAvail, n) {
				s.Congestion = n
				return n != used
			}
		}
		return false
	}
}

// varyBbr takes bbr where that may make a loss likely; it never makes one certain.
func varyBbr(f *Flow, s *measure.Spec) bool {
	return f.judged("loss").Confidence != measure.Likely && varyControl("bbr")(f, s)
}

// varyUnpaced takes a congestion control that does not pace if the current one does.
func varyUnpaced(f *Flow, s *measure.Spec) bool {
	return Paces(f.Congestion()) && varyControl("cubic", "reno")(f, s)
}

func varyPlace(_ *Flow, s *measure.Spec) bool {
	placed := !s.Unplaced || s.SenderCPU != nil || s.ReceiverCPU != nil
	s.Unplaced, s.SenderCPU, s.ReceiverCPU = true, nil, nil
	return placed
}

// Limits of the datagrams of an experiment: below the minimum nothing can be distinguished, above the maximum the
// hosts are what is measured. A known link is exceeded only slightly.
const (
	leastUDPTrial = 1_000_000
	MostUDPTrial  = 2_000_000_000
	overLink      = 1.1
	batchRate     = 400_000_000 // bit/s up to which datagrams leave one by one, evenly spaced
	slowToFill    = 100e6       // ns in a queue, which a tenth more than it passes fills in ten times that
)

// varyUDP sends datagrams that fill the path's packets at a multiple of the goodput, at most slightly above the
// known link rate. It does not try a higher multiple if a lower one did not pass.
func varyUDP(times float64) func(*Flow, *measure.Spec) bool {
	return func(f *Flow, s *measure.Spec) bool {
		bps, ok := f.Goodput()
		_, over := f.Surplus()
		if !ok || over || f.IsUDP() || s.Engine != measure.Native || f.OnOneMachine() {
			return false
		}
		rate, most := times*bps, float64(MostUDPTrial)
		if c := f.Cell.Ceiling; c != nil {
			most = min(most, overLink*float64(c.LinkBps))
		}
		rate = min(rate, most)
		if times > 1 && (f.UdpPassed() >= rate || f.offersNoMore() || times < 2 && f.mostQueued() > slowToFill) { // as much, or all that the sender can send, has passed
			return false
		}
		if need, likely := f.lossTime(rate); likely && times >= 2 {
			if times < rareTimes && need > 2*ShortTrial {
				return false
			}
			s.Duration = int64(min(max(need, ShortTrial), mostLossTime))
		}
		s.Protocol, s.Streams, s.IO, s.Congestion, s.MSS = measure.UDP, 1, measure.IOBatch, "", 0
		if rate > batchRate && f.judged("broken-tso").State != Holds { // a call for each 44 datagrams costs less than one for each
			s.IO = measure.IOGSO
		}
		s.Rate, s.Window = int64(max(rate, leastUDPTrial)), measure.Pair{}
		s.Length = measure.Pair{Send: f.datagram(), Recv: f.datagram()}
		s.DontFragment = true
		return true
	}
}

// A rare loss shows soonest at the multiple rareTimes of the goodput; longer than mostLossTime is not worth it.
const (
	rareTimes    = 10
	mostLossTime = 6 * time.Second
)

// lossTime returns for how long to send datagrams at a rate until a loss that is likely loses enough of them to be
// certain.
func (f *Flow) lossTime(bps float64) (need time.Duration, likely bool) {
	const enough = 1.5 * FewEvents
	again, known := f.AgainPct()
	perSecond := again / 100 * bps / 8 / float64(f.datagram())
	if !known || perSecond <= 0 || f.judged("loss").Confidence != measure.Likely {
		return 0, false
	}
	return time.Duration(min(math.Ceil(enough/perSecond), 60)) * time.Second, true
}

// datagram returns the payload of a datagram that fills a packet of the path.
func (f *Flow) datagram() int64 {
	const headersIPv6, usual = 48, 1400
	if direction, _ := f.Direction(); direction != nil && direction.MTU != nil && direction.MTU.Bytes > headersIPv6+measure.MinDatagram {
		return int64(direction.MTU.Bytes - headersIPv6)
	}
	return usual
}

// varySegments sends so slowly and in such small segments that no packet of the sender's kernel exceeds the path's
// MTU, with or without segmentation offload.
func varySegments(f *Flow, s *measure.Spec) bool {
	const smallMSS, lowRate = 536, 2_000_000
	s.MSS, s.Rate, s.Streams = smallMSS, lowRate, 1
	return s.Engine == measure.Native && f.MSS() > smallMSS
}

func varyLonger(f *Flow, s *measure.Spec) bool {
	s.Duration = max(int64(longTrial), 2*f.Cell.Spec.Duration)
	if f.Falls() {
		s.Duration = int64(fallTrial)
	}
	return s.Rate == 0
}

// varyRested repeats the test after a rest, for a token bucket that refills within the budget.
func varyRested(f *Flow, s *measure.Spec) bool {
	rest, ok := f.restTime()
	x, _ := f.TwoLevels()
	run := x.Lasted.Round(time.Second) + afterFall
	s.Duration = int64(run)
	return ok && s.Rate == 0 && rest+run <= mostRest
}

// Congestion returns the congestion control that the sender's kernel used; "" if it is not known.
func (f *Flow) Congestion() string {
	for _, s := range f.Sender.Streams() {
		if s.Congestion != "" {
			return s.Congestion
		}
	}
	return ""
}
