package report

import (
	"thru/internal/measure"
)

// transferDocument is `thru transfer sftp://anna@files/big --to /srv/big --end-point b`.
func transferDocument() *measure.Document {
	d := newDocument("transfer", "sftp://anna@files/big", "--to", "/srv/big", "--end-point", "b")
	d.Cells = []measure.Cell{}
	layer := func(name string, bps float64, how string) measure.Layer {
		return measure.Layer{Name: name, Bps: &bps, Low: new(bps * 0.97), High: new(bps * 1.02), Where: "local", How: how}
	}
	run := func(name string, bps float64) measure.TransferRun {
		return measure.TransferRun{
			Layer: name, Bytes: 4 << 30, Files: 1, ElapsedNs: int64(8 * float64(4<<30) / bps * 1e9), SetupNs: 41e6,
			Bps:     &measure.Figure{Value: bps, Low: bps * 0.97, High: bps * 1.02, Runs: 1, Basis: "bins of a single run", Stable: new(true)},
			Seconds: []float64{bps * 0.97, bps, bps * 1.02}, HereCPU: cpuFigure(31, 1.24, 88),
			Sockets: []measure.Stream{{
				Local: "10.0.0.1:40022", Peer: "10.0.0.2:22", Bytes: 4 << 30, TotalBytes: 4 << 30, Congestion: "cubic",
				TCP: &measure.TCPInfo{MinRTT: new(int64(180_000)), RTT: new(int64(410_000)), Retrans: new(uint32(3)), RecvSpace: new(uint32(3 << 20)), BytesReceived: new(uint64(4 << 30)), BytesAcked: new(uint64(90_000))},
			}},
		}
	}
	memory, whole := run(measure.LayerMemory, 1.71e9), run(measure.LayerWhole, 1.02e9)
	memory.ThereCPU, memory.Programs = cpuFigure(22, 0.92, 71), []string{"sshd", "sshd"}
	memory.There = []measure.Stream{{
		Local: "10.0.0.2:22", Peer: "10.0.0.1:40022", Bytes: 4 << 30, TotalBytes: 4 << 30, Congestion: "cubic",
		TCP:      &measure.TCPInfo{MinRTT: new(int64(190_000)), RTT: new(int64(420_000)), Retrans: new(uint32(7)), Cwnd: new(uint32(310)), SendMSS: new(uint32(1448)), BytesAcked: new(uint64(4 << 30))},
		Timeline: &measure.Timeline{Samples: 400, Every: 50e6, BufferFull: new(12.0)},
	}}
	for _, s := range []*measure.Stream{&memory.Sockets[0], &memory.There[0], &whole.Sockets[0]} {
		s.TCPStart = s.TCP.AtBirth()
	}
	whole.SHA256, whole.LocalNs = "0b9c3f...", 26e9
	d.Transfer = &measure.Transfer{
		URL: "sftp://anna@files/big", Protocol: "sftp", Direction: measure.Download, Client: "pkg/sftp v1.13", Server: "SSH-2.0-OpenSSH_9.2",
		Identity: "sha256:11aa", Agreed: []string{"aes128-gcm@openssh.com"},
		Asked: measure.Amount{Bytes: 4 << 30, Files: 1, Clients: 1, From: "server", To: "disk"},
		Layers: []measure.Layer{
			layer(measure.LayerDiskFar, 9.3e9, "sequential read by fio-3.33, O_DIRECT"), layer(measure.LayerNetwork, 9.41e9, "thru's own data plane, memory to memory, 1 stream"),
			layer(measure.LayerDiskHere, 1.1e9, "sequential write by thru, O_DIRECT"), {Name: measure.LayerLibrary, How: "the same client against a server in this process, over loopback", Missing: "thru has no server of sftp to measure its client against"},
			layer(measure.LayerMemory, 1.71e9, "the server's file to nowhere"), layer(measure.LayerWhole, 1.02e9, "the server's file to a file here, flushed to the disk"),
		},
		Binds: measure.LayerDiskHere, Why: "the disk here takes 1.02 Gb/s, without it 1.71 Gb/s pass", Runs: []measure.TransferRun{memory, whole},
		Small:  &measure.TransferRun{Layer: measure.LayerMemory, Bytes: 100 * 64 << 10, Files: 100, ElapsedNs: 900e6, Bps: &measure.Figure{Value: 58e6, Low: 58e6, High: 58e6, Runs: 1}},
		Ratios: []measure.Ratio{{ID: "C15", Name: "disk-fc-vs-local: 162 MB/s Fibre Channel; 300 MB/s local; 100% read", Bps: 2.4e9}},
	}
	d.Findings = []measure.Finding{{
		Cause: "disk", Where: measure.Where{Place: measure.AtReceiver, EndPoint: "local"}, Confidence: measure.Certain, Summary: d.Transfer.Why,
		Evidence: []measure.Proof{{EndPoint: "local", Counter: "time in this end's file", Value: 77, Unit: "pct", Threshold: new(60.0), Above: true, SpanNs: 33e9}},
		Fix:      &measure.Fix{EndPoint: "local", Advice: "none in the network: a faster disk"},
	}}
	d.Missing = []measure.NotChecked{{Fact: "transfer.runs.there_cpu", Why: "bus: observed: no reply from b within 5s"}}
	return d
}
