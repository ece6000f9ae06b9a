package measure

import (
	"encoding/json"
	"math"
	"strings"
)

// schema1 is the schema before Schema. It holds round-trip times of the kernel in microseconds, calls the names of cells and groups labels, and keeps the
// kernel's sentinels for missing values as values.
const schema1 = "thru.result/1"

// older holds the keys of schema1 that Schema does not have, at their places.
type older struct {
	Cells []struct {
		Label string `json:"label"`
		Runs  []struct {
			Flows []struct {
				Sender   *olderEnd `json:"sender"`
				Receiver *olderEnd `json:"receiver"`
			} `json:"flows"`
		} `json:"runs"`
	} `json:"cells"`
	Groups []struct {
		Label string `json:"label"`
	} `json:"groups"`
	Transfer *struct {
		Runs []struct {
			Sockets []olderStream `json:"sockets"`
			There   []olderStream `json:"there_sockets"`
		} `json:"runs"`
	} `json:"transfer"`
}

type olderEnd struct {
	Streams []olderStream `json:"streams"`
	Bins    []struct {
		TCP []olderTCP `json:"tcp"`
	} `json:"bins"`
}

type olderStream struct {
	TCP      *olderTCP `json:"tcp"`
	Start    *olderTCP `json:"tcp_at_start"`
	End      *olderTCP `json:"tcp_at_close"`
	Timeline *struct {
		RTT *Spread `json:"rtt_us"`
	} `json:"course"`
}

type olderTCP struct {
	RTT     *uint32 `json:"rtt_us"`
	RTTVar  *uint32 `json:"rttvar_us"`
	RecvRTT *uint32 `json:"rcv_rtt_us"`
	RTO     *uint32 `json:"rto_us"`
	MinRTT  *uint32 `json:"min_rtt_us"`
}

// upgrade converts a document that was read from JSON of schema1 to Schema.
func upgrade(d *Document, text []byte) error {
	var was older
	if err := json.Unmarshal(text, &was); err != nil {
		return err
	}
	d.Schema = Schema
	for i := range min(len(d.Cells), len(was.Cells)) {
		c, o := &d.Cells[i], &was.Cells[i]
		c.Label, c.Spec.LatencyProbe = o.Label, strings.HasPrefix(o.Label, "latency, ")
		for j := range min(len(c.Runs), len(o.Runs)) {
			for k := range min(len(c.Runs[j].Flows), len(o.Runs[j].Flows)) {
				f, was := &c.Runs[j].Flows[k], &o.Runs[j].Flows[k]
				was.Sender.upgrade(f.Sender)
				was.Receiver.upgrade(f.Receiver)
			}
		}
	}
	for i := range min(len(d.Groups), len(was.Groups)) {
		d.Groups[i].Label = was.Groups[i].Label
	}
	if d.Transfer != nil && was.Transfer != nil {
		for i := range min(len(d.Transfer.Runs), len(was.Transfer.Runs)) {
			upgradeStreams(d.Transfer.Runs[i].Sockets, was.Transfer.Runs[i].Sockets)
			upgradeStreams(d.Transfer.Runs[i].There, was.Transfer.Runs[i].There)
		}
	}
	return nil
}

// nameTargets sets the pair that decides each target, for results of versions that name it only in the reason.
func nameTargets(d *Document) {
	for i := range d.Targets {
		t := &d.Targets[i]
		for k := range d.Cells {
			c := &d.Cells[k]
			if t.From == "" && c.Group == t.Group && strings.HasPrefix(t.Reason, PairName(c.From, c.To)+":") {
				t.From, t.To = c.From, c.To
			}
		}
	}
}

// nameParts sets what earlier versions tell only in texts: that a difference is of rates, that a place of loss is an
// estimate, and why a verdict is inconclusive.
func nameParts(d *Document) {
	for i := range d.Cells {
		c := &d.Cells[i]
		if r := c.Reconciled; r != nil && r.Note == "of the measured time, since the far end's bytes are of a span of its own" {
			r.OfRates = true
		}
		for k := range c.LossPlaces {
			p := &c.LossPlaces[k]
			p.Estimate = p.Estimate || strings.Contains(p.Counter, ", of which each stands for about ")
		}
	}
	if v := d.Verdict; v != nil && v.Inconclusive && v.Undecided == "" {
		for _, share := range []string{"% is required; ", "% is allowed; "} {
			if _, why, found := strings.Cut(v.Reason, share); found {
				v.Undecided = why
			}
		}
	}
}

// nameReasons sets the codes of reasons that earlier versions tell only in texts: that the user ended a run, and that
// no capture shows a counter.
func nameReasons(d *Document) {
	for i := range d.Cells {
		for k := range d.Cells[i].Runs {
			r := &d.Cells[i].Runs[k]
			if e := r.Error; e != nil && e.Message == "interrupted" {
				e.Interrupted = true
			}
			for _, f := range r.Flows {
				nameUnseen(f.Sender)
				nameUnseen(f.Receiver)
			}
		}
	}
}

func nameUnseen(e *Evidence) {
	if e == nil || e.Reported != ByCapture {
		return
	}
	for i := range e.Missing {
		switch n := &e.Missing[i]; n.Why {
		case "a capture does not show it", "a capture shows what was acknowledged, not what the program read":
			n.Code = NotInCapture
		}
	}
}

// nameNoHypervisor sets the code of end points whose hypervisors all failed, for results of versions that give only the text.
func nameNoHypervisor(d *Document) {
	for i := range d.EndPoints {
		switch e := &d.EndPoints[i]; e.NoPlace {
		case "no hypervisor could be asked", "no hypervisor answered":
			e.NoPlaceCode = NoHypervisorRead
		}
	}
}

// nameOffloads sets the offloads that gates warn of, for results of versions that name them only in the text.
func nameOffloads(d *Document) {
	for i := range d.Gates {
		g := &d.Gates[i]
		if g.ID != "offloads" || g.Status != GateWarn || len(g.Off) > 0 {
			continue
		}
		for _, o := range [][2]string{{"TSO", "tso"}, {"GSO", "gso"}, {"GRO", "gro"}, {"scatter-gather", "scatter-gather"}, {"TX checksum", "tx-checksum"}, {"RX checksum", "rx-checksum"}} {
			if strings.Contains(g.Fact, o[0]) {
				g.Off = append(g.Off, o[1])
			}
		}
		g.Fixed = strings.HasSuffix(g.Fact, "its driver has none")
	}
}

func (o *olderEnd) upgrade(e *Evidence) {
	if o == nil || e == nil {
		return
	}
	upgradeStreams(e.Streams, o.Streams)
	for i := range min(len(e.Bins), len(o.Bins)) {
		for k := range min(len(e.Bins[i].TCP), len(o.Bins[i].TCP)) {
			o.Bins[i].TCP[k].upgrade(&e.Bins[i].TCP[k])
		}
	}
}

func upgradeStreams(streams []Stream, was []olderStream) {
	for i := range min(len(streams), len(was)) {
		s, o := &streams[i], &was[i]
		o.TCP.upgrade(s.TCP)
		o.Start.upgrade(s.TCPStart)
		o.End.upgrade(s.TCPEnd)
		if s.Timeline != nil && o.Timeline != nil && o.Timeline.RTT != nil {
			s.Timeline.RTT = &Spread{Mean: 1000 * o.Timeline.RTT.Mean, Min: 1000 * o.Timeline.RTT.Min, Max: 1000 * o.Timeline.RTT.Max}
		}
	}
}

// Sentinels of the kernel for missing values (include/net/tcp.h, tcp_info.c).
const (
	noRate      = math.MaxUint64
	noThreshold = math.MaxInt32 // TCP_INFINITE_SSTHRESH
)

func (o *olderTCP) upgrade(t *TCPInfo) {
	if o == nil || t == nil {
		return
	}
	t.RTT, t.RTTVar, t.RecvRTT, t.RTO = nanoseconds(o.RTT), nanoseconds(o.RTTVar), nanoseconds(o.RecvRTT), nanoseconds(o.RTO)
	if o.MinRTT == nil || *o.MinRTT < math.MaxUint32 {
		t.MinRTT = nanoseconds(o.MinRTT)
	}
	t.WithoutSentinels()
}

// WithoutSentinels removes the kernel's sentinels for missing values: the rate of an unpaced connection, and the threshold of a connection that has seen no
// loss.
func (t *TCPInfo) WithoutSentinels() {
	for _, rate := range []**uint64{&t.PacingRate, &t.MaxPacingRate} {
		if *rate != nil && **rate == noRate {
			*rate = nil
		}
	}
	if t.SSThresh != nil && *t.SSThresh == noThreshold {
		t.SSThresh = nil
	}
}

func nanoseconds(us *uint32) *int64 {
	if us == nil {
		return nil
	}
	return new(int64(*us) * 1000)
}
