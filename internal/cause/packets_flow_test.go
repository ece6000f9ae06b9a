package cause

import (
	"testing"
	"time"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// idleFor leaves nothing in flight for that percentage of the time, in pauses of so many steps.
func idleFor(pct float64, steps int) capturesEdit {
	return eachConn(func(c *measure.Connection) {
		x := c.Timeline
		at, debt := int64(0), 0.0
		for i := range x.Sent {
			if i%steps == 0 {
				debt += pct / 100
			}
			if debt >= 1 {
				if i%steps == steps-1 {
					debt--
				}
				x.Sent[i], x.Acked[i] = at, at
				continue
			}
			at += 400_000
			x.Sent[i], x.Acked[i] = at, at-100_000
			if i%steps == steps-1 {
				x.Acked[i] = at
			}
		}
	})
}

func TestWindowsInPackets(t *testing.T) {
	small := []capturesEdit{carries(39.2e6), windowOf(99*kb, 97), roundTrip(20*ms, 20600*time.Microsecond)}
	with := func(edits ...capturesEdit) []capturesEdit {
		return append(append([]capturesEdit{}, small...), edits...)
	}
	judgeFilms(t, []film{
		{"small window, sender", nearSender, small, map[string]string{"receive-window": "certain", "slow-reader": "no", "loss": "no", "shaper": "no", "send-buffer": "no", "fixed-window": "possible"}},
		{"small window, both", nearBoth, small, map[string]string{"receive-window": "certain"}},
		{"small window, receiver", nearReceiver, small, map[string]string{"receive-window": "likely"}},
		{"small window, between", midway, small, map[string]string{"receive-window": "likely"}},
		{"small window, at a place that is not known", anywhere, small, map[string]string{"receive-window": "likely"}},
		{"its scale is not known", nearSender, with(eachConn(func(c *measure.Connection) { c.Unscaled = true })), map[string]string{"receive-window": "?"}},
		{"the window varies", nearSender, with(eachConn(func(c *measure.Connection) { c.Window.Max = 300 * kb })), map[string]string{"receive-window": "certain", "fixed-window": "?"}},
		{"the window was full now and then", nearSender, with(eachConn(func(c *measure.Connection) { c.WindowFull = new(30.0) })), map[string]string{"receive-window": "possible"}},
		{"a queue fills before the window does", nearSender, with(roundTrip(10*ms, 20600*time.Microsecond)), map[string]string{"receive-window": "no"}},
		{"no round trip", nearSender, with(eachConn(func(c *measure.Connection) { c.RTT = nil })), map[string]string{"receive-window": "?", "shaper": "?"}},
		{"the window is larger than what passes", nearReceiver, []capturesEdit{uneven}, map[string]string{"receive-window": "no"}},
		{"the capture misses packets", nearSender, with(func(x *captures) { x.flow.Captures[0].Dropped = new(int64(900)) }), map[string]string{"receive-window": "likely"}},

		{"a reader that is late, sender", nearSender, with(closedFor(40)), map[string]string{"slow-reader": "certain", "receive-window": "no", "shaper": "no", "app-limited": "no"}},
		{"a reader that is late, receiver", nearReceiver, with(closedFor(40)), map[string]string{"slow-reader": "certain", "receive-window": "no"}},
		{"a reader that is late at times", midway, with(closedFor(5)), map[string]string{"slow-reader": "likely", "receive-window": "no"}},
		{"little passed, and the window closed at the end", nearReceiver, []capturesEdit{uneven, closedFor(90), eachConn(func(c *measure.Connection) { c.Data.New = 81 })}, map[string]string{"slow-reader": "?"}},
		{"a window that closed once", nearSender, []capturesEdit{uneven, closedFor(0.1)}, map[string]string{"slow-reader": "no"}},
		{"a window that fell", nearSender, []capturesEdit{uneven, eachConn(func(c *measure.Connection) { c.Window.Min = 1000 })}, map[string]string{"slow-reader": "?"}},

		{"the program at the sender is idle", nearSender, []capturesEdit{uneven, idleFor(80, 20)}, map[string]string{"app-limited": "certain", "send-buffer": "no", "shaper": "no"}},
		{"idle, seen at the receiver", nearReceiver, []capturesEdit{uneven, idleFor(80, 20)}, map[string]string{"app-limited": "likely"}},
		{"idle, with losses", nearSender, []capturesEdit{uneven, idleFor(80, 20), sendsAgain(3000, 1)}, map[string]string{"app-limited": "likely"}},
		{"idle now and then", nearSender, []capturesEdit{uneven, idleFor(20, 20)}, map[string]string{"app-limited": "?"}},
		{"data is under way all the time, and nothing holds it", nearSender, []capturesEdit{uneven}, map[string]string{"app-limited": "?"}},
		{"data is under way all the time, before a queue", nearSender, []capturesEdit{roundTrip(20*ms, 60*ms)}, map[string]string{"app-limited": "no"}},
		{"a window that falls as the program reads in bits", nearSender, with(fallingTo(40 * kb)), map[string]string{"slow-reader": "likely", "receive-window": "?"}},
		{"it falls, and is used up now and then", nearSender, with(fallingTo(40*kb), eachConn(func(c *measure.Connection) { c.WindowFull = new(30.0) })), map[string]string{"slow-reader": "possible", "receive-window": "?"}},
		{"it falls, seen at the receiver", nearReceiver, with(fallingTo(40 * kb)), map[string]string{"slow-reader": "likely", "receive-window": "?"}},
		{"it falls, and has room all the same", nearSender, []capturesEdit{uneven, fallingTo(1000 * kb)}, map[string]string{"slow-reader": "?"}},
		{"pauses of a round trip, seen at the receiver", nearReceiver, []capturesEdit{uneven, idleFor(50, 1)}, map[string]string{"app-limited": "?"}},
		{"without a course", nearSender, []capturesEdit{uneven, eachConn(func(c *measure.Connection) { c.Timeline = nil })}, map[string]string{"app-limited": "?"}},

		{"what is under way is bounded", nearSender, []capturesEdit{carries(44e6), eachConn(func(c *measure.Connection) { c.Flight = &measure.Spread{Mean: 105 * kb, Max: 112 * kb} })}, map[string]string{"send-buffer": "possible", "shaper": "?", "receive-window": "no"}},
		{"what is under way varies", nearSender, []capturesEdit{carries(44e6), uneven, eachConn(func(c *measure.Connection) { c.Flight = &measure.Spread{Mean: 60 * kb, Max: 112 * kb} })}, map[string]string{"send-buffer": "no"}},
		{"seen at the receiver", nearReceiver, []capturesEdit{carries(44e6), uneven}, map[string]string{"send-buffer": "?", "paced": "?"}},
		{"the program sends by a clock", nearSender, []capturesEdit{carries(20e6), uneven, eachConn(func(c *measure.Connection) {
			c.RTTBack, c.BurstBytes.Mean = delays(time.Microsecond, 2500*time.Microsecond), 5*filmMSS
		})}, map[string]string{"app-limited": "likely", "paced": "no"}},
		{"segments leave one by one", nearSender, []capturesEdit{carries(900e6), uneven, eachConn(func(c *measure.Connection) { c.BurstBytes.Mean = 1.2 * filmMSS })}, map[string]string{"paced": "possible"}},
		{"segments leave in bursts", nearSender, []capturesEdit{carries(900e6), uneven}, map[string]string{"paced": "no"}},
	})
}

// TestWindowFigures: what a window costs, and where to fix it.
func TestWindowFigures(t *testing.T) {
	d := filmed(nearSender, carries(39.2e6), windowOf(99*kb, 97), roundTrip(20*ms, 20600*time.Microsecond))
	Diagnose(d)
	x := d.Findings[0]
	if x.Cause != "receive-window" || x.Where.Place != measure.AtReceiver || x.Where.EndPoint != "10.0.0.2" || x.Fix == nil || x.Effect == nil {
		t.Fatalf("%+v", x)
	}
	if b := x.Effect.BoundBps; b == nil || *b < 39e6 || *b > 40e6 {
		t.Errorf("99 KiB over 20.6 ms allow %v", b)
	}
}

func TestLossInPackets(t *testing.T) {
	// 20 Mb/s of 17,270 segments: Mathis allows 22 Mb/s at 0.1% and 20 ms.
	some := []capturesEdit{uneven, carries(20e6), sendsAgain(17, 1)}
	rows := []capturesEdit{carries(20e6), sendsAgain(60, 20)}
	lost := func(n int64) capturesEdit {
		return crossedData(func(d *measure.Crossed) { d.Lost = someSegments(n, 100) })
	}
	with := func(list []capturesEdit, edits ...capturesEdit) []capturesEdit {
		return append(append([]capturesEdit{}, list...), edits...)
	}
	judgeFilms(t, []film{
		{"lost one by one, sender", nearSender, some, map[string]string{"loss": "likely", "policer": "no", "shaper": "no", "reordering": "?", "broken-tso": "no"}},
		{"lost one by one, receiver", nearReceiver, some, map[string]string{"loss": "likely", "policer": "no"}},
		{"lost one by one, between", midway, some, map[string]string{"loss": "likely"}},
		{"lost one by one, both", nearBoth, with(some, lost(17)), map[string]string{"loss": "certain"}},
		{"lost, but not between the captures", []string{"", ""}, some, map[string]string{"loss": "no"}},
		{"dropped behind the receiver's interface", nearBoth, with(some, ignoredAt(1, 17)), map[string]string{"loss": "certain", "broken-tso": "no"}},
		{"dropped behind the receiver's interface, receiver", nearReceiver, with(some, ignoredAt(0, 17)), map[string]string{"loss": "certain"}},
		{"many dropped there, on a short path", nearBoth, []capturesEdit{carries(20e6), sendsAgain(2500, 1), ignoredAt(1, 2500), roundTrip(4*time.Microsecond, 6*time.Microsecond)}, map[string]string{"loss": "certain"}},
		{"a few dropped there", nearReceiver, with(some, sendsAgain(9, 1), ignoredAt(0, 9)), map[string]string{"loss": "likely"}},
		{"sent again since the sender did not hear of it", nearBoth, with(some, ignoredAt(1, 17), eachConn(func(c *measure.Connection) { c.Data.Spurious = c.Data.Again })), map[string]string{"loss": "no"}},
		{"repeated without SACK", nearBoth, with(some, ignoredAt(1, 17), eachConn(func(c *measure.Connection) { c.Acks.SACKed.N, c.Data.Gaps.N = 0, 1 })), map[string]string{"loss": "no"}},
		{"both, and one has gaps", nearBoth, with(some, lost(17), func(x *captures) { x.flow.Captures[1].Dropped = new(int64(50)) }), map[string]string{"loss": "likely"}},
		{"nothing is sent again", nearSender, []capturesEdit{uneven}, map[string]string{"loss": "no", "policer": "no"}},
		{"hardly any", nearSender, []capturesEdit{uneven, sendsAgain(1, 1)}, map[string]string{"loss": "no"}},
		{"too rare to matter", nearSender, []capturesEdit{uneven, carries(4e6), sendsAgain(1, 1)}, map[string]string{"loss": "no"}},
		{"a full queue drops a few", nearSender, []capturesEdit{sendsAgain(40, 20), roundTrip(20*ms, 60*ms)}, map[string]string{"loss": "no", "policer": "no", "shaper": "likely"}},
		{"lost a few at a time", nearSender, []capturesEdit{uneven, carries(80e6), sendsAgain(70, 5)}, map[string]string{"loss": "likely"}},
		{"most of it had not been lost", nearSender, with(some, sendsAgain(60, 1), eachConn(func(c *measure.Connection) { c.Data.Spurious = someSegments(58, 100) })), map[string]string{"loss": "possible"}},
		{"none of it had been lost", nearSender, with(some, eachConn(func(c *measure.Connection) { c.Data.Spurious = c.Data.Again })), map[string]string{"loss": "no"}},
		{"most waited for a timeout", nearReceiver, with(some, eachConn(func(c *measure.Connection) { c.Data.Timeout, c.Data.Wake = someSegments(5, 100), someSegments(6, 110) })), map[string]string{"loss": "possible", "policer": "no"}},
		{"no round trip", nearReceiver, with(some, eachConn(func(c *measure.Connection) { c.RTTBack = nil })), map[string]string{"loss": "possible", "policer": "?"}},
		{"too short to tell", nearSender, with(some, eachConn(func(c *measure.Connection) { c.Data.Segments, c.Data.Payload = 20, 20*filmMSS })), map[string]string{"loss": "?"}},

		{"many in a row, at a flat rate", nearSender, rows, map[string]string{"policer": "likely"}},
		{"many in a row, and a queue was full", nearSender, with(rows, eachConn(func(c *measure.Connection) { c.RTT.P99 = int64(50 * ms) })), map[string]string{"policer": "no"}},
		{"many in a row, once", nearSender, with(rows, sendsAgain(60, 60)), map[string]string{"policer": "no"}},
		{"many in a row, of the first half alone", nearSender, with(rows, eachConn(func(c *measure.Connection) {
			for i := range c.Timeline.Again {
				c.Timeline.Again[i].AtNs /= 2
			}
		})), map[string]string{"policer": "no"}},
		{"many in a row, at a flat rate, receiver", nearReceiver, rows, map[string]string{"policer": "likely"}},
		{"many in a row, at an uneven rate", nearSender, append([]capturesEdit{uneven}, rows...), map[string]string{"policer": "possible"}},
		{"many in a row, of a program that pauses", nearSender, with(rows, idleFor(60, 20)), map[string]string{"policer": "?"}},
		{"many in a row, all along", nearSender, with(rows, carries(190e6), sendsAgain(2000, 20)), map[string]string{"policer": "likely", "loss": "possible"}},
		{"many in a row, once, at a high rate", nearSender, []capturesEdit{sendsAgain(900, 900)}, map[string]string{"loss": "no"}},
		{"many in a row, and the window is full", nearSender, with(rows, windowOf(50*kb, 80)), map[string]string{"policer": "no"}},

		{"a queue at a flat rate", nearSender, []capturesEdit{roundTrip(20*ms, 60*ms)}, map[string]string{"shaper": "likely", "policer": "no", "send-buffer": "no"}},
		{"a queue at a flat rate, receiver", nearReceiver, []capturesEdit{roundTrip(20*ms, 60*ms)}, map[string]string{"shaper": "likely"}},
		{"a round trip that grows since the sender waits, receiver", nearReceiver, []capturesEdit{roundTrip(20*ms, 60*ms), eachConn(func(c *measure.Connection) { c.Data.BusyMs = 2000 })}, map[string]string{"shaper": "?", "policer": "no"}},
		{"a queue between", midway, []capturesEdit{roundTrip(20*ms, 60*ms)}, map[string]string{"shaper": "likely"}},
		{"a queue on the way back", nearBoth, []capturesEdit{roundTrip(20*ms, 60*ms), crossedAcks(func(d *measure.Crossed) { d.Delay = delays(10*ms, 50*ms) })}, map[string]string{"shaper": "likely"}},
		{"a queue at an uneven rate", nearSender, []capturesEdit{uneven, roundTrip(20*ms, 60*ms)}, map[string]string{"shaper": "no"}},
		{"a queue that is not between the captures", nearBoth, []capturesEdit{roundTrip(20*ms, 60*ms)}, map[string]string{"shaper": "no"}},
		{"a queue between both", nearBoth, []capturesEdit{roundTrip(20*ms, 60*ms), crossedData(func(d *measure.Crossed) { d.Delay = delays(10*ms, 50*ms) })}, map[string]string{"shaper": "likely"}},
		{"a flat rate without a queue", nearSender, nil, map[string]string{"shaper": "?"}},
		{"too short for a plateau", nearSender, []capturesEdit{roundTrip(20*ms, 60*ms), func(x *captures) { x.bins = x.bins[:2] }}, map[string]string{"shaper": "?"}},
	})
}

// TestSlowStartInPackets: a capture includes the start of a connection. A link that is full from the second second
// on is full, whatever the overall mean.
func TestSlowStartInPackets(t *testing.T) {
	for name, x := range map[string]struct {
		link float64 // in multiples of the settled rate
		want map[string]string
	}{
		"a full link":      {1.01, map[string]string{"shaper": "no"}},
		"a link with room": {4, map[string]string{"shaper": "likely", "link-rate": "no"}},
	} {
		d := filmed(nearSender, roundTrip(20*ms, 60*ms), func(x *captures) { x.bins = []float64{0.1, 1.1, 1.1, 1.1, 1.1} })
		c := &d.Cells[0]
		full := 1.1 * filmRate * x.link
		c.Ceiling = &measure.Ceiling{Bps: full, LinkBps: int64(full), LinkFrom: "stated", MTU: 1500, SharePct: 100 * filmRate * 0.8 / full}
		Diagnose(d)
		for cause, want := range x.want {
			if got := outcomeOf(c.Diagnosis, cause); got != want {
				t.Errorf("%s: %s is %q, want %q", name, cause, got, want)
			}
		}
	}
}

func TestOrderInPackets(t *testing.T) {
	late := func(n, again, doubled int64) []capturesEdit {
		return []capturesEdit{uneven, carries(50e6), sendsAgain(again, 5), eachConn(func(c *measure.Connection) {
			c.Data.Late, c.Data.LateMost = someSegments(n, 300), 5
			c.Acks.DSACK, c.Acks.DupAcks = someSegments(doubled, 310), someSegments(doubled, 310)
			c.Data.Spurious = someSegments(min(doubled, again), 310)
		})}
	}
	sackedLate := func(n int64) capturesEdit {
		return eachConn(func(c *measure.Connection) {
			c.Data.SACKLate, c.Data.SACKMost = someSegments(n, 300), 30*filmMSS
			c.Acks.SACKed, c.Acks.DupAcks = someSegments(2*n, 300), someSegments(n, 300)
		})
	}
	overtaken := func(n int64) capturesEdit {
		return crossedData(func(d *measure.Crossed) { d.Late = someSegments(n, 300) })
	}
	judgeFilms(t, []film{
		{"out of order, receiver", nearReceiver, late(900, 200, 190), map[string]string{"reordering": "certain"}},
		{"out of order, between", midway, late(900, 200, 190), map[string]string{"reordering": "likely"}},
		{"a few, receiver", nearReceiver, late(20, 10, 9), map[string]string{"reordering": "likely"}},
		{"it costs nothing", nearReceiver, late(900, 0, 0), map[string]string{"reordering": "likely", "loss": "no"}},
		{"hardly any", nearReceiver, late(3, 200, 0), map[string]string{"reordering": "no"}},
		{"losses, and a few late ones", nearReceiver, late(30, 200, 2), map[string]string{"reordering": "likely"}},
		{"in order, both", nearBoth, late(0, 200, 0), map[string]string{"reordering": "no"}},
		{"overtaken, both", nearBoth, append(late(0, 200, 190), overtaken(900)), map[string]string{"reordering": "certain"}},
		{"it costs nothing before a full queue", nearReceiver, append(late(900, 200, 190), roundTrip(20*ms, 60*ms)), map[string]string{"reordering": "likely"}},
		{"duplicates of the path are no order", nearSender, append(late(0, 200, 190), eachConn(func(c *measure.Connection) { c.Data.Spurious = someSegments(2, 310) })), map[string]string{"reordering": "?"}},
		{"a path that doubles packets", nearSender, late(0, 20, 900), map[string]string{"reordering": "?"}},
		{"told to the sender", nearSender, late(0, 200, 190), map[string]string{"reordering": "likely", "policer": "no"}},
		{"told to the sender, of a part", nearSender, late(0, 200, 120), map[string]string{"reordering": "possible"}},
		{"told to the sender, a few times", nearSender, late(0, 9, 9), map[string]string{"reordering": "possible"}},
		{"told to the receiver, whose packets do not tell first copies", nearReceiver, late(0, 200, 190), map[string]string{"reordering": "likely"}},
		{"told before the capture, in order there", midway, late(0, 200, 190), map[string]string{"reordering": "likely"}},
		{"in order up to the capture", midway, late(0, 200, 0), map[string]string{"reordering": "?"}},
		{"in order between two captures on the way", []string{measure.AtSender, measure.AtPath}, late(0, 200, 0), map[string]string{"reordering": "?"}},
		{"SACK tells the sender, who sends nothing again", nearSender, append(late(0, 0, 0), sackedLate(900)), map[string]string{"reordering": "likely", "loss": "no"}},
		{"SACK tells the sender, and most was lost", nearSender, append(late(0, 200, 2), sackedLate(30)), map[string]string{"reordering": "likely", "loss": "likely"}},
		{"SACK tells of a few", nearSender, append(late(0, 200, 2), sackedLate(4)), map[string]string{"reordering": "?"}},
		{"as many go twice, and the rate bears it", nearReceiver, append(late(900, 200, 190), carries(200e6)), map[string]string{"reordering": "likely"}},
		{"too few went twice to be sure", nearReceiver, late(900, 9, 9), map[string]string{"reordering": "likely"}},
		{"what was not told twice is no loss, both", nearBoth, append(late(0, 200, 150), overtaken(900)), map[string]string{"reordering": "certain", "loss": "no"}},
		{"losses at the sender", nearSender, late(0, 200, 2), map[string]string{"reordering": "?"}},
		{"nothing came back", nearSender, []capturesEdit{uneven}, map[string]string{"reordering": "no"}},
		{"at a place that is not known", anywhere, late(900, 200, 190), map[string]string{"reordering": "likely"}},
	})
}

func TestDirectionsInPackets(t *testing.T) {
	changed := func(what string) capturesEdit {
		return func(x *captures) {
			x.flow.Crossing.Conns[0].Changed = append(x.flow.Crossing.Conns[0].Changed, measure.Change{What: what, Left: "its own", Arrived: "other ones", Packets: []int64{1, 1}})
		}
	}
	judgeFilms(t, []film{
		{"as many routers back", nearBoth, []capturesEdit{uneven}, map[string]string{"asymmetric-route": "no", "tcp-proxy": "no"}},
		{"more routers back", nearBoth, []capturesEdit{uneven, connOf(0, func(c *measure.Connection) { c.Acks.TTLs = []int{58} })}, map[string]string{"asymmetric-route": "likely"}},
		{"several ways back", nearBoth, []capturesEdit{uneven, connOf(0, func(c *measure.Connection) { c.Acks.TTLs = []int{61, 58} })}, map[string]string{"asymmetric-route": "?"}},
		{"one capture", nearSender, []capturesEdit{uneven}, map[string]string{"asymmetric-route": "?", "tcp-proxy": "?"}},
		{"one direction only", anywhere, []capturesEdit{uneven, eachConn(func(c *measure.Connection) { c.Acks, c.RTT, c.RTTBack = measure.Direction{}, nil, nil })}, map[string]string{"asymmetric-route": "possible"}},
		{"other numbers and options", nearBoth, []capturesEdit{uneven, changed("sequence numbers"), connOf(1, func(c *measure.Connection) { c.SYN.WindowScale = new(9) })}, map[string]string{"tcp-proxy": "certain"}},
		{"other numbers, the same options", nearBoth, []capturesEdit{uneven, changed("sequence numbers")}, map[string]string{"tcp-proxy": "likely"}},
		{"another MSS", nearBoth, []capturesEdit{uneven, changed("syn mss")}, map[string]string{"tcp-proxy": "no"}},
		{"answered from nearby", nearSender, []capturesEdit{uneven, eachConn(func(c *measure.Connection) { c.OpenFarNs = new(int64(ms)) })}, map[string]string{"tcp-proxy": "possible"}},
		{"answered from nearby, over a slow link", nearSender, []capturesEdit{uneven, carries(1e6), eachConn(func(c *measure.Connection) { c.OpenFarNs = new(int64(ms)) })}, map[string]string{"tcp-proxy": "?"}},
		{"answered from elsewhere", nearSender, []capturesEdit{uneven, eachConn(func(c *measure.Connection) { c.SYNACK.TTL, c.Acks.TTLs = 250, []int{57, 250} })}, map[string]string{"tcp-proxy": "possible"}},
	})
}

// TestCaptureMisses: packets missing from a capture are reported, and are no loss.
func TestCaptureMisses(t *testing.T) {
	dropped := func(n int64) capturesEdit {
		return func(x *captures) { x.flow.Captures[0].Dropped = &n }
	}
	unseen := eachConn(func(c *measure.Connection) {
		c.Data.Unseen, c.Data.Gaps = someSegments(4000, 70), someSegments(4000, 70)
	})
	judgeFilms(t, []film{
		{"whole", nearReceiver, []capturesEdit{uneven, dropped(0)}, map[string]string{"measurement": "?", "loss": "no"}},
		{"whole, both", nearBoth, []capturesEdit{uneven, dropped(0)}, map[string]string{"measurement": "no", "loss": "no"}},
		{"a few are missing", nearReceiver, []capturesEdit{uneven, dropped(20)}, map[string]string{"measurement": "possible"}},
		{"many are missing", nearReceiver, []capturesEdit{uneven, dropped(50_000), unseen}, map[string]string{"measurement": "likely", "loss": "no"}},
		{"acknowledged and not captured", midway, []capturesEdit{uneven, unseen}, map[string]string{"measurement": "likely", "loss": "no"}},
	})
	d := filmed(nearReceiver, uneven, dropped(50_000), unseen)
	if got := first(t, d); got != "none possible" && got != "none likely" {
		t.Errorf("first comes %s: the rate does not hang on the capture", got)
	}
}

// TestOtherDirection: if a connection carries data in both directions, the flow of the less busy one is judged by
// its own packets.
func TestOtherDirection(t *testing.T) {
	d := filmed(nearBoth, uneven, closedFor(40))
	c := &d.Cells[0]
	c.From, c.To, c.Spec.From, c.Spec.To = c.To, c.From, c.Spec.To, c.Spec.From
	x := &c.Runs[0].Flows[0]
	x.From, x.To, x.Sender, x.Receiver = x.To, x.From, x.Receiver, x.Sender
	x.Captures[0].Place, x.Captures[1].Place = measure.AtReceiver, measure.AtSender
	Diagnose(d)
	if got := outcomeOf(c.Diagnosis, "slow-reader"); got == "certain" {
		t.Error("the window that was closed is of the other direction")
	}
	f := diagnose.NewFlow(theCatalogue(), d, c)
	if f.Crossing == nil || f.Crossing.Left.At != measure.AtSender || f.CapturePoints[0].Data.Segments != 80_000 || *f.CapturePoints[0].Connections[0].FromOpened {
		t.Errorf("not turned: %+v", f.Crossing)
	}
}

// TestCapturedExperiment: the packets of the experiment count for its base.
func TestCapturedExperiment(t *testing.T) {
	d := smallReceive().document()
	film := filmed(nearBoth, brokenOffload)
	trial := film.Cells[0]
	trial.From, trial.To, trial.Experiment, trial.Baseline = "a", "b", diagnose.Captured, true
	trial.Runs[0].Flows[0].From, trial.Runs[0].Flows[0].To = "a", "b"
	d.Cells = append(d.Cells, trial)
	Diagnose(d)
	if got := outcomeOf(d.Cells[0].Diagnosis, "broken-tso"); got != "certain" {
		t.Errorf("broken-tso: %q\n%s", got, saidOf(d, "broken-tso"))
	}
	if len(d.Cells[1].Findings) > 0 {
		t.Error("the experiment has findings of its own")
	}
}
