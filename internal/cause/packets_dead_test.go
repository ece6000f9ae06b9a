package cause

import (
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
)

// fallingTo makes the receiver's window shrink from 238 KiB to about this many bytes.
func fallingTo(bytes int64) capturesEdit {
	return eachConn(func(c *measure.Connection) {
		c.Window.Min, c.Window.Max = 1024, max(c.Window.Max, 238*kb)
		for i := range c.Timeline.Sent {
			w := bytes
			if i < 20 {
				w = int64(c.Window.Max)
			}
			c.Timeline.Window = append(c.Timeline.Window, w)
		}
	})
}

// crossedAcks edits what two captures show of the acknowledgements.
func crossedAcks(edit func(*measure.Crossed)) capturesEdit {
	return func(x *captures) { edit(&x.flow.Crossing.Conns[0].Acks) }
}

// standsStill stops acknowledgements at a time, for this long.
func standsStill(from, long time.Duration) capturesEdit {
	return eachConn(func(c *measure.Connection) {
		c.Data.Timeout, c.Data.Again, c.Data.Wake = someSegments(3, 900), someSegments(155, 900), someSegments(80, 910)
		c.Data.Again.Bytes = 155 * filmMSS
		x := c.Timeline
		a, b := int64(from)/x.StepNs, int64(from+long)/x.StepNs
		for i := a; i < min(b, int64(len(x.Sent))); i++ {
			x.Sent[i], x.Acked[i] = x.Sent[a-1], x.Acked[a-1]
		}
	})
}

func TestOutageInPackets(t *testing.T) {
	judgeFilms(t, []film{
		{"dead for a while", nearSender, []capturesEdit{uneven, standsStill(2*time.Second, 1800*time.Millisecond)}, map[string]string{"loss": "likely"}},
		{"dead for a while, both", nearBoth, []capturesEdit{uneven, standsStill(2*time.Second, 1800*time.Millisecond), crossedData(func(d *measure.Crossed) { d.Lost = someSegments(99, 900) })}, map[string]string{"loss": "likely"}},
		{"dead until the end", nearSender, []capturesEdit{uneven, standsStill(2*time.Second, 9*time.Second)}, map[string]string{"loss": "likely"}},
		{"one timeout", nearSender, []capturesEdit{uneven, standsStill(2*time.Second, 220*time.Millisecond)}, map[string]string{"loss": "possible"}},
		{"the window was closed", nearSender, []capturesEdit{uneven, standsStill(2*time.Second, 1800*time.Millisecond), closedFor(18)}, map[string]string{"slow-reader": "certain", "loss": "possible"}},
		{"a program that pauses, seen at the receiver", nearReceiver, []capturesEdit{uneven, standsStill(2*time.Second, 1800*time.Millisecond)}, map[string]string{"loss": "possible"}},
	})
	for text, long := range map[string]time.Duration{"was down for 1.8": 1800 * time.Millisecond, "acknowledged from second 2.0 on, for 8": 9 * time.Second} {
		d := filmed(nearSender, uneven, standsStill(2*time.Second, long))
		Diagnose(d)
		x := d.Findings[0]
		if x.Cause != "loss" || !strings.Contains(x.Summary, text) || len(x.Evidence[1].Packets) == 0 {
			t.Errorf("%s: %q says not %q", x.Cause, x.Summary, text)
		}
	}
}

// TestDeadPackets: a connection that carries nothing reports why.
func TestDeadPackets(t *testing.T) {
	opened := func(edit func(*measure.Connection)) capturesEdit {
		return func(x *captures) {
			c := x.conns[0]
			syn := c.SYN
			*c = measure.Connection{From: c.From, To: c.To, FromOpened: new(true), SYN: syn, GoodputBps: new(0.0), Data: measure.Direction{Packets: 6}}
			edit(c)
		}
	}
	nothing := func(acked int64) capturesEdit {
		return eachConn(func(c *measure.Connection) {
			c.Data = measure.Direction{Packets: 6, Segments: 6, Payload: 600, New: 100 + acked, MaxPacket: 152, Again: someSegments(5, 4), Timeout: someSegments(5, 4)}
			for i := range c.Timeline.Sent {
				c.Timeline.Sent[i], c.Timeline.Acked[i] = 100+acked, acked
			}
		})
	}
	for want, edit := range map[string]capturesEdit{
		"a SYN was sent to 10.0.0.2:5201 6 times and never answered": opened(func(c *measure.Connection) { c.SYN.Again = someSegments(5, 2) }),
		"a SYN was sent to 10.0.0.2:5201 and never answered":         opened(func(c *measure.Connection) {}),
		"refused: 10.0.0.2:5201 answered the SYN with RST":           opened(func(c *measure.Connection) { c.Acks = measure.Direction{Packets: 1, RST: someSegments(1, 2)} }),
		"data was sent 6 times and never acknowledged":               nothing(0),
		"nothing was acknowledged: the next data was sent 6 times":   nothing(200),
	} {
		d := filmed(nearSender, edit)
		Diagnose(d)
		x := d.Findings[0]
		if x.Cause != measure.CauseNone || x.Healthy || !strings.Contains(x.Summary, want) || len(x.Evidence) == 0 || len(x.Evidence[0].Packets) == 0 {
			t.Errorf("%s %q, want %q\n%s", x.Cause, x.Summary, want, saidOf(d, ""))
		}
	}
}

// TestQueueOnWhichDirection: two captures show in which direction a queue is, one does not.
func TestQueueOnWhichDirection(t *testing.T) {
	back := crossedAcks(func(d *measure.Crossed) { d.Delay = delays(10*ms, 50*ms) })
	there := crossedData(func(d *measure.Crossed) { d.Delay = delays(10*ms, 50*ms) })
	for name, x := range map[string]struct {
		places     []string
		edit       capturesEdit
		from, text string
	}{
		"back":  {nearBoth, back, "10.0.0.2", "in the reverse direction"},
		"there": {nearBoth, there, "10.0.0.1", "on the path limits"},
		"one":   {nearSender, func(*captures) {}, "10.0.0.1", "in one of the directions"},
	} {
		d := filmed(x.places, roundTrip(20*ms, 60*ms), x.edit)
		Diagnose(d)
		f := d.Findings[0]
		if f.Cause != "shaper" || f.Where.From != x.from || !strings.Contains(f.Summary, x.text) {
			t.Errorf("%s: %s from %s: %q", name, f.Cause, f.Where.From, f.Summary)
		}
	}
}

// TestNoContradiction: if only packets are known, counters derived from them do not contradict them.
func TestNoContradiction(t *testing.T) {
	d := filmed(nearSender, roundTrip(20*ms, 60*ms))
	e := d.Cells[0].Runs[0].Flows[0].Sender
	e.Streams = []measure.Stream{{TCP: &measure.TCPInfo{MinRTT: new(int64(20_000_000)), RTT: new(int64(16_000))}}}
	Diagnose(d)
	if x := d.Findings[0]; x.Cause != "shaper" || x.Confidence != measure.Likely || strings.Contains(x.Summary, "; but ") {
		t.Errorf("%s %s: %s", x.Cause, x.Confidence, x.Summary)
	}
}

// TestNotBindingIsNotFirst: a cause that costs nothing is not the answer, however certain.
func TestNotBindingIsNotFirst(t *testing.T) {
	for _, cause := range []string{"timestamps-off", "sack-off"} {
		d := filmed(nearSender, uneven, eachConn(lacks(theSYN, cause)))
		if got := first(t, d); !strings.HasPrefix(got, "none ") {
			t.Errorf("%s: first comes %s", cause, got)
		}
		if got := outcomeOf(d.Cells[0].Diagnosis, cause); got != "certain" {
			t.Errorf("%s: %q", cause, got)
		}
	}
}

// TestLittleAnswer: one connection of many with a closed window does not stand for the flow.
func TestLittleAnswer(t *testing.T) {
	d := filmed(nearSender, uneven)
	c := &d.Cells[0].Runs[0].Flows[0].Captures[0]
	little := c.Conns[0]
	little.From, little.Index = "10.0.0.1:40001", 1
	little.Data.New /= 40
	little.Acks.Zero, little.Acks.ZeroNs = someSegments(3, 50), int64(5*time.Second)
	c.Conns = append(c.Conns, little)
	Diagnose(d)
	if got := outcomeOf(d.Cells[0].Diagnosis, "slow-reader"); got != "no" {
		t.Errorf("slow-reader: %q\n%s", got, saidOf(d, "slow-reader"))
	}
}

// TestNextOfFile: the next step for a capture file uses only files.
func TestNextOfFile(t *testing.T) {
	for name, x := range map[string]struct {
		places []string
		want   string
	}{
		"sender":   {nearSender, "a capture at the receiver too"},
		"receiver": {nearReceiver, "a capture at the sender too"},
		"unknown":  {anywhere, "a capture at each end"},
		"both":     {[]string{measure.AtSender, measure.AtReceiver}, "`thru explain END POINT`"},
	} {
		d := filmed(x.places, uneven, carries(20e6), sendsAgain(17, 1), func(c *captures) {
			if c.flow.Crossing != nil {
				c.flow.Crossing.Conns[0].Data.Lost = someSegments(17, 100)
				c.flow.Captures[1].Dropped = new(int64(50))
			}
		})
		Diagnose(d)
		if f := d.Findings[0]; f.Cause != "loss" || !strings.HasPrefix(f.Next, x.want) {
			t.Errorf("%s: %s: next %q, want %q", name, f.Cause, f.Next, x.want)
		}
	}
}
