package cause

import (
	"slices"
	"strings"
	"testing"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// hosts is a flow of two seconds at 4 Gb/s between two hosts of four CPUs,
// whose threads wait for each other most of the time. Edits make cases of it.
type hosts struct {
	doc              *measure.Document
	cell             *measure.Cell
	sender, receiver *measure.Evidence
}

const hostsTime = 2_000_000_000

type hostsEdit = func(*hosts)

func twoHosts(edits ...hostsEdit) *hosts {
	spec := measure.Spec{From: "a", To: "b", Engine: measure.Native, Protocol: measure.TCP, Streams: 1}
	d := &measure.Document{
		EndPoints: []measure.EndPoint{{Name: "a", Facts: factsOfHost("a")}, {Name: "b", Facts: factsOfHost("b")}},
		Gates:     []measure.Gate{{ID: "host-facts", Status: measure.GatePass}},
		Cells: []measure.Cell{{From: "a", To: "b", Protocol: measure.TCP, Streams: 1, Spec: spec, AtOnce: 1,
			Goodput: &measure.Figure{Value: 4e9, Runs: 1}}},
	}
	h := &hosts{doc: d, cell: &d.Cells[0], sender: evidenceOfHost("a", true), receiver: evidenceOfHost("b", false)}
	d.Cells[0].Runs = []measure.Run{{Goodput: new(4e9), Flows: []measure.Flow{{From: "a", To: "b", Sender: h.sender, Receiver: h.receiver}}}}
	for _, edit := range edits {
		edit(h)
	}
	h.cell = &d.Cells[0] // edits may have added other cells
	return h
}

// judged returns the causes that could not be checked.
func (h *hosts) judged() []measure.Unsettled {
	Diagnose(h.doc)
	return h.doc.Cells[0].NotChecked
}

func factsOfHost(name string) *measure.Facts {
	return &measure.Facts{Hostname: &name, OS: new("linux"), Kernel: new("6.18"), Memory: new(int64(1 << 34)), CPUModel: new("CPU"), Hypervisor: new("none"),
		Cgroup:     &measure.Cgroup{Version: 2},
		Interfaces: []measure.Interface{{Name: "eth0", Kind: new("physical"), MTU: new(1500), Queues: new(4), Rings: &measure.Rings{RX: 512, RXMax: 4096}}}}
}

func evidenceOfHost(name string, sends bool) *measure.Evidence {
	peer := "192.0.2.1:5202"
	if sends {
		peer = "192.0.2.2:5202"
	}
	tcp := func(again uint32) *measure.TCPInfo {
		return &measure.TCPInfo{Retrans: &again, DataSegsOut: new(uint32(1_000_000) * min(1, again+1)), BusyUs: new(uint64(2_000_000)), RwndLimitedUs: new(uint64(0)),
			RTT: new(int64(100_000)), MinRTT: new(int64(90_000)), SendMSS: new(uint32(1448)), SendWnd: new(uint32(3 << 20))}
	}
	start := tcp(0)
	start.BusyUs, start.DataSegsOut = new(uint64(0)), new(uint32(0))
	e := &measure.Evidence{EndPoint: name, Sends: sends, PeerAddr: peer, Route: &measure.Route{Interface: "eth0"}, MeasuredNs: hostsTime,
		Worker:  &measure.Process{},
		Streams: []measure.Stream{{TCPStart: start, TCP: tcp(0)}},
		Host: &measure.HostSpan{Span: hostsTime, Proto: map[string]uint64{}, NIC: &measure.NICSpan{Name: "eth0", RxRing: new(uint64(0))},
			Softnet: []measure.Softnet{{Core: 0, Processed: 100_000}, {Core: 1, Processed: 100_000}}}}
	for core := range 4 {
		e.Host.CPUs = append(e.Host.CPUs, measure.CPU{Core: core, System: 20, Idle: 80})
	}
	e.Base = &measure.HostSpan{CPUs: []measure.CPU{{Core: 0, User: 1, Idle: 99}, {Core: 1, Idle: 100}, {Core: 2, Idle: 100}, {Core: 3, Idle: 100}}}
	spend(e, 20, 1)
	e.Streams[0].Timeline = &measure.Timeline{SendWnd: &measure.Spread{Mean: 3 << 20}, Unread: &measure.Spread{Mean: 1000}}
	return e
}

// spend sets the time of all threads of an end on a CPU and waiting for one, in percent.
func spend(e *measure.Evidence, run, wait float64) {
	for i := range e.Streams {
		s := &e.Streams[i]
		s.RunNs, s.WaitNs = new(int64(run*hostsTime/100)), new(int64(wait*hostsTime/100))
		s.BlockedNs = new(hostsTime - *s.RunNs - *s.WaitNs)
	}
}

func sending(run, wait float64) hostsEdit { return func(h *hosts) { spend(h.sender, run, wait) } }

func reading(run, wait float64) hostsEdit { return func(h *hosts) { spend(h.receiver, run, wait) } }

// onCore binds the threads of both ends, and fills those CPUs.
func onCore(sender, receiver int) hostsEdit {
	return func(h *hosts) {
		for e, core := range map[*measure.Evidence]int{h.sender: sender, h.receiver: receiver} {
			for i := range e.Streams {
				e.Streams[i].CPU = new(core)
			}
			e.Host.CPUs[core] = measure.CPU{Core: core, System: 99, Idle: 1}
		}
	}
}

// inStreams gives both ends this many streams, each like the first.
func inStreams(n int) hostsEdit {
	return func(h *hosts) {
		h.cell.Streams, h.cell.Spec.Streams = n, n
		h.sender.Streams = slices.Repeat(h.sender.Streams, n)
		h.receiver.Streams = slices.Repeat(h.receiver.Streams, n)
	}
}

// sameMachine makes both ends namespaces of one kernel: the same facts and CPUs.
func sameMachine(h *hosts) {
	h.doc.EndPoints[1].Facts = h.doc.EndPoints[0].Facts
	h.receiver.Host.CPUs = h.sender.Host.CPUs
}

// coresOf sets the load of each CPU of an end.
func coresOf(e *measure.Evidence, all measure.CPU) {
	for i := range e.Host.CPUs {
		all.Core = i
		e.Host.CPUs[i] = all
	}
}

// core sets the load of one CPU of the receiver.
func core(n int, c measure.CPU) hostsEdit {
	return func(h *hosts) { c.Core = n; h.receiver.Host.CPUs[n] = c }
}

func waitsUnread(bytes float64) hostsEdit {
	return func(h *hosts) { h.receiver.Streams[0].Timeline.Unread.Mean = bytes }
}

func sentAgain(n uint32) hostsEdit {
	return func(h *hosts) { h.sender.Streams[0].TCP.Retrans = &n }
}

func linkShare(pct float64) hostsEdit {
	return func(h *hosts) {
		h.cell.Ceiling = &measure.Ceiling{Bps: 4e11 / pct, LinkBps: int64(4.2e11 / pct), SharePct: pct}
	}
}

// alsoTried adds a cell with another number of streams.
func alsoTried(streams int, bps float64) hostsEdit {
	return func(h *hosts) {
		c := h.cell.Spec
		c.Streams = streams
		h.doc.Cells = append(h.doc.Cells, measure.Cell{From: "a", To: "b", Protocol: c.Protocol, Streams: streams, Spec: c, AtOnce: 1, Experiment: "streams",
			Goodput: &measure.Figure{Value: bps, Runs: 1}, Runs: []measure.Run{{Goodput: &bps, Flows: []measure.Flow{{From: "a", To: "b",
				Sender: &measure.Evidence{MeasuredNs: hostsTime, Worker: &measure.Process{Involuntary: new(int64(10))}}}}}}})
		h.cell = &h.doc.Cells[0]
	}
}

// warns adds a gate that did not pass.
func warns(id, cause, at, fact string) hostsEdit {
	return gateOf(id, cause, at, fact, measure.GateWarn)
}

// lacksOffloads makes the gate of an end's offloads warn of those that are off, by their knobs.
func lacksOffloads(at, fact string, off ...string) hostsEdit {
	return func(h *hosts) {
		h.doc.Gates = append(h.doc.Gates, measure.Gate{ID: "offloads", Cause: "offloads-off", EndPoint: at, Status: measure.GateWarn, Fact: fact, Interface: "eth0", Off: off})
	}
}

func gateOf(id, cause, at, fact, status string) hostsEdit {
	return func(h *hosts) {
		g := measure.Gate{ID: id, Cause: cause, EndPoint: at, Status: status, Fact: fact, Interface: "eth0", Fixed: strings.HasSuffix(fact, "its driver has none")}
		for _, o := range scene.Offloads() {
			if id == "offloads" && strings.Contains(fact, o.Words) {
				g.Off = append(g.Off, o.Knob)
			}
		}
		h.doc.Gates = append(h.doc.Gates, g)
	}
}

// overUDP changes the flow to datagrams, of which this many of a million were lost.
func overUDP(lost int64) hostsEdit {
	return func(h *hosts) {
		h.cell.Protocol, h.cell.Spec.Protocol = measure.UDP, measure.UDP
		h.cell.Datagrams = &measure.DatagramFigures{Sent: 1_000_000, Received: 1_000_000 - lost, Lost: lost, LossPct: float64(lost) / 10_000}
	}
}

func unseenHosts(h *hosts) { h.cell.Runs[0].Flows = nil }

// hostsRow is a case of a rule: whether it holds and with which confidence ("certain", "likely beside"), "no",
// "missing" or "none", and a part of its words.
type hostsRow struct {
	name  string
	edits []hostsEdit
	want  string
	says  string
}

func judgeHosts(t *testing.T, cause string, rows []hostsRow) {
	t.Helper()
	r, ok := diagnose.RuleOf(theCatalogue(), cause)
	if !ok {
		t.Fatalf("no rule %s", cause)
	}
	for _, row := range rows {
		h := twoHosts(row.edits...)
		o := r.Apply(diagnose.NewFlow(theCatalogue(), h.doc, h.cell))
		got, text := "none", ""
		switch {
		case o == nil:
		case o.State == diagnose.Excluded:
			got, text = "no", o.Text
		case o.State == diagnose.Unknown:
			got, text = "missing", o.Fact+": "+o.Text
		default:
			if got, text = o.Confidence, o.Text; o.NotBinding {
				got += " beside"
			}
			if len(o.Evidence) == 0 {
				t.Errorf("%s: %s: %q without evidence", cause, row.name, text)
			}
		}
		if got != row.want || !strings.Contains(text, row.says) {
			t.Errorf("%s: %s: %s: %q, want %s: %q", cause, row.name, got, text, row.want, row.says)
		}
	}
}
