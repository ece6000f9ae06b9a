package compare

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// flowSubjects returns the flows of a result.
func flowSubjects(d *measure.Document) (all []*subject) {
	for _, c := range resultCells(d) {
		s := &subject{
			doc: d, family: flows, from: c.From, to: c.To, kind: kindOf(c), name: protocolText(c), baseline: isBaseline(c),
			settings: settingsOf(d, c), varied: stat.AxesText(axesVaried(c)), values: runValues(c), guarded: c, finding: firstFinding(c.Findings), flow: c,
		}
		var ok bool
		if s.key, s.figure, ok = valueOf(c); !ok {
			s.figure, s.why = nil, whyNot(d, c)
		}
		all = append(all, s)
	}
	return all
}

// kindOf returns what must be equal for flows to be compared at all: protocol, rung, what a plan varied besides
// the settings, and whether the flow counts.
func kindOf(c *measure.Cell) string {
	return strings.Join([]string{protocolText(c), c.Rung, stat.AxesText(axesVaried(c)), label(c), strconv.FormatBool(isBaseline(c))}, ";")
}

// protocolText words "TCP", "UDP", "TCP request and response".
func protocolText(c *measure.Cell) string {
	text := strings.ToUpper(c.Protocol)
	switch {
	case c.Spec.Traffic == measure.RR:
		text += " request and response"
	case c.Spec.Traffic == measure.CRR:
		text += " connect, request, response"
	case c.Spec.Traffic != measure.Bulk:
		text += " " + c.Spec.Traffic
	case c.Spec.Search:
		text += " search"
	}
	return text
}

// label returns a plan's or concurrent flow's name for a cell, if nothing else distinguishes two cells: "there"
// and "back" of localhost.
func label(c *measure.Cell) string {
	if c.From == c.To {
		return c.Label
	}
	return ""
}

// axesVaried returns what a plan varied besides the settings.
func axesVaried(c *measure.Cell) []measure.Axis {
	said := []string{"streams", "window", "length", "rate", "duration", "end_points", "congestion"}
	return slices.DeleteFunc(slices.Clone(c.Axes), func(a measure.Axis) bool { return slices.Contains(said, a.Name) })
}

// settingsOf returns all settings of a cell. Those that prevent a comparison come first.
func settingsOf(d *measure.Document, c *measure.Cell) []setting {
	s := &c.Spec
	all := []setting{
		refusing("streams", strconv.Itoa(c.Streams), unit.Plural(c.Streams, "stream")),
		refusing("window", pairText(c.Window), worded(c.Window != measure.Pair{}, pairText(c.Window)+" window")),
		refusing("length", pairText(lengthOf(c)), worded(lengthOf(c) != measure.Pair{}, pairText(lengthOf(c))+" length")),
		refusing("rate", rateText(s.Rate), worded(s.Rate > 0, rateText(s.Rate)+" requested")),
		refusing("highest rate", rateText(s.MaxRate), ""),
		refusing("request rate", perSecondText(s.PerSecond), worded(s.PerSecond > 0, perSecondText(s.PerSecond))),
		refusing("flows at once", strconv.Itoa(max(c.AtOnce, 1)), worded(c.AtOnce > 1, strconv.Itoa(c.AtOnce)+" flows at once")),
		refusing("one connection", yesNo(s.Duplex), worded(s.Duplex, "one connection")),
		refusing("data compared", yesNo(s.Verify), worded(s.Verify, "data compared")),
		refusing("MSS requested", numberOr(s.MSS, "default"), ""),
		refusing("CPUs", cpusText(s), ""),
	}
	return append(all, softSettings(d, c)...)
}

// softSettings returns those that are reported and do not prevent a comparison: people compare results because of
// them, or they affect only the uncertainty of a figure.
func softSettings(d *measure.Document, c *measure.Cell) []setting {
	s := &c.Spec
	return []setting{
		{name: "measured time", value: spanText(s.Duration)},
		{name: "congestion control", value: congestionOf(c), affects: true},
		{name: "MSS in use", value: mssOf(c)},
		{name: "data path", value: c.IO, affects: true},
		{name: "threads of the sender at CPUs", value: placesOf(c, true)},
		{name: "threads of the receiver at CPUs", value: placesOf(c, false)},
		{name: "engine", value: s.Engine, affects: true},
		{name: "omitted start", value: yesNo(!s.NoRamp)},
		{name: "DSCP", value: strconv.Itoa(s.DSCP)},
		{name: "no delay (Nagle off)", value: yesNo(s.NoDelay)},
		{name: "IP version", value: familyOf(c), affects: true},
		{name: "packets captured", value: yesNo(s.Capture > 0)},
		{name: "with other clients", value: yesNo(s.Together)},
		{name: "opened by", value: map[bool]string{true: "sender", false: "receiver"}[s.DialFrom]},
		{name: "thru", value: d.Thru},
		{name: "gates overruled (--force)", value: yesNo(d.Forced)},
	}
}

// lengthOf returns the requested length if it makes the traffic different: that of datagrams and requests. A
// length of calls on a byte stream is also reported.
func lengthOf(c *measure.Cell) measure.Pair {
	if c.Length == (measure.Pair{Send: measure.DefaultLength, Recv: measure.DefaultLength}) {
		return measure.Pair{}
	}
	if l := c.Length; l.Recv == 0 && c.Protocol == measure.UDP { // the receiver accepts any length
		return measure.Pair{Send: l.Send, Recv: l.Send}
	}
	return c.Length
}

func worded(when bool, text string) string {
	if when {
		return text
	}
	return ""
}

// pairText formats a size for each direction: "default", "800 KiB", "1 MiB/4 MiB".
func pairText(p measure.Pair) string {
	one := func(n int64) string {
		if n == 0 {
			return "default"
		}
		return unit.Size(n)
	}
	if p.Send == p.Recv {
		return one(p.Send)
	}
	return one(p.Send) + "/" + one(p.Recv)
}

func rateText(bps int64) string {
	if bps <= 0 {
		return "not limited"
	}
	return unit.Rate(float64(bps))
}

func perSecondText(rate float64) string {
	if !(rate > 0) {
		return "back to back"
	}
	return stat.ThreeDigits(rate) + " requests/s per stream"
}

func spanText(ns int64) string {
	if ns <= 0 {
		return ""
	}
	return time.Duration(ns).String()
}

func yesNo(x bool) string {
	if x {
		return "yes"
	}
	return "no"
}

func numberOr(n int, none string) string {
	if n == 0 {
		return none
	}
	return strconv.Itoa(n)
}

// cpusText words the CPUs to which the flow was bound.
func cpusText(s *measure.Spec) string {
	one := func(cpus string, cpu *int) string {
		switch {
		case cpus != "":
			return cpus
		case cpu != nil:
			return strconv.Itoa(*cpu)
		}
		return "any"
	}
	return one(s.SenderCPUs, s.SenderCPU) + "/" + one(s.ReceiverCPUs, s.ReceiverCPU)
}

// flowOf returns the cell's own flow in its last run that has one.
func flowOf(c *measure.Cell) *measure.Flow {
	for _, r := range slices.Backward(c.Runs) {
		for i := range r.Flows {
			if f := &r.Flows[i]; f.From == c.From && f.To == c.To {
				return f
			}
		}
	}
	return nil
}

// senderStreams returns the sender's connections in the last run.
func senderStreams(c *measure.Cell) []measure.Stream {
	if f := flowOf(c); f != nil && f.Sender != nil {
		return f.Sender.Streams
	}
	return nil
}

// congestionOf returns the congestion control in use: the kernel's report, else the requested one.
func congestionOf(c *measure.Cell) string {
	for _, s := range senderStreams(c) {
		if s.Congestion != "" {
			return s.Congestion
		}
	}
	return c.Spec.Congestion
}

// mssOf returns the smallest MSS of the connections.
func mssOf(c *measure.Cell) string {
	least := 0
	for _, s := range senderStreams(c) {
		if s.MSS > 0 && (least == 0 || s.MSS < least) {
			least = s.MSS
		}
	}
	return numberOr(least, "")
}

// placesOf returns the CPUs to which the threads of an end were bound in the last run.
func placesOf(c *measure.Cell, sends bool) string {
	f := flowOf(c)
	if f == nil {
		return ""
	}
	e := f.Receiver
	if sends {
		e = f.Sender
	}
	if e == nil {
		return ""
	}
	var cpus []int
	for _, s := range e.Streams {
		if s.CPU != nil && *s.CPU >= 0 && !slices.Contains(cpus, *s.CPU) {
			cpus = append(cpus, *s.CPU)
		}
	}
	slices.Sort(cpus)
	return unit.List(cpus)
}

// familyOf returns the version of IP by the sender's address.
func familyOf(c *measure.Cell) string {
	f := flowOf(c)
	switch {
	case f == nil || f.Sender == nil || f.Sender.PeerAddr == "":
		return ""
	case strings.HasPrefix(f.Sender.PeerAddr, "["):
		return "6"
	}
	return "4"
}

// valueOf returns the main figure of a cell, with its key in the result: goodput, requests per second, or for a
// search the capacity.
func valueOf(c *measure.Cell) (key string, f *measure.Figure, ok bool) {
	switch {
	case c.Spec.Search:
		if c.Search == nil || c.Search.CapacityBps == nil {
			return "capacity_bps", nil, false
		}
		v := *c.Search.CapacityBps
		return "capacity_bps", &measure.Figure{Value: v, Low: v, High: v, Runs: 1}, isRate(v)
	case c.Spec.Traffic != measure.Bulk:
		key = "transactions_per_s"
	default:
		key = "goodput_bps"
	}
	f = stat.MainFigure(c)
	return key, f, f != nil && isRate(f.Value)
}

// runValues returns the figures of a flow's runs; none if it has no figure.
func runValues(c *measure.Cell) (values []float64) {
	if _, _, ok := valueOf(c); !ok {
		return nil
	}
	for i := range c.Runs {
		r := &c.Runs[i]
		if c.Spec.Search || r.Partial || r.Error != nil {
			continue
		}
		if v, ok := stat.RunFigure(c, r); ok && isRate(v) {
			values = append(values, v)
		}
	}
	return values
}

// whyNot returns why a flow has no figure.
func whyNot(d *measure.Document, c *measure.Cell) string {
	if c.Error != nil && c.Error.Message != "" {
		return c.Error.Message
	}
	for _, r := range slices.Backward(c.Runs) {
		if r.Error != nil && r.Error.Message != "" {
			return r.Error.Message
		}
	}
	if d.Error != nil && d.Error.Message != "" {
		return d.Error.Message
	}
	for _, m := range c.Missing {
		if m.Fact == "goodput_bps" || m.Fact == "transactions_per_s" {
			return m.Why
		}
	}
	return "it has no figure"
}
