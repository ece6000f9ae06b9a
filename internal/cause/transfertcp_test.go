package cause

import (
	"os"
	"path/filepath"
	"testing"

	"thru/internal/measure"
)

// TestTransferRecorded: both kernels' data of real connections to a real server (nginx over 200 Mb/s and 20 ms;
// lab, TestServerEnd) names their limit.
func TestTransferRecorded(t *testing.T) {
	for _, tt := range []struct{ file, cause, confidence, place string }{
		{"small-send-buffer", "send-buffer", measure.Certain, measure.AtSender},
		{"small-receive-buffer", "receive-window", "", measure.AtReceiver},
		{"slow-server", "app-limited", measure.Certain, measure.AtSender},
		{"loss", "loss", "", measure.AtPath},
	} {
		text, err := os.ReadFile(filepath.Join("testdata", "transfers", tt.file+".json"))
		if err != nil {
			t.Fatal(err)
		}
		d, err := measure.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		Transfer(d)
		if len(d.Findings) == 0 {
			t.Errorf("%s: nothing was found", tt.file)
			continue
		}
		f := d.Findings[0]
		if f.Cause != tt.cause || tt.confidence != "" && f.Confidence != tt.confidence || f.Where.Place != tt.place || d.Transfer.Binds != measure.LayerMemory || len(f.Evidence) == 0 {
			t.Errorf("%s: %s (%s) at %+v: %s", tt.file, f.Cause, f.Confidence, f.Where, f.Summary)
		}
		for _, c := range d.Findings[1:] {
			if c.Cause == f.Cause {
				t.Errorf("%s: %s is said twice", tt.file, c.Cause)
			}
		}
	}
}

// carried is a connection of the sending end, over a round-trip time in ms, with its segments in flight.
func carried(rttMs, flight float64, change func(*measure.Stream)) []measure.Stream {
	one := func(x float64) *measure.Spread { return &measure.Spread{Mean: x, Min: x, Max: x} }
	s := measure.Stream{
		Local: "10.0.0.2:80", Peer: "10.0.0.1:40000", Congestion: "cubic", Window: measure.Buffer{Granted: 6 << 20},
		TCP: &measure.TCPInfo{
			MinRTT: new(int64(rttMs * 1_000_000)), SendMSS: new(uint32(1448)), Retrans: new(uint32(0)), DataSegsOut: new(uint32(100_000)), ReordSeen: new(uint32(0)), DSACKDups: new(uint32(0)),
			SACK: new(true), Timestamps: new(true), WScaleOK: new(true), BusyUs: new(uint64(10e6)), RwndLimitedUs: new(uint64(0)),
		},
		Timeline: &measure.Timeline{
			Samples: 200, Every: 50e6, InFlight: one(flight), Cwnd: one(2 * flight), NotSent: one(500_000), SendWnd: one(8 << 20), RTT: one(rttMs * 1e6), Pacing: one(1e9),
			CwndFull: new(0.0), WndFull: new(0.0), Idle: new(0.0), BufferFull: new(100.0),
		},
	}
	if change != nil {
		change(&s)
	}
	s.TCPStart = s.TCP.AtBirth()
	return []measure.Stream{s}
}

// TestTransferServer: the data of the server's end names the cause, and only that.
func TestTransferServer(t *testing.T) {
	const net, memory = measure.LayerNetwork, measure.LayerMemory
	up := measure.Transfer{Direction: measure.Upload}
	busy := func(pct, worker float64, programs ...string) func(memory, whole *measure.TransferRun) {
		return func(m, _ *measure.TransferRun) {
			m.ThereCPU, m.Programs = &measure.CPUFigure{Pct: pct, WorkerCores: &worker}, programs
			m.ThereHost = &measure.HostSpan{CPUs: make([]measure.CPU, 4)}
		}
	}
	there := func(streams []measure.Stream) func(memory, whole *measure.TransferRun) {
		return func(m, _ *measure.TransferRun) { m.There = streams }
	}
	here := func(streams []measure.Stream) func(memory, whole *measure.TransferRun) {
		return func(m, _ *measure.TransferRun) { m.Sockets = streams }
	}
	idle := func(s *measure.Stream) {
		s.Timeline.Idle, s.Timeline.BufferFull, s.Timeline.NotSent = new(97.0), new(1.0), &measure.Spread{}
	}
	full := func(s *measure.Stream) { s.Timeline.NotSent = &measure.Spread{} }
	held := func(s *measure.Stream) {
		s.TCP.RwndLimitedUs, s.Timeline.SendWnd, s.Timeline.WndFull = new(uint64(9e6)), &measure.Spread{Mean: 100 * 1448}, new(95.0)
	}
	lost := func(s *measure.Stream) { s.TCP.Retrans, s.Timeline.Cwnd = new(uint32(500)), &measure.Spread{Mean: 12} }
	tests := []struct {
		name     string
		transfer measure.Transfer
		layers   map[string]float64
		change   func(memory, whole *measure.TransferRun)
		cause    string
		place    string
		who      string
	}{
		{"the server's cipher", measure.Transfer{Protocol: "sftp"}, map[string]float64{net: 9000, memory: 1700}, busy(40, 0.97, "sshd", "sshd"), "cipher-cpu", measure.AtSender, ""},
		{"the server's process", up, map[string]float64{net: 9000, memory: 1700}, busy(40, 0.97, "nginx"), "receiver-cpu", measure.AtReceiver, ""},
		{"one process for all clients", measure.Transfer{Asked: measure.Amount{Clients: 4}}, map[string]float64{net: 9000, memory: 1700}, busy(40, 0.97, "nginx"), "sender-cpu", measure.AtSender, ""},
		{"a process for each client", measure.Transfer{Asked: measure.Amount{Clients: 4}}, map[string]float64{net: 9000, memory: 1700}, busy(40, 0.97, "smbd", "smbd", "smbd", "smbd"), "app-limited", measure.AtSender, ""},
		{"all CPUs of the server", measure.Transfer{}, map[string]float64{net: 9000, memory: 1700}, busy(99, 0.6, "nginx"), "sender-cpu", measure.AtSender, ""},
		{"the server's CPUs are busy with something else", measure.Transfer{}, map[string]float64{net: 9000, memory: 1700}, busy(99, 0.02, "nginx"), "app-limited", measure.AtSender, ""},
		{"the server's process has a CPU quota", measure.Transfer{}, map[string]float64{net: 900, memory: 57.9}, func(m, _ *measure.TransferRun) {
			m.There = carried(0.2, 100, idle)
			m.ThereHost = &measure.HostSpan{CPUs: make([]measure.CPU, 4), Quota: &measure.QuotaSpan{CPUs: 0.2, Periods: 100, Throttled: 96, ThrottledNs: 8e9}}
		}, "cpu-quota", measure.AtSender, ""},
		{"the client's window holds a download up", measure.Transfer{}, map[string]float64{net: 900, memory: 57.9}, there(carried(20, 100, held)), "receive-window", measure.AtReceiver, "local"},
		{"no window is too small for a short way", measure.Transfer{}, map[string]float64{net: 900, memory: 57.9}, there(carried(0.2, 100, held)), "app-limited", measure.AtSender, ""},
		{"the server's send buffer", measure.Transfer{}, map[string]float64{net: 900, memory: 57.9}, there(carried(20, 100, full)), "send-buffer", measure.AtSender, ""},
		{"this end's send buffer", up, map[string]float64{net: 900, memory: 57.9}, here(carried(20, 100, full)), "send-buffer", measure.AtSender, "local"},
		{"the server offers no more", measure.Transfer{}, map[string]float64{net: 900, memory: 57.9}, there(carried(20, 100, idle)), "app-limited", measure.AtSender, ""},
		{"loss on the way to the server", up, map[string]float64{memory: 8}, here(carried(20, 12, lost)), "loss", measure.AtPath, ""},
		{"loss on the way from it", measure.Transfer{}, map[string]float64{memory: 8}, there(carried(20, 12, lost)), "loss", measure.AtPath, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := moved(tt.transfer, tt.layers, tt.change)
			Transfer(d)
			if len(d.Findings) == 0 {
				t.Fatal("nothing was found")
			}
			f := d.Findings[0]
			if f.Cause != tt.cause || f.Where.Place != tt.place || f.Where.EndPoint != tt.who {
				t.Errorf("%s (%s) at %+v: %s; %+v", f.Cause, f.Confidence, f.Where, f.Summary, f.Evidence)
			}
		})
	}
}

// TestTransferDisproved: a limit that the network's own test exceeded is not attributed to the path.
func TestTransferDisproved(t *testing.T) {
	queued := func(m, _ *measure.TransferRun) {
		m.There = carried(20, 300, func(s *measure.Stream) {
			s.Timeline.RTT, s.Timeline.Cwnd, s.Timeline.CwndFull = &measure.Spread{Mean: 60e6}, &measure.Spread{Mean: 300}, new(100.0)
		})
		m.Seconds = []float64{57.9e6, 58e6, 57.8e6, 57.9e6, 58e6}
	}
	for name, tt := range map[string]struct {
		layers map[string]float64
		shaper bool
	}{
		"the network is not known": {map[string]float64{measure.LayerMemory: 57.9}, true},
		"it carries more":          {map[string]float64{measure.LayerMemory: 57.9, measure.LayerNetwork: 900}, false},
	} {
		d := moved(measure.Transfer{}, tt.layers, queued)
		Transfer(d)
		if f := d.Findings[0]; (f.Cause == "shaper") != tt.shaper {
			t.Errorf("%s: %s (%s): %s", name, f.Cause, f.Confidence, f.Summary)
		}
	}
}
