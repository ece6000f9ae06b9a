package cause

import (
	"strings"
	"testing"
	"time"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

const (
	ms = time.Millisecond
	kb = 1024.0
	mb = 1e6 // bit/s
)

// Figures of a real kernel over a path of 200 Mb/s and 20 ms (lab/wire), each with a variation on the other side
// of the threshold.

// smallReceive is a receiver with tcp_rmem of 128 KB.
func smallReceive() made {
	return made{bps: 39.2 * mb, rtt: 20600 * time.Microsecond, base: 20200 * time.Microsecond, rwndPct: 100, wndFull: 100,
		window: 99 * kb, flight: 99 * kb, cwnd: 199 * kb, notSent: 431 * kb, unread: 208, buffer: 634 << 10}
}

// smallSend is a sender with tcp_wmem of 128 KB.
func smallSend() made {
	return made{bps: 36.9 * mb, rtt: 22 * ms, base: 20 * ms, window: 2730 * kb, flight: 96 * kb, cwnd: 320 * kb, notSent: 2 * kb, buffer: 128 << 10}
}

// tinySend was measured between namespaces, with tcp_wmem "4096 4096 4096".
func tinySend() made {
	return made{bps: 395 * mb, rtt: 32 * time.Microsecond, base: 24 * time.Microsecond, window: 2730 * kb, flight: 891, flightMost: 2 * madeMSS, cwnd: 10 * madeMSS, buffer: 4096, sender: diagnose.Threads{Run: 30, Wait: 5, Blocked: 65}}
}

func TestWindows(t *testing.T) {
	for _, x := range []struct {
		name string
		base made
		with func(*made)
		want map[string]string
	}{
		{"small window", smallReceive(), nil, map[string]string{"receive-window": "certain", "slow-reader": "no", "send-buffer": "no", "loss": "no", "window-scaling-off": "no", "fixed-window": "no"}},
		{"no course", smallReceive(), func(m *made) { m.noTimeline = true }, map[string]string{"receive-window": "likely", "slow-reader": "?"}},
		{"no times", smallReceive(), func(m *made) { m.noTimes, m.noTimeline = true, true }, map[string]string{"receive-window": "?", "slow-reader": "?"}},
		{"no times, but a larger congestion window", smallReceive(), func(m *made) { m.noTimes, m.unread = true, 0 }, map[string]string{"receive-window": "certain"}},
		{"no times, and a smaller congestion window", smallReceive(), func(m *made) { m.noTimes, m.cwnd, m.wndFull = true, 50*kb, 0 }, map[string]string{"receive-window": "no"}},
		{"window beyond what was carried", smallReceive(), func(m *made) { m.window = 200 * kb }, map[string]string{"receive-window": "likely"}},
		{"window held it now and then", smallReceive(), func(m *made) { m.rwndPct, m.wndFull = 30, 30 }, map[string]string{"receive-window": "possible"}},
		{"window held it hardly ever", smallReceive(), func(m *made) { m.rwndPct, m.wndFull = 10, 10 }, map[string]string{"receive-window": "no"}},
		{"bbr hardly meets the window", smallReceive(), func(m *made) { m.control, m.rwndPct, m.pacing = "bbr", 32, 49*mb }, map[string]string{"receive-window": "certain"}},
		{"by hand", smallReceive(), func(m *made) { m.asked.Recv = 64 << 10 }, map[string]string{"fixed-window": "certain", "receive-window": "certain"}},
		{"by hand and enough", smallReceive(), func(m *made) { m.asked.Recv, m.rwndPct, m.wndFull = 64<<10, 0, 0 }, map[string]string{"fixed-window": "no"}},
		{"nobody reads", smallReceive(), func(m *made) { m.unread = 300 * kb }, map[string]string{"slow-reader": "certain", "receive-window": "no"}},
		{"a busy reader", smallReceive(), func(m *made) { m.unread, m.receiver = 300*kb, diagnose.Threads{Run: 95, Wait: 3, Blocked: 2} }, map[string]string{"slow-reader": "likely", "receive-window": "no"}},
		{"a reader that is late", made{bps: 68 * mb, rtt: 33 * ms, base: 20 * ms, window: 15000 * kb, flight: 434 * kb, cwnd: 434 * kb, notSent: 3000 * kb, unread: 278 * kb}, nil, map[string]string{"slow-reader": "certain", "shaper": "no"}},
		{"a reader that is hardly late", made{bps: 68 * mb, rtt: 33 * ms, base: 20 * ms, window: 15000 * kb, flight: 434 * kb, cwnd: 434 * kb, notSent: 3000 * kb, unread: 30 * kb}, nil, map[string]string{"slow-reader": "no", "shaper": "likely"}},
		{"a reader of a slow path, where a segment takes a while", made{bps: 1 * mb, rtt: 40 * ms, base: 20 * ms, window: 15000 * kb, flight: 5 * kb, cwnd: 5 * kb, unread: 2 * kb}, nil, map[string]string{"slow-reader": "no"}},
		{"small buffer", smallSend(), nil, map[string]string{"send-buffer": "certain", "receive-window": "no", "loss": "no", "shaper": "no"}},
		{"small buffer by hand", smallSend(), func(m *made) { m.asked.Send = 64 << 10 }, map[string]string{"send-buffer": "certain", "fixed-window": "certain"}},
		{"data waits to be sent", smallSend(), func(m *made) { m.notSent = 200 * kb }, map[string]string{"send-buffer": "no"}},
		{"congestion window full", smallSend(), func(m *made) { m.cwnd = 97 * kb }, map[string]string{"send-buffer": "no"}},
		{"sender hardly blocked", smallSend(), func(m *made) { m.sender = diagnose.Threads{Run: 60, Wait: 10, Blocked: 30} }, map[string]string{"send-buffer": "no"}},
		{"a tiny buffer, of which readings find little", tinySend(), nil, map[string]string{"send-buffer": "possible", "receive-window": "no"}},
		{"a tiny buffer, whose wake-ups keep the sender busy", tinySend(), func(m *made) { m.sender, m.flight = diagnose.Threads{Run: 60, Wait: 5, Blocked: 35}, 0.8*madeMSS }, map[string]string{"send-buffer": "possible"}},
		{"a tiny buffer, and a sender that is busy otherwise", tinySend(), func(m *made) { m.sender = diagnose.Threads{Run: 80, Wait: 10, Blocked: 10} }, map[string]string{"send-buffer": "no"}},
		{"a tiny buffer that was never full", tinySend(), func(m *made) { m.flightMost = 891 }, map[string]string{"send-buffer": "no"}},
		{"a tiny buffer that would carry less", tinySend(), func(m *made) { m.bps = 2000 * mb }, map[string]string{"send-buffer": "no"}},
		{"a tiny window, whenever there is anything to send", tinySend(), func(m *made) { m.flight, m.window, m.wndFull, m.idle, m.bps = 1.76*madeMSS, 2944, 88, 12, 878*mb }, map[string]string{"receive-window": "certain", "send-buffer": "no"}},
		{"much of the buffer unused", smallSend(), func(m *made) { m.buffer = 4 << 20 }, map[string]string{"send-buffer": "no"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			m := x.base
			if x.with != nil {
				x.with(&m)
			}
			d := m.document()
			Diagnose(d)
			for cause, want := range x.want {
				if got := outcomeOf(d.Cells[0].Diagnosis, cause); got != want {
					t.Errorf("%s: %q, want %q", cause, got, want)
				}
			}
		})
	}
}

func TestWindowBound(t *testing.T) {
	d := smallReceive().document()
	Diagnose(d)
	x := d.Findings[0]
	if x.Cause != "receive-window" || x.Where.Place != measure.AtReceiver || x.Where.EndPoint != "b" {
		t.Fatalf("%+v", x)
	}
	if b := x.Effect.BoundBps; b == nil || *b < 39e6 || *b > 40e6 {
		t.Errorf("99 KiB over 20.6 ms allow %v", b)
	}
	if !strings.Contains(x.Summary, "99 KiB") || !strings.Contains(x.Summary, "20.6 ms") {
		t.Errorf("%q", x.Summary)
	}
}

func TestWindowScaling(t *testing.T) {
	off := func(m made) *measure.Document {
		d := m.document()
		d.Cells[0].Runs[0].Flows[0].Sender.Streams[0].TCP.WScaleOK = new(false)
		return d
	}
	m := smallReceive()
	m.window, m.bps = 64*kb, 24.3*mb
	d := off(m)
	d.EndPoints[1].Facts.Sysctls = map[string]string{"net.ipv4.tcp_window_scaling": "0"}
	if got := first(t, d); got != "window-scaling-off certain" {
		t.Error(got)
	}
	if w := d.Findings[0].Where; w.Place != measure.AtReceiver || w.EndPoint != "b" {
		t.Errorf("at %+v", w)
	}
	if x := d.Findings[1]; x.Cause != "receive-window" || x.BecauseOf != "window-scaling-off" {
		t.Errorf("%s because of %q", x.Cause, x.BecauseOf)
	}

	d = off(m)
	has, not := &measure.SYN{HasScale: new(true)}, &measure.SYN{HasScale: new(false)}
	d.Paths = []measure.Path{{From: "a", To: "b", Handshake: &measure.Handshake{SYNSent: has, SYNSeen: not}}}
	Diagnose(d)
	if w := d.Findings[0].Where; w.Place != measure.AtPath {
		t.Errorf("taken out on the way, but found at %+v", w)
	}

	m.unread = 60 * kb
	if got := first(t, off(m)); got != "slow-reader certain" {
		t.Errorf("nobody reads: %s", got)
	}

	m.unread, m.rwndPct, m.wndFull = 0, 0, 0
	d = off(m)
	Diagnose(d)
	if x := d.Cells[0].Findings[0]; x.Cause == "window-scaling-off" && len(d.Cells[0].Findings) > 1 {
		t.Error("what costs nothing stands first")
	}
}

// TestTwiceTheBuffer decides about a send buffer that the figures of one run leave open.
func TestTwiceTheBuffer(t *testing.T) {
	m := smallSend()
	m.rtt = 33 * ms // its own bursts form a queue
	m.bps = 25 * mb
	for _, x := range []struct {
		trials []measure.Cell
		want   string
	}{{nil, "send-buffer likely"}, {[]measure.Cell{experiment(diagnose.MoreBuffer, 50*mb)}, "send-buffer likely"}, {[]measure.Cell{experiment(diagnose.MoreBuffer, 50*mb), inTurn(m, diagnose.MoreBuffer)}, "send-buffer certain"}, {[]measure.Cell{experiment(diagnose.MoreBuffer, 26*mb)}, "send-buffer likely"}} {
		if got := first(t, m.document(x.trials...)); got != x.want {
			t.Errorf("%d trials: %s, want %s", len(x.trials), got, x.want)
		}
	}
	d := m.document()
	Diagnose(d)
	if x, ok := Next(d, 0, nil); !ok || x.ID != diagnose.MoreBuffer || x.Spec.Window.Send != 128<<10 {
		t.Errorf("%v %+v", ok, x)
	}
}

// TestFixedWindowByExperiment: the rate without -w decides.
func TestFixedWindowByExperiment(t *testing.T) {
	m := smallReceive()
	m.asked.Recv, m.noTimeline = 64<<10, true
	for _, x := range []struct {
		free float64
		want string
	}{{180 * mb, "fixed-window certain"}, {41 * mb, "fixed-window likely"}} {
		if got := first(t, m.document(experiment(diagnose.NoWindow, x.free), inTurn(m, diagnose.NoWindow))); got != x.want {
			t.Errorf("%v without -w: %s, want %s", x.free, got, x.want)
		}
	}
}

// Twice the window decides if the figures of one run do not quite fit.
func TestTwiceTheWindow(t *testing.T) {
	for name, x := range map[string]struct {
		carries float64
		with    func(*made)
		want    string
	}{
		"it carries more":              {78 * mb, func(*made) {}, "certain"},
		"it carries the same":          {40 * mb, func(*made) {}, "likely"},
		"the window held it at times":  {78 * mb, func(m *made) { m.rwndPct, m.wndFull = 30, 30 }, "possible"},
		"what is unread is not known":  {78 * mb, func(m *made) { m.noTimeline = true }, "likely"},
		"the reader is what is behind": {78 * mb, func(m *made) { m.unread = 300 * kb }, "no"},
	} {
		m := smallReceive()
		m.window = 200 * kb // twice what was carried per round trip
		x.with(&m)
		d := m.document(experiment(diagnose.MoreWindow, x.carries), inTurn(m, diagnose.MoreWindow))
		Diagnose(d)
		if got := outcomeOf(d.Cells[0].Diagnosis, "receive-window"); got != x.want {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
	}
}

// A manually set window that carries more than a kernel-tuned one does not limit the flow, whatever its counters
// say.
func TestFixedWindowCarriesMost(t *testing.T) {
	for rate, want := range map[float64]string{20 * mb: "no", 80 * mb: "certain"} {
		d := with(smallReceive(), func(m *made) { m.asked.Recv = 64 << 10 }).document(made{bps: rate}.cell())
		if Diagnose(d); outcomeOf(d.Cells[0].Diagnosis, "fixed-window") != want {
			t.Errorf("tuned %v: %q", rate, outcomeOf(d.Cells[0].Diagnosis, "fixed-window"))
		}
	}
}
