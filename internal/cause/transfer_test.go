package cause

import (
	"strings"
	"testing"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// moved is a transfer with its layers in Mb/s, and the runs behind them.
func moved(t measure.Transfer, layers map[string]float64, change func(memory, whole *measure.TransferRun)) *measure.Document {
	if t.Direction == "" {
		t.Direction = measure.Download
	}
	if t.Protocol == "" {
		t.Protocol = "http"
	}
	t.Asked.Clients = max(t.Asked.Clients, 1)
	runs := map[string]*measure.TransferRun{}
	for _, name := range []string{measure.LayerDiskFar, measure.LayerNetwork, measure.LayerDiskHere, measure.LayerLibrary, measure.LayerMemory, measure.LayerWhole} {
		l := measure.Layer{Name: name, Missing: "a test leaves it out"}
		if mbps, ok := layers[name]; ok {
			l.Bps, l.Missing = new(mbps*1e6), ""
		}
		t.Layers = append(t.Layers, l)
		if l.Bps != nil && (name == measure.LayerMemory || name == measure.LayerWhole) {
			runs[name] = &measure.TransferRun{Layer: name, Bytes: int64(*l.Bps / 8 * 10), ElapsedNs: 10e9, Files: 1, Bps: &measure.Figure{Value: *l.Bps}}
		}
	}
	memory, whole := runs[measure.LayerMemory], runs[measure.LayerWhole]
	if change != nil {
		change(memory, whole)
	}
	for _, r := range []*measure.TransferRun{memory, whole} {
		if r != nil {
			t.Runs = append(t.Runs, *r)
		}
	}
	return &measure.Document{Command: "transfer", Transfer: &t}
}

// connection is one with a round-trip time in ms.
func connection(rttMs float64, change func(*measure.Stream)) []measure.Stream {
	s := measure.Stream{TCP: &measure.TCPInfo{MinRTT: new(int64(rttMs * 1_000_000))}}
	if change != nil {
		change(&s)
	}
	s.TCPStart = s.TCP.AtBirth()
	return []measure.Stream{s}
}

// TestTransferBinds: which layer is named, and why.
func TestTransferBinds(t *testing.T) {
	const net, far, here, client, memory, whole = measure.LayerNetwork, measure.LayerDiskFar, measure.LayerDiskHere, measure.LayerLibrary, measure.LayerMemory, measure.LayerWhole
	up := measure.Transfer{Direction: measure.Upload}
	tests := []struct {
		name       string
		transfer   measure.Transfer
		layers     map[string]float64
		change     func(memory, whole *measure.TransferRun)
		binds      string
		cause      string
		confidence string
	}{
		{"the disk here is slower", measure.Transfer{}, map[string]float64{net: 950, here: 210, memory: 900, whole: 200},
			func(_, w *measure.TransferRun) { w.LocalNs = 9e9 }, here, "disk", measure.Certain},
		{"the disk here is slower, and was not measured apart", measure.Transfer{}, map[string]float64{net: 950, memory: 900, whole: 200},
			func(_, w *measure.TransferRun) { w.LocalNs = 9e9 }, whole, "disk", measure.Likely},
		{"a run varies, and the file is not waited for", measure.Transfer{}, map[string]float64{net: 950, here: 5000, memory: 940, whole: 700},
			func(_, w *measure.TransferRun) { w.LocalNs = 1e9 }, net, "network", measure.Certain},
		{"the file to upload is read slowly", up, map[string]float64{net: 950, here: 100, memory: 900, whole: 100},
			func(_, w *measure.TransferRun) { w.LocalNs = 9e9 }, here, "disk", measure.Certain},
		{"one file does not fill the disk", measure.Transfer{}, map[string]float64{net: 9500, here: 17700, memory: 5540, whole: 2800},
			func(_, w *measure.TransferRun) { w.LocalNs = 43e8 }, whole, "disk", measure.Likely},
		{"slower with the file, which is not waited for", measure.Transfer{}, map[string]float64{here: 17700, memory: 5540, whole: 2800},
			func(_, w *measure.TransferRun) { w.LocalNs = 1e9 }, memory, "app-limited", measure.Possible},
		{"slower with the file, and no CPU is left", measure.Transfer{}, map[string]float64{net: 4840, here: 17700, memory: 5540, whole: 2800},
			func(_, w *measure.TransferRun) {
				w.LocalNs, w.HereCPU = 43e8, &measure.CPUFigure{Pct: 98, Cores: 1.96, WorkerCores: new(0.6)}
			}, whole, "receiver-cpu", measure.Likely},
		{"the disk is reached, and no CPU is left", measure.Transfer{}, map[string]float64{net: 9500, here: 2900, memory: 5540, whole: 2800},
			func(_, w *measure.TransferRun) {
				w.LocalNs, w.HereCPU = 7e9, &measure.CPUFigure{Pct: 98, Cores: 1.96, WorkerCores: new(0.6)}
			}, here, "disk", measure.Likely},
		{"the file comes faster than the disk gives", up, map[string]float64{net: 9500, here: 500, memory: 5540, whole: 2800},
			func(_, w *measure.TransferRun) { w.LocalNs = 7e9 }, whole, "disk", measure.Likely},
		{"less over memory than over the disk, which fills the network", measure.Transfer{}, map[string]float64{net: 950, memory: 697, whole: 916}, nil, net, "network", measure.Certain},
		{"less over memory than over the disk", measure.Transfer{}, map[string]float64{net: 9500, memory: 697, whole: 916}, nil, whole, "app-limited", measure.Likely},
		{"the network is full", measure.Transfer{}, map[string]float64{net: 100, here: 2000, client: 9000, memory: 94, whole: 94},
			func(_, w *measure.TransferRun) { w.LocalNs = 2e8 }, net, "network", measure.Certain},
		{"the server's disk", measure.Transfer{}, map[string]float64{net: 950, far: 300, client: 9000, memory: 290}, nil, far, "disk", measure.Likely},
		{"the client's own ceiling", measure.Transfer{}, map[string]float64{net: 9000, client: 1600, memory: 1500}, nil, client, "client", measure.Likely},
		{"a buffer that was set", measure.Transfer{Asked: measure.Amount{BufferBytes: 65536}}, map[string]float64{net: 900, memory: 25},
			func(m, _ *measure.TransferRun) {
				m.Sockets = connection(20, func(s *measure.Stream) { s.Window = measure.Buffer{Asked: 65536, Usable: 65536} })
			}, memory, "receive-window", measure.Certain},
		{"a buffer that was set, of an upload", measure.Transfer{Direction: measure.Upload, Asked: measure.Amount{BufferBytes: 65536}}, map[string]float64{net: 900, memory: 25},
			func(m, _ *measure.TransferRun) {
				m.Sockets = connection(20, func(s *measure.Stream) { s.Window = measure.Buffer{Asked: 65536, Usable: 65536} })
			}, memory, "send-buffer", measure.Certain},
		{"a buffer that was set, on a short way with busy CPUs", measure.Transfer{Asked: measure.Amount{BufferBytes: 4096}}, map[string]float64{net: 8600, memory: 488},
			func(m, _ *measure.TransferRun) {
				m.HereCPU = &measure.CPUFigure{Pct: 99, WorkerCores: new(0.58)}
				m.Sockets = connection(0.05, func(s *measure.Stream) {
					s.Window, s.TCP.RecvWnd = measure.Buffer{Asked: 4096, Usable: 4096}, new(uint32(10<<10))
				})
			}, memory, "receive-window", measure.Likely},
		{"a buffer that is large enough", measure.Transfer{Asked: measure.Amount{BufferBytes: 4 << 20}}, map[string]float64{net: 900, memory: 25},
			func(m, _ *measure.TransferRun) {
				m.Sockets = connection(20, func(s *measure.Stream) { s.Window = measure.Buffer{Asked: 4 << 20, Usable: 4 << 20} })
			}, memory, "app-limited", measure.Likely},
		{"the server's window", up, map[string]float64{net: 900, memory: 100},
			func(m, _ *measure.TransferRun) {
				m.Sockets = connection(20, func(s *measure.Stream) { s.TCP.BusyUs, s.TCP.RwndLimitedUs = new(uint64(10e6)), new(uint64(9e6)) })
			}, memory, "receive-window", measure.Likely},
		{"all CPUs are busy", measure.Transfer{}, map[string]float64{net: 9000, memory: 1700},
			func(m, _ *measure.TransferRun) { m.HereCPU = &measure.CPUFigure{Pct: 99, WorkerCores: new(0.5)} }, memory, "receiver-cpu", measure.Likely},
		{"all CPUs are busy, as they are for the client alone", measure.Transfer{Protocol: "nfs"}, map[string]float64{net: 9000, client: 3340, memory: 3810},
			func(m, _ *measure.TransferRun) { m.HereCPU = &measure.CPUFigure{Pct: 99.8, WorkerCores: new(0.5)} }, memory, "receiver-cpu", measure.Likely},
		{"all CPUs are busy with something else", measure.Transfer{}, map[string]float64{net: 9000, memory: 20},
			func(m, _ *measure.TransferRun) { m.HereCPU = &measure.CPUFigure{Pct: 99, WorkerCores: new(0.01)} }, memory, "app-limited", measure.Likely},
		{"a cipher", measure.Transfer{Protocol: "sftp"}, map[string]float64{net: 9000, memory: 1700},
			func(m, _ *measure.TransferRun) { m.HereCPU = &measure.CPUFigure{WorkerCores: new(1.1)} }, memory, "cipher-cpu", measure.Likely},
		{"a CPU without a cipher", measure.Transfer{Protocol: "nfs"}, map[string]float64{net: 9000, memory: 1700},
			func(m, _ *measure.TransferRun) { m.HereCPU = &measure.CPUFigure{WorkerCores: new(1.0)} }, memory, "client", measure.Likely},
		{"four clients share the CPUs", measure.Transfer{Protocol: "sftp", Asked: measure.Amount{Clients: 4}}, map[string]float64{net: 9000, memory: 1700},
			func(m, _ *measure.TransferRun) { m.HereCPU = &measure.CPUFigure{WorkerCores: new(1.1)} }, memory, "app-limited", measure.Likely},
		{"the server offers no more", measure.Transfer{}, map[string]float64{net: 900, client: 8000, memory: 80},
			func(m, _ *measure.TransferRun) { m.Sockets = connection(0.1, nil) }, memory, "app-limited", measure.Likely},
		{"requests under way", measure.Transfer{Protocol: "smb", InFlight: 256 << 10}, map[string]float64{net: 900, memory: 100},
			func(m, _ *measure.TransferRun) { m.Sockets = connection(20, nil) }, memory, "round-trips", measure.Certain},
		{"requests under way, the network not known", measure.Transfer{Protocol: "smb", InFlight: 256 << 10}, map[string]float64{memory: 100},
			func(m, _ *measure.TransferRun) { m.Sockets = connection(20, nil) }, memory, "round-trips", measure.Likely},
		{"requests of four clients", measure.Transfer{Protocol: "smb", InFlight: 64 << 10, Asked: measure.Amount{Clients: 4}}, map[string]float64{net: 900, memory: 100},
			func(m, _ *measure.TransferRun) {
				for range 4 {
					m.Sockets = append(m.Sockets, connection(20, nil)...)
				}
			}, memory, "round-trips", measure.Certain},
		{"far fewer requests would do", measure.Transfer{Protocol: "smb", InFlight: 16 << 20}, map[string]float64{net: 900, memory: 100},
			func(m, _ *measure.TransferRun) { m.Sockets = connection(20, nil) }, memory, "app-limited", measure.Likely},
		{"requests on a short way", measure.Transfer{Protocol: "smb", InFlight: 8 << 10}, map[string]float64{net: 9000, memory: 500},
			func(m, _ *measure.TransferRun) { m.Sockets = connection(0.13, nil) }, memory, "app-limited", measure.Likely},
		{"a stream on a long way, the network not known", measure.Transfer{}, map[string]float64{memory: 80},
			func(m, _ *measure.TransferRun) { m.Sockets = connection(20, nil) }, memory, "app-limited", measure.Possible},
		{"out of the memory of a server with a slow disk", measure.Transfer{}, map[string]float64{net: 950, far: 300, memory: 940}, nil, net, "network", measure.Certain},
		{"more than the network's own test", measure.Transfer{}, map[string]float64{net: 100, memory: 300}, nil, memory, "app-limited", measure.Possible},
		{"nothing else is known", measure.Transfer{}, map[string]float64{memory: 80}, nil, memory, "app-limited", measure.Possible},
		{"too brief to be sure", measure.Transfer{}, map[string]float64{net: 100, memory: 94},
			func(m, _ *measure.TransferRun) { m.ElapsedNs = 5e8 }, net, "network", measure.Possible},
		{"nothing was moved", measure.Transfer{}, map[string]float64{net: 100}, nil, "", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := moved(tt.transfer, tt.layers, tt.change)
			Transfer(d)
			got := measure.Finding{}
			if len(d.Findings) > 0 {
				got = d.Findings[0]
			}
			if d.Transfer.Binds != tt.binds || got.Cause != tt.cause || got.Confidence != tt.confidence {
				t.Errorf("%q binds by %s (%s: %s), want %q by %s (%s)", d.Transfer.Binds, got.Cause, got.Confidence, got.Summary, tt.binds, tt.cause, tt.confidence)
			}
			if (d.Transfer.Why == "") != (tt.binds == "") || got.Confidence != measure.Certain && got.Cause != "" && got.Next == "" && got.Fix == nil && len(got.Evidence) == 0 {
				t.Errorf("nothing is said of it: %+v", got)
			}
		})
	}
}

// TestTransferNetwork: if the network binds, its limit is taken over.
func TestTransferNetwork(t *testing.T) {
	full := measure.Finding{Cause: diagnose.LinkFull, Confidence: measure.Certain, Healthy: true, Summary: "the link is full"}
	none := measure.Finding{Cause: measure.CauseNone, Confidence: measure.Likely, Healthy: true}
	off := measure.Finding{Cause: "offloads-off", Confidence: measure.Certain}
	guess := measure.Finding{Cause: "loss", Confidence: measure.Possible}
	for _, tt := range []struct {
		name       string
		found      []measure.Finding
		streams    int
		mbps       float64
		causes     string
		confidence string
	}{
		{"full", []measure.Finding{full, off}, 1, 96, diagnose.LinkFull + " offloads-off", measure.Certain},
		{"what costs nothing is not the cause", []measure.Finding{none, off}, 1, 96, "network offloads-off", measure.Certain},
		{"a guess is not the cause", []measure.Finding{guess}, 1, 96, "network loss", measure.Certain},
		{"four clients against one stream", []measure.Finding{full}, 1, 96, diagnose.LinkFull, measure.Likely},
		{"four clients against four streams", []measure.Finding{full}, 4, 96, diagnose.LinkFull, measure.Certain},
		{"more than it carried in its own test", []measure.Finding{full}, 1, 119, diagnose.LinkFull, measure.Certain},
		{"a network that is not filled", []measure.Finding{full, off}, 1, 30, "app-limited", measure.Likely},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := measure.Transfer{Cells: []int{0}}
			if strings.Contains(tt.name, "four clients") {
				x.Asked.Clients = 4
			}
			d := moved(x, map[string]float64{measure.LayerNetwork: 100, measure.LayerMemory: tt.mbps}, nil)
			d.Cells = []measure.Cell{{Streams: tt.streams, Diagnosis: measure.Diagnosis{Findings: tt.found}}}
			d.Findings = tt.found
			Transfer(d)
			var causes []string
			for _, f := range d.Findings {
				causes = append(causes, f.Cause)
			}
			if tt.mbps > 100 && !strings.Contains(d.Transfer.Why, "about as much") {
				t.Error(d.Transfer.Why)
			}
			if f := d.Findings[0]; strings.Join(causes, " ") != tt.causes || f.Confidence != tt.confidence || f.Healthy != (f.Cause == diagnose.LinkFull) {
				t.Errorf("%v, first %+v; want %s, %s", causes, f, tt.causes, tt.confidence)
			}
		})
	}
}

// TestTransferSaid: the report names who uses busy CPUs, and file figures are over the time of the run with that
// file.
func TestTransferSaid(t *testing.T) {
	busy := func(peer string, there *measure.CPUFigure) func(m, _ *measure.TransferRun) {
		return func(m, _ *measure.TransferRun) {
			m.HereCPU, m.ThereCPU = &measure.CPUFigure{Pct: 99, Cores: 1.98, WorkerCores: new(0.5)}, there
			m.Sockets = []measure.Stream{{Local: "10.0.0.1:40000", Peer: peer}}
		}
	}
	of := func(cores float64) *measure.CPUFigure { return &measure.CPUFigure{WorkerCores: &cores} }
	for name, tt := range map[string]struct {
		layers map[string]float64
		change func(memory, whole *measure.TransferRun)
		want   string
	}{
		"somebody else":                      {map[string]float64{measure.LayerMemory: 900}, busy("10.0.0.2:80", of(0.7)), "this process takes 0.50 of 1.98 cores, others 1.48"},
		"the server, on this machine":        {map[string]float64{measure.LayerMemory: 900}, busy("10.0.0.1:80", nil), "the server on this machine and others 1.48"},
		"the server, on this machine, known": {map[string]float64{measure.LayerMemory: 900}, busy("10.0.0.1:80", of(0.7)), "the server 0.70, others 0.78"},
		"one file": {map[string]float64{measure.LayerDiskHere: 17700, measure.LayerMemory: 5540, measure.LayerWhole: 2800}, func(_, w *measure.TransferRun) {
			w.ElapsedNs, w.LocalNs = 20e9, 15e9
		}, "one file here, written by one program and synced, reaches 2.80 Gb/s; the disk carries 17.7 Gb/s with 4 workers; without the file it carries 5.54 Gb/s"},
	} {
		d := moved(measure.Transfer{}, tt.layers, tt.change)
		d.Disks = []measure.DiskTest{{Where: "local", Runs: []measure.DiskRun{{Pattern: measure.SequentialWrite, Workers: 4, ElapsedNs: 2e9, Bytes: &measure.Figure{Value: 17.7e9 / 8}}}}}
		Transfer(d)
		if len(d.Findings) == 0 || !strings.Contains(d.Findings[0].Summary, tt.want) {
			t.Errorf("%s: %+v", name, d.Findings)
			continue
		}
		if p := d.Findings[0].Evidence; name == "one file" && (len(p) != 2 || p[0].SpanNs != 20e9 || p[1].SpanNs != 2e9) {
			t.Errorf("%s: evidence over %+v", name, p)
		}
	}
}

// TestTransferBrief: a run of less than a second proves nothing for certain, and the advice for a longer one is a
// valid command line.
func TestTransferBrief(t *testing.T) {
	for from, want := range map[string]string{"generated": "a larger --size", "server": "a larger file", "file": "a larger file"} {
		run := measure.TransferRun{Layer: measure.LayerMemory, Bytes: 1e6, ElapsedNs: 5e8, Bps: &measure.Figure{Value: 16e6}}
		d := &measure.Document{Transfer: &measure.Transfer{Protocol: "http", Direction: measure.Download, Asked: measure.Amount{From: from, Clients: 1}, Runs: []measure.TransferRun{run},
			Layers: []measure.Layer{{Name: measure.LayerDiskFar, Bps: new(16e6)}}}}
		Transfer(d)
		if len(d.Findings) != 1 || d.Findings[0].Confidence != measure.Possible || !strings.HasPrefix(d.Findings[0].Next, want) {
			t.Errorf("%s: %+v", from, d.Findings)
		}
	}
}
