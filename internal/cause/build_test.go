package cause

import (
	"testing"
	"time"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// made is one flow of five seconds, by the figures that rules use. A zero value is that of a healthy path.
type made struct {
	bps          float64 // goodput
	link         float64 // known rate of the link; 0: not known
	streams      int
	control      string
	rtt, base    time.Duration // under load, and minimum
	rwndPct      float64       // of the busy time
	wndFull      float64       // of the readings
	window       float64       // bytes, advertised
	unread       float64       // bytes, at the receiver
	flight, cwnd float64       // bytes
	flightMost   float64       // bytes of a reading; 0: as the mean
	notSent      float64       // bytes
	idle         float64       // percentage of readings with nothing to send
	againPct     float64
	recoveries   uint64
	reordered    uint32
	doubled      uint32
	pacing       float64 // bit/s of a stream
	buffer       int64   // SO_SNDBUF as granted
	sender       diagnose.Threads
	receiver     diagnose.Threads
	length       int64
	asked        measure.Pair
	bins         []float64
	noTimeline   bool
	noTimes      bool // an old kernel: no busy time in tcp_info
	proto        map[string]uint64
}

const (
	madeMSS  = 1448
	madeTime = 5 * time.Second
)

// cell returns the cell of the flow from a to b.
func (m made) cell() measure.Cell {
	spec := measure.Spec{From: "a", To: "b", Engine: measure.Native, Protocol: measure.TCP, Streams: max(1, m.streams), Duration: int64(madeTime), Window: m.asked,
		Length: measure.Pair{Send: m.length, Recv: m.length}}
	c := measure.Cell{From: "a", To: "b", Protocol: measure.TCP, Streams: spec.Streams, Spec: spec, AtOnce: 1}
	c.Goodput = &measure.Figure{Value: m.bps, Runs: 1}
	if m.link > 0 {
		most := m.link * 0.9415
		c.Ceiling = &measure.Ceiling{Bps: most, LinkBps: int64(m.link), MTU: 1500, SharePct: 100 * m.bps / most}
	}
	c.Runs = []measure.Run{{Goodput: new(m.bps), Flows: []measure.Flow{{From: "a", To: "b", Sender: m.senderSide(), Receiver: m.receiverSide()}}}}
	return c
}

func (m made) senderSide() *measure.Evidence {
	e := &measure.Evidence{EndPoint: "a", Sends: true, IO: measure.IOCopy, MeasuredNs: int64(madeTime), PeerAddr: "10.0.0.2:5202",
		Route: &measure.Route{Interface: "eth0"}, Host: &measure.HostSpan{Proto: map[string]uint64{}}}
	for k, v := range m.proto {
		e.Host.Proto[k] = v
	}
	if m.recoveries > 0 {
		e.Host.Proto["TcpExt.TCPSackRecovery"] = m.recoveries
	}
	for range max(1, m.streams) {
		e.Streams = append(e.Streams, m.stream())
	}
	return e
}

func (m made) stream() measure.Stream {
	const busy, segments = 5e6, 1e6
	start := measure.TCPInfo{Retrans: new(uint32), DataSegsOut: new(uint32), BusyUs: new(uint64), RwndLimitedUs: new(uint64), ReordSeen: new(uint32), DSACKDups: new(uint32)}
	end := measure.TCPInfo{
		Retrans: new(uint32(segments * m.againPct / 100)), DataSegsOut: new(uint32(segments)), BusyUs: new(uint64(busy)),
		RwndLimitedUs: new(uint64(busy * m.rwndPct / 100)), ReordSeen: new(m.reordered), DSACKDups: new(m.doubled),
		MinRTT: new(m.base.Nanoseconds()), SendMSS: new(uint32(madeMSS)), WScaleOK: new(true), SACK: new(true), Timestamps: new(true),
	}
	if m.noTimes {
		start.BusyUs, end.BusyUs = nil, nil
	}
	s := measure.Stream{Congestion: "cubic", Length: m.length, TCP: &end, TCPStart: &start, Window: measure.Buffer{Granted: m.buffer}}
	if m.control != "" {
		s.Congestion = m.control
	}
	s.RunNs, s.WaitNs, s.BlockedNs = ns(m.sender)
	if !m.noTimeline {
		one := func(x float64) *measure.Spread { return &measure.Spread{Mean: x, Min: x, Max: x} }
		s.Timeline = &measure.Timeline{
			Samples: 250, InFlight: one(m.flight / madeMSS), Cwnd: one(m.cwnd / madeMSS), NotSent: one(m.notSent), SendWnd: one(m.window),
			RTT: one(float64(m.rtt.Nanoseconds())), Pacing: one(m.pacing / 8), WndFull: new(m.wndFull), Idle: new(m.idle),
		}
		s.Timeline.InFlight.Max = max(m.flight, m.flightMost) / madeMSS
	}
	return s
}

// ns returns the thread's times; a thread with all zeros was blocked.
func ns(t diagnose.Threads) (run, wait, blocked *int64) {
	if t == (diagnose.Threads{}) {
		t.Blocked = 100
	}
	of := func(pct float64) *int64 { return new(int64(pct / 100 * float64(madeTime))) }
	return of(t.Run), of(t.Wait), of(t.Blocked)
}

func (m made) receiverSide() *measure.Evidence {
	e := &measure.Evidence{EndPoint: "b", MeasuredNs: int64(madeTime), Bytes: int64(m.bps / 8 * madeTime.Seconds()), Host: &measure.HostSpan{Proto: map[string]uint64{}}}
	for range max(1, m.streams) {
		s := measure.Stream{Timeline: &measure.Timeline{Unread: &measure.Spread{Mean: m.unread}}}
		if m.noTimeline {
			s.Timeline = nil
		}
		s.RunNs, s.WaitNs, s.BlockedNs = ns(m.receiver)
		e.Streams = append(e.Streams, s)
	}
	bins := m.bins
	if bins == nil {
		bins = []float64{1, 1, 1, 1, 1}
	}
	for i, b := range bins {
		e.Bins = append(e.Bins, measure.StreamBin{At: int64(i) * 1e9, Span: 1e9, Bytes: int64(b * m.bps / 8)})
	}
	return e
}

// document returns that of the flow, with its experiments.
func (m made) document(experiments ...measure.Cell) *measure.Document {
	return &measure.Document{
		EndPoints: []measure.EndPoint{{Name: "a", Facts: linux("a")}, {Name: "b", Facts: linux("b")}},
		Cells:     append([]measure.Cell{m.cell()}, experiments...),
	}
}

func linux(name string) *measure.Facts {
	return &measure.Facts{Hostname: new(name), OS: new("linux"), CongAvail: []string{"reno", "cubic", "bbr"}}
}

// experiment is a TCP cell of that id that carried bps.
func experiment(id string, bps float64) measure.Cell {
	c := made{bps: bps}.cell()
	c.Experiment, c.Baseline = id, true
	return c
}

// takeTurns adds one more run of the first cell in turn with each experiment: a factor of two is then no chance.
func takeTurns(d *measure.Document) {
	for _, c := range d.Cells[1:] {
		again := d.Cells[0]
		again.Experiment, again.Baseline = c.Experiment, true
		d.Cells = append(d.Cells, again)
	}
}

// inTurn is one more run of a flow in turn with an experiment.
func inTurn(m made, id string) measure.Cell {
	c := m.cell()
	c.Experiment, c.Baseline = id, true
	return c
}

// datagramTrial is an experiment that sent rate bit/s, of which a share was lost on the path and the rest waited
// this long.
func datagramTrial(id string, rate, lostPct float64, waits time.Duration) measure.Cell {
	c := experiment(id, rate*(1-lostPct/100))
	sent := int64(rate / 8 / 1400 * 2)
	lost := int64(float64(sent) * lostPct / 100)
	c.Protocol, c.Spec.Protocol, c.Spec.Rate = measure.UDP, measure.UDP, int64(rate)
	c.Datagrams = &measure.DatagramFigures{Bytes: 1400, AskedBps: int64(rate), Sent: sent, Received: sent - lost, Lost: lost, LossPct: lostPct, DelayMeanNs: new(int64(waits))}
	if lost > 0 {
		c.LossPlaces = []measure.LossPlace{{Place: measure.LossPath, Packets: lost}}
	}
	return c
}

// outcomeOf returns a diagnosis's outcome for a cause: its confidence, "no" if it is excluded, "?" if a fact is
// missing, "" if it does not apply.
func outcomeOf(d measure.Diagnosis, cause string) string {
	for _, x := range d.Findings {
		if x.Cause == cause {
			return x.Confidence
		}
	}
	for _, x := range d.RuledOut {
		if x.Cause == cause {
			return "no"
		}
	}
	for _, x := range d.NotChecked {
		if x.Cause == cause {
			return "?"
		}
	}
	return ""
}

// first is the cause and the confidence of the first finding.
func first(t *testing.T, d *measure.Document) string {
	t.Helper()
	Diagnose(d)
	if len(d.Cells[0].Findings) == 0 {
		t.Fatal("no finding at all")
	}
	x := d.Cells[0].Findings[0]
	return x.Cause + " " + x.Confidence
}
