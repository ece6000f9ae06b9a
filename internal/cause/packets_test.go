package cause

import (
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// film is a case of captures: the expected outcomes of some causes.
type film struct {
	name   string
	places []string
	edits  []capturesEdit
	want   map[string]string
}

// judgeFilms checks the outcomes of each case, and that every finding from packets names packets.
func judgeFilms(t *testing.T, films []film) {
	t.Helper()
	for _, x := range films {
		t.Run(x.name, func(t *testing.T) {
			d := filmed(x.places, x.edits...)
			Diagnose(d)
			for cause, want := range x.want {
				if got := outcomeOf(d.Cells[0].Diagnosis, cause); got != want {
					t.Errorf("%s: %q, want %q\n%s", cause, got, want, saidOf(d, cause))
				}
			}
			for _, f := range d.Cells[0].Findings {
				if f.Cause != measure.CauseNone && f.Fix == nil {
					t.Errorf("%s has no remedy", f.Cause)
				}
				if f.Cause != measure.CauseNone && !slices.ContainsFunc(f.Evidence, func(p measure.Proof) bool { return p.Capture != "" }) {
					t.Errorf("%s names no capture: %+v", f.Cause, f.Evidence)
				}
			}
		})
	}
}

// saidOf returns everything reported about a cause.
func saidOf(d *measure.Document, cause string) string {
	var all []string
	for _, f := range d.Cells[0].Findings {
		all = append(all, f.Cause+" "+f.Confidence+": "+f.Summary)
	}
	for _, u := range d.Cells[0].NotChecked {
		if u.Cause == cause {
			all = append(all, "not checked: "+u.Fact+": "+u.Why)
		}
	}
	for _, u := range d.Cells[0].RuledOut {
		if u.Cause == cause {
			all = append(all, "no: "+u.Why)
		}
	}
	return strings.Join(all, "\n")
}

// TestHealthyPackets: no cause holds on a healthy path, wherever the capture was made.
func TestHealthyPackets(t *testing.T) {
	for name, places := range map[string][]string{"sender": nearSender, "receiver": nearReceiver, "between": midway, "unknown": anywhere, "both": nearBoth, "both unknown": {"", ""}} {
		d := filmed(places, uneven)
		Diagnose(d)
		c := d.Cells[0]
		if len(c.Findings) != 1 || c.Findings[0].Cause != measure.CauseNone || !c.Findings[0].Healthy {
			t.Errorf("%s: %s", name, saidOf(d, ""))
		}
		for _, cause := range []string{"window-scaling-off", "sack-off", "timestamps-off", "loss", "slow-reader"} {
			if got := outcomeOf(c.Diagnosis, cause); got != "no" {
				t.Errorf("%s: %s: %q\n%s", name, cause, got, saidOf(d, cause))
			}
		}
		for _, u := range c.NotChecked {
			if u.Fact == "" || u.Why == "" {
				t.Errorf("%s: %s is not checked, and it is not said why: %+v", name, u.Cause, u)
			}
		}
	}
}

func TestJoin(t *testing.T) {
	proof := func(name string) measure.Proof { return measure.Proof{Counter: name} }
	by := func(o *diagnose.Outcome, name string) *diagnose.Outcome { return o.By(proof(name)) }
	yes := map[string]func() *diagnose.Outcome{
		"nothing":  func() *diagnose.Outcome { return nil },
		"unknown":  func() *diagnose.Outcome { return diagnose.Missing("fact", "why") },
		"no":       func() *diagnose.Outcome { return diagnose.No("it is not") },
		"possible": func() *diagnose.Outcome { return diagnose.Possible("it is") },
		"likely":   func() *diagnose.Outcome { return diagnose.Likely("it is") },
		"certain":  func() *diagnose.Outcome { return diagnose.Certain("it is") },
	}
	word := func(o *diagnose.Outcome) string {
		switch {
		case o == nil:
			return "nothing"
		case o.State == diagnose.Excluded:
			return "no"
		case o.State == diagnose.Unknown:
			return "unknown"
		}
		return o.Confidence
	}
	// Rows: the counters' outcome; columns: the packets' outcome.
	columns := []string{"nothing", "unknown", "no", "possible", "likely", "certain"}
	for counters, want := range map[string][]string{
		"nothing":  {"nothing", "nothing", "nothing", "nothing", "nothing", "nothing"},
		"unknown":  {"unknown", "unknown", "no", "possible", "likely", "certain"},
		"no":       {"no", "no", "no", "no", "possible", "certain"},
		"possible": {"possible", "possible", "no", "possible", "likely", "certain"},
		"likely":   {"likely", "likely", "possible", "likely", "likely", "certain"},
		"certain":  {"certain", "certain", "likely", "certain", "certain", "certain"},
	} {
		for i, shown := range columns {
			a, b := yes[counters](), yes[shown]()
			if a != nil {
				by(a, "counter")
			}
			if b != nil {
				by(b, "packets")
			}
			o := diagnose.Join(a, b)
			if got := word(o); got != want[i] {
				t.Errorf("counters %s, packets %s: %s, want %s", counters, shown, got, want[i])
			}
			if holding := diagnose.Weight(counters) >= 0 && diagnose.Weight(shown) >= 0; holding && len(o.Evidence) != 2 {
				t.Errorf("counters %s, packets %s: evidence %+v", counters, shown, o.Evidence)
			}
		}
	}
	if o := diagnose.Join(diagnose.Certain("the window is small"), diagnose.No("it is not full")); !strings.Contains(o.Text, "small") || !strings.Contains(o.Text, "not full") {
		t.Errorf("%q says not both", o.Text)
	}
}

// brokenOffload is a sender whose packets above a segment are lost: each is retransmitted as single segments,
// after timeouts.
func brokenOffload(x *captures) {
	carries(5e6)(x)
	sendsAgain(4000, 10)(x)
	eachConn(func(c *measure.Connection) {
		c.Data.Super = someSegments(400, 4)
		c.Data.Super.Bytes, c.Data.Again.Bytes = 400*10*filmMSS, 400*10*filmMSS
		c.Data.Payload = c.Data.New + c.Data.Again.Bytes
		c.Data.Timeout = someSegments(30, 100)
	})(x)
	if x.flow.Crossing != nil {
		crossedData(func(d *measure.Crossed) {
			*d = measure.Crossed{Sent: 8400 * filmMSS, Arrived: 4400 * filmMSS, Lost: someSegments(400, 4), SuperSent: someSegments(400, 4), SuperLost: someSegments(400, 4),
				SingleSent: someSegments(4400, 50), FullSent: someSegments(4390, 50), SmallSent: someSegments(5, 1), MaxArrived: 1500}
			d.SuperSent.Bytes, d.SuperLost.Bytes = 4000*filmMSS, 4000*filmMSS
		})(x)
		x.conns[1].Data.Super = measure.Count{}
	}
}

// swallowing is a path that silently drops full segments: three timeouts, each longer.
func swallowing(x *captures) {
	carries(1)(x)
	eachConn(func(c *measure.Connection) {
		c.Data = measure.Direction{Packets: 20, Segments: 40, Payload: 40 * filmMSS, New: 30 * filmMSS, MaxPacket: 14_532, Super: someSegments(2, 4),
			Again: someSegments(6, 8), Timeout: someSegments(6, 8), TTLs: []int{64}}
		c.Data.Super.Bytes = 20 * filmMSS
		c.RTT.Samples = 1
		for i := range c.Timeline.Sent {
			c.Timeline.Sent[i], c.Timeline.Acked[i] = 30*filmMSS, 37
		}
	})(x)
	if x.flow.Crossing != nil {
		crossedData(func(d *measure.Crossed) {
			*d = measure.Crossed{Sent: 40 * filmMSS, Arrived: 37, Lost: someSegments(16, 4), SuperSent: someSegments(2, 4), SuperLost: someSegments(2, 4),
				SingleSent: someSegments(19, 1), SingleLost: someSegments(14, 8), FullSent: someSegments(14, 8), FullLost: someSegments(14, 8), SmallSent: someSegments(5, 1), MaxArrived: 89}
			d.SuperSent.Bytes = 20 * filmMSS
		})(x)
		c := x.conns[1]
		c.Data = measure.Direction{Packets: 5, Segments: 5, Payload: 37, New: 37, MaxPacket: 89, TTLs: []int{61}}
	}
}

func jumboSize(x *captures) {
	eachConn(func(c *measure.Connection) {
		c.SYN.MSS, c.SYNACK.MSS, c.MSS, c.MaxPacket = new(8960), new(8960), 8948, 9000
	})(x)
}

func TestSizesOfPackets(t *testing.T) {
	dropping := func(x *captures) { x.flow.Captures[1].Dropped = new(int64(50)) }
	judgeFilms(t, []film{
		{"broken offload, both", nearBoth, []capturesEdit{brokenOffload}, map[string]string{"broken-tso": "certain", "mtu-black-hole": "no"}},
		{"broken offload, and the capture has gaps", nearBoth, []capturesEdit{brokenOffload, dropping}, map[string]string{"broken-tso": "likely"}},
		{"broken offload, sender", nearSender, []capturesEdit{brokenOffload}, map[string]string{"broken-tso": "likely", "mtu-black-hole": "no"}},
		{"broken offload, receiver", nearReceiver, []capturesEdit{brokenOffload}, map[string]string{"broken-tso": "?"}},
		{"large packets by receive offload", anywhere, []capturesEdit{brokenOffload}, map[string]string{"broken-tso": "?"}},
		{"a policer takes the end of each large packet", nearBoth, []capturesEdit{brokenOffload, crossedData(func(d *measure.Crossed) { d.Arrived = 6800 * filmMSS })}, map[string]string{"broken-tso": "no"}},
		{"single segments are lost too", nearBoth, []capturesEdit{brokenOffload, crossedData(func(d *measure.Crossed) {
			d.SingleLost = someSegments(3000, 60)
			d.Arrived = 1400 * filmMSS
		})}, map[string]string{"broken-tso": "no"}},
		{"offload is off", nearBoth, []capturesEdit{sendsAgain(50, 1), crossedData(func(d *measure.Crossed) {
			d.SingleSent.N += d.SuperSent.N
			d.SuperSent = measure.Count{}
		})}, map[string]string{"broken-tso": "no"}},
		{"large packets pass, some are lost", nearSender, []capturesEdit{sendsAgain(50, 1)}, map[string]string{"broken-tso": "no"}},

		{"black hole, both", nearBoth, []capturesEdit{swallowing}, map[string]string{"mtu-black-hole": "certain", "broken-tso": "no", "jumbo-mismatch": "no"}},
		{"black hole, sender", nearSender, []capturesEdit{swallowing}, map[string]string{"mtu-black-hole": "likely", "broken-tso": "no"}},
		{"black hole, and nothing was acknowledged", nearSender, []capturesEdit{swallowing, eachConn(func(c *measure.Connection) {
			for i := range c.Timeline.Acked {
				c.Timeline.Acked[i] = 0
			}
		})}, map[string]string{"mtu-black-hole": "possible"}},
		{"black hole, receiver", nearReceiver, []capturesEdit{swallowing, eachConn(func(c *measure.Connection) { c.Data.MaxPacket = 89 })}, map[string]string{"mtu-black-hole": "?"}},
		{"a black hole before the capture", midway, []capturesEdit{swallowing, eachConn(func(c *measure.Connection) { c.Data.MaxPacket = 904 })}, map[string]string{"mtu-black-hole": "?"}},
		{"a router says so, and is not heeded", nearSender, []capturesEdit{swallowing, func(x *captures) {
			x.flow.Captures[0].TooBig = []measure.TooBig{{Packet: 9, From: "10.9.9.9", MTU: 1400, Of: "10.0.0.1:40000", Count: 6}}
		}}, map[string]string{"mtu-black-hole": "certain"}},
		{"a router says so to another", nearSender, []capturesEdit{swallowing, func(x *captures) {
			x.flow.Captures[0].TooBig = []measure.TooBig{{Packet: 9, From: "10.9.9.9", MTU: 1400, Of: "10.0.0.7:40000", Count: 6}}
		}}, map[string]string{"mtu-black-hole": "likely"}},
		{"a router says so, and is heeded", nearBoth, []capturesEdit{func(x *captures) {
			x.flow.Captures[0].TooBig = []measure.TooBig{{Packet: 9, From: "10.9.9.9", MTU: 1400, Of: "10.0.0.1:40000", Count: 1}}
			d := &x.flow.Crossing.Conns[0].Data
			d.FullSent, d.FullLost, d.MaxArrived = someSegments(10, 4), someSegments(10, 4), 1400
		}}, map[string]string{"mtu-black-hole": "no", "jumbo-mismatch": "no"}},
		{"all is lost", nearBoth, []capturesEdit{swallowing, crossedData(func(d *measure.Crossed) { d.SmallLost = d.SmallSent })}, map[string]string{"mtu-black-hole": "no"}},
		{"jumbo frames that do not pass", nearBoth, []capturesEdit{swallowing, jumboSize}, map[string]string{"jumbo-mismatch": "certain", "mtu-black-hole": "certain"}},
		{"jumbo frames that pass", nearBoth, []capturesEdit{jumboSize, crossedData(func(d *measure.Crossed) { d.MaxArrived = 9000 })}, map[string]string{"jumbo-mismatch": "no"}},
		{"jumbo frames at one end", nearSender, []capturesEdit{eachConn(func(c *measure.Connection) { c.SYN.MSS = new(8960) })}, map[string]string{"jumbo-mismatch": "?"}},
		{"no handshake", nearSender, []capturesEdit{eachConn(func(c *measure.Connection) { c.SYN, c.SYNACK, c.FromOpened, c.MaxPacket = nil, nil, nil, 0 })},
			map[string]string{"jumbo-mismatch": "?", "mtu-black-hole": "?", "mss-clamp": "?", "window-scaling-off": "?", "sack-off": "?", "timestamps-off": "?"}},

		{"clamp, both", nearBoth, []capturesEdit{connOf(0, func(c *measure.Connection) { c.SYNACK.MSS = new(536) }), connOf(1, func(c *measure.Connection) { c.SYN.MSS = new(536) })}, map[string]string{"mss-clamp": "certain"}},
		{"clamp to what a tunnel may take", nearBoth, []capturesEdit{connOf(0, func(c *measure.Connection) { c.SYNACK.MSS = new(1360) })}, map[string]string{"mss-clamp": "likely"}},
		{"no clamp", nearBoth, nil, map[string]string{"mss-clamp": "no"}},
		{"one end offers less", nearBoth, []capturesEdit{eachConn(func(c *measure.Connection) { c.SYNACK.MSS = new(1360) })}, map[string]string{"mss-clamp": "no"}},
		{"one end's MSS is smaller", nearSender, []capturesEdit{eachConn(func(c *measure.Connection) { c.SYNACK.MSS = new(1360) })}, map[string]string{"mss-clamp": "possible"}},
	})
}

func TestJumboIsTheRoot(t *testing.T) {
	near := connOf(0, func(c *measure.Connection) { c.Acks.TTLs = []int{64} }) // no router between the ends
	d := filmed(nearBoth, swallowing, jumboSize, near)
	Diagnose(d)
	if x := d.Cells[0].Findings; len(x) < 2 || x[0].Cause != "jumbo-mismatch" || x[1].BecauseOf != "jumbo-mismatch" {
		t.Errorf("%s", saidOf(d, ""))
	}
	if got := first(t, filmed(nearBoth, swallowing, jumboSize)); got != "mtu-black-hole certain" {
		t.Errorf("behind a router: %s", got)
	}
}

// lacks removes an option from a SYN or SYN-ACK.
func lacks(of func(*measure.Connection) *measure.Opening, option string) func(*measure.Connection) {
	return func(c *measure.Connection) {
		o := of(c)
		switch option {
		case "window-scaling-off":
			o.HasScale, o.WindowScale = new(false), nil
		case "sack-off":
			o.SACK = new(false)
		case "timestamps-off":
			o.Timestamps = new(false)
		}
	}
}

func theSYN(c *measure.Connection) *measure.Opening { return c.SYN }

func theSYNACK(c *measure.Connection) *measure.Opening { return c.SYNACK }

// TestOptionsInPackets: which end does not offer an option, and where it is removed, by the place of the capture.
func TestOptionsInPackets(t *testing.T) {
	opened := eachConn(func(c *measure.Connection) { c.FromOpened = new(false) })
	for _, cause := range []string{"window-scaling-off", "sack-off", "timestamps-off"} {
		for _, x := range []struct {
			name   string
			places []string
			edits  []capturesEdit
			want   string
			at     string
		}{
			{"the sender does not offer it", nearSender, []capturesEdit{eachConn(lacks(theSYN, cause))}, "certain", measure.AtSender},
			{"it did not come to the receiver", nearReceiver, []capturesEdit{eachConn(lacks(theSYN, cause))}, "likely", measure.AtPath},
			{"the answer does not come with it", nearSender, []capturesEdit{eachConn(lacks(theSYNACK, cause))}, "likely", measure.AtPath},
			{"the receiver does not answer with it", nearReceiver, []capturesEdit{eachConn(lacks(theSYNACK, cause))}, "certain", measure.AtReceiver},
			{"between, the SYN lacks it", midway, []capturesEdit{eachConn(lacks(theSYN, cause))}, "likely", measure.AtPath},
			{"taken out of the SYN", nearBoth, []capturesEdit{connOf(1, lacks(theSYN, cause)), eachConn(lacks(theSYNACK, cause))}, "certain", measure.AtPath},
			{"taken out of the SYN-ACK", nearBoth, []capturesEdit{connOf(0, lacks(theSYNACK, cause))}, "certain", measure.AtPath},
			{"taken out between places that are not known", []string{"", ""}, []capturesEdit{connOf(1, lacks(theSYN, cause)), eachConn(lacks(theSYNACK, cause))}, "certain", measure.AtPath},
			{"the receiver opened, and does not offer it", nearReceiver, []capturesEdit{opened, eachConn(lacks(theSYN, cause))}, "certain", measure.AtReceiver},
			{"the receiver opened, and the sender does not answer with it", nearBoth, []capturesEdit{opened, eachConn(lacks(theSYNACK, cause))}, "certain", measure.AtSender},
			{"the receiver opened, and it is taken out", nearBoth, []capturesEdit{opened, connOf(0, lacks(theSYN, cause)), eachConn(lacks(theSYNACK, cause))}, "certain", measure.AtPath},
			{"it is cut off", nearSender, []capturesEdit{eachConn(func(c *measure.Connection) { c.SYN.SYN = measure.SYN{} })}, "?", ""},
			{"all is there", nearBoth, nil, "no", ""},
		} {
			// Loss and a full window, so that it costs something.
			edits := append([]capturesEdit{uneven, carries(20e6), sendsAgain(40, 1), windowOf(65535, 80), roundTrip(20*ms, 20500*time.Microsecond)}, x.edits...)
			if cause == "sack-off" {
				edits = append(edits, eachConn(func(c *measure.Connection) { c.Data.Timeout = someSegments(5, 100) }))
			}
			d := filmed(x.places, edits...)
			Diagnose(d)
			if got := outcomeOf(d.Cells[0].Diagnosis, cause); got != x.want {
				t.Errorf("%s: %s: %q, want %q\n%s", cause, x.name, got, x.want, saidOf(d, cause))
			}
			for _, f := range d.Cells[0].Findings {
				if f.Cause == cause && (f.Where.Place != x.at || f.Confidence == measure.Likely && !strings.HasPrefix(f.Next, "a capture at ") || len(f.Evidence[0].Packets) == 0) {
					t.Errorf("%s: %s: at %q, next %q, %+v", cause, x.name, f.Where.Place, f.Next, f.Evidence[0])
				}
			}
		}
	}
}

// TestScalingCosts: without window scaling a window binds only if it is full.
func TestScalingCosts(t *testing.T) {
	off := eachConn(lacks(theSYN, "window-scaling-off"))
	for name, x := range map[string]struct {
		edits []capturesEdit
		want  string
	}{
		"the window is full":      {[]capturesEdit{off, carries(26e6), windowOf(65535, 90)}, "window-scaling-off certain"},
		"a slow path":             {[]capturesEdit{off, uneven, carries(1e6), windowOf(65535, 0)}, "none possible"},
		"too little passed":       {[]capturesEdit{off, func(x *captures) { carries(40e3)(x); x.conns[0].RTT = nil; x.bins = []float64{1} }}, "none possible"},
		"the receiver reads late": {[]capturesEdit{off, carries(5e6), windowOf(65535, 90), closedFor(50)}, "slow-reader certain"},
	} {
		d := filmed(nearSender, x.edits...)
		if got := first(t, d); got != x.want {
			t.Errorf("%s: %s, want %s\n%s", name, got, x.want, saidOf(d, ""))
		}
	}
}

// closedFor closes the receiver's window for that percentage of the time.
func closedFor(pct float64) capturesEdit {
	return eachConn(func(c *measure.Connection) {
		c.Acks.Zero = measure.Count{N: 20, Packets: []int64{50, 60}}
		c.Acks.ZeroNs = int64(pct / 100 * float64(filmTime))
		c.Data.Probes = measure.Count{N: 5, Packets: []int64{51}}
		c.Window.Min = 0
	})
}
