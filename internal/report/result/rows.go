package result

import (
	"fmt"
	"math"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// rows returns the figures of a cell, the most important first. A missing figure has no row.
func rows(c *measure.Cell) []doc.Row {
	if OfFile(c) {
		return fileRows(c)
	}
	var out doc.Rows
	sender, receiver := ShownFlow(c)
	searchRows(c, &out)
	name := figureName(c)
	out.AddBrief(name, FigureText(c))
	if stat.MainFigure(c) == nil {
		out.AddBrief(name, "not measured"+because(c.Error))
	}
	out.AddBrief("share", shareText(c))
	datagramRows(c, &out)
	requestRows(c, &out)
	if c.AtOnce < 4 || c.Spec.FirstStream == 0 { // of all classes at once only the first has it
		underLoadRows(c.UnderLoad, &out)
	}
	out.Add("verified", verifiedText(c.Checked))
	out.Add("steady", steadyText(c))
	machineRows(c, &out)
	if c.Retransmits != nil {
		out.AddBrief("retransmits", unit.Counted(*c.Retransmits, "segment"))
	}
	out.AddBrief("RTT", RTTText(c.RTTIdle, c.RTTLoaded))
	out.Add("RFC 6349", rfc6349Text(c.RFC6349))
	out.Add("streams", streamsText(c))
	if c.MeanPacket != nil {
		out.Add("mean packet", packetText(*c.MeanPacket))
	}
	out.Add("BDP", bdpText(c))
	out.AddBrief("window", windowText(c, Buffer(sender), Buffer(receiver)))
	out.Add("both ends", reconciledText(c.Reconciled))
	stack := "TCP"
	if c.Protocol == measure.UDP {
		stack = "UDP"
	}
	out.AddBrief(stack, stackText(c, sender, receiver))
	return out
}

// figureName returns the name of a cell's main figure.
func figureName(c *measure.Cell) string {
	switch {
	case c.Spec.Traffic == measure.CRR:
		return "connections"
	case Asks(c):
		return "requests"
	}
	return "goodput"
}

func because(e *measure.Error) string {
	if e == nil {
		return ""
	}
	return ": " + doc.Clean(e.Message)
}

// machineRows adds CPU and memory of each end, once if both ends are one host.
func machineRows(c *measure.Cell, out *doc.Rows) {
	sender, receiver := ShownFlow(c)
	if c.From == c.To && c.SenderCPU != nil {
		out.AddBrief("CPU", cpuText(c.SenderCPU, "the machine")+workersText(c))
		out.Add("CPU per Gb/s", costText(c.SenderCPU, nil, "both ends"))
		out.Add("memory", memoryText(c.SenderMem))
		return
	}
	out.AddBrief("CPU, sender", endCPU(c, c.SenderCPU, sender))
	out.AddBrief("CPU, receiver", endCPU(c, c.ReceiverCPU, receiver))
	out.Add("CPU per Gb/s", costText(c.SenderCPU, c.ReceiverCPU, "sender"))
	out.Add("mem, sender", memoryText(c.SenderMem))
	out.Add("mem, receiver", memoryText(c.ReceiverMem))
}

// FigureText returns the main figure of a cell with its uncertainty.
func FigureText(c *measure.Cell) string {
	f := stat.MainFigure(c)
	if f == nil {
		return ""
	}
	span := doc.ScaleFor(f.Value).Span
	if Asks(c) {
		span = func(low, high float64) string { return stat.ThreeDigits(low) + "-" + stat.ThreeDigits(high) }
	}
	spread := ""
	if HasRange(f) {
		spread = "range " + span(f.Low, f.High)
	}
	return doc.Join(stat.FigureText(c), IntervalText(f, span), spread, basisText(c, f))
}

// IntervalText returns the interval of a figure, and whether it is of a single run.
func IntervalText(f *measure.Figure, span func(low, high float64) string) string {
	switch {
	case f.CI95Low == nil || f.CI95High == nil:
		return ""
	case f.Runs == 1:
		return "95% interval of this run " + span(*f.CI95Low, *f.CI95High)
	}
	return "95% interval " + span(*f.CI95Low, *f.CI95High)
}

// HasRange is false for a single value, whose range has no meaning.
func HasRange(f *measure.Figure) bool { return f.Low != f.High || f.Runs > 1 }

// basisText returns the number of runs, and whether it is sufficient.
func basisText(c *measure.Cell, f *measure.Figure) string {
	s := "single run"
	if OfFile(c) {
		s = ""
	}
	if f.Runs > 1 {
		s = unit.Plural(f.Runs, "run")
	}
	if IsPartial(c) {
		s += " (ended early)"
	}
	if f.Stable != nil && !*f.Stable {
		s += ", not stable"
	}
	return s
}

func shareText(cell *measure.Cell) string {
	c := cell.Ceiling
	if c == nil {
		return ""
	}
	layer := map[string]string{"l1": ", including preamble and gap", "l2": ", frames only"}[c.LinkLayer]
	in := doc.ScaleFor(c.Bps)
	return fmt.Sprintf("%s of the %s %s that MTU %d%s allows on %s %s (%s%s)", unit.Percent(c.SharePct), in.Number(c.Bps), in.Name,
		c.MTU, stat.OnWire(c), doc.Plain(float64(c.LinkBps)/in.Div), in.Name, doc.Clean(c.LinkFrom), layer)
}

func steadyText(c *measure.Cell) string {
	s := c.Steady
	switch {
	case s == nil:
		return ""
	case !s.Checked:
		return doc.Join("not checked", doc.Clean(s.Why))
	case len(s.Levels) == 2 && s.Why == "":
		return doc.Join(fmt.Sprintf("no: the rate has two levels, %s and %s", unit.Rate(s.Levels[0]), unit.Rate(s.Levels[1])), doc.Clean(s.Why))
	case s.Steady:
		return fmt.Sprintf("yes (slope %s, halves differ by %s)", unit.Percent(s.SlopePct), unit.Percent(s.HalvesPct))
	case s.Why != "":
		return "no: " + doc.Clean(s.Why)
	default:
		return fmt.Sprintf("no (slope %s, halves differ by %s)", unit.Percent(s.SlopePct), unit.Percent(s.HalvesPct))
	}
}

func cpuText(f *measure.CPUFigure, of string) string {
	if f == nil {
		return ""
	}
	if others := OthersText(f); others != "" {
		return fmt.Sprintf("host %s busy, %s, busiest core %d: %s", unit.Percent(f.Pct), others, f.MaxCore, unit.Percent(f.MaxCorePct))
	}
	return fmt.Sprintf("%s of %s, %.2f cores, busiest core %d: %s",
		unit.Percent(f.Pct), of, f.Cores, f.MaxCore, unit.Percent(f.MaxCorePct))
}

// OthersText words that other work caused most of a busy host's load; "" if the test did, or the host had
// idle CPUs.
func OthersText(f *measure.CPUFigure) string {
	const busy, mostly, nearly = 50, 0.5, 0.9 // percent of the machine; shares of what it did
	if f.OtherCores == nil || f.Pct < busy {
		return ""
	}
	switch share := *f.OtherCores / (*f.OtherCores + f.Cores); {
	case share >= nearly:
		return fmt.Sprintf("nearly all by other processes (%.2f cores)", *f.OtherCores)
	case share >= mostly:
		return fmt.Sprintf("mostly by other processes (%.2f cores; the test %.2f)", *f.OtherCores, f.Cores)
	}
	return ""
}

// workerText returns the CPU use of the process that carried the data.
func workerText(f *measure.CPUFigure) string {
	if f == nil || f.WorkerCores == nil {
		return ""
	}
	return fmt.Sprintf(", thru %.2f cores", *f.WorkerCores)
}

// workersText is workerText for both ends of one host.
func workersText(c *measure.Cell) string {
	s, r := c.SenderCPU, c.ReceiverCPU
	if s == nil || r == nil || s.WorkerCores == nil || r.WorkerCores == nil {
		return ""
	}
	return fmt.Sprintf(" (sender %.2f, receiver %.2f cores)", *s.WorkerCores, *r.WorkerCores)
}

// endCPU returns the CPU use of an end: of the machine, or if only a foreign program reports it, of that
// program.
func endCPU(c *measure.Cell, f *measure.CPUFigure, e *measure.Evidence) string {
	if f == nil && e != nil && e.Reported != "" && e.Worker != nil && e.MeasuredNs > 0 {
		s := fmt.Sprintf("%s %.2f cores", doc.Clean(e.Reported), float64(e.Worker.UserNs+e.Worker.SystemNs)/float64(e.MeasuredNs))
		if c.Spec.Duplex {
			s += ", both directions together"
		}
		return s
	}
	return cpuText(f, "the machine") + workerText(f)
}

func costText(sender, receiver *measure.CPUFigure, first string) string {
	one := func(f *measure.CPUFigure, end string) string {
		if f == nil || f.PctPerGbps == nil {
			return ""
		}
		return end + " " + unit.Percent(*f.PctPerGbps)
	}
	if s := doc.Join(one(sender, first), one(receiver, "receiver")); s != "" {
		return s + " of a core"
	}
	return ""
}

// memoryText returns the machine's memory in use and the worker's part of it.
func memoryText(m *measure.MemFigure) string {
	if m == nil {
		return ""
	}
	used := ""
	if m.Used != nil && m.Total != nil {
		used = unit.Size(*m.Used) + " of " + unit.Size(*m.Total) + " used"
	}
	return doc.Join(used, doc.Known("thru %s", m.Worker, unit.Size))
}

// RTTText returns "200 µs idle -> 4.1 ms loaded", or the part that is known.
func RTTText(idle, loaded *int64) string {
	switch {
	case idle != nil && loaded != nil:
		return unit.Duration(*idle) + " idle -> " + unit.Duration(*loaded) + " loaded"
	case idle != nil:
		return unit.Duration(*idle) + " idle"
	case loaded != nil:
		return unit.Duration(*loaded) + " loaded"
	default:
		return ""
	}
}

func rfc6349Text(m *measure.RFC6349) string {
	if m == nil {
		return ""
	}
	digits := func(x float64) string { return fmt.Sprintf("%.2f", x) }
	return doc.Join(doc.Known("time ratio %s", m.TransferTimeRatio, digits), doc.Known("efficiency %s%%", m.EfficiencyPct, digits), bufferDelayText(m))
}

// tellingPct is the buffer delay above which a percentage has no use.
const tellingPct = 1000

// bufferDelayText returns the delay that the queue adds to the minimum RTT.
func bufferDelayText(m *measure.RFC6349) string {
	switch {
	case m.BufferDelayPct == nil:
		return ""
	case m.BaseRTT == nil:
		return "buffer delay " + unit.Percent(*m.BufferDelayPct)
	case *m.BufferDelayPct > tellingPct && *m.BufferDelayPct < 1e15:
		return "buffer delay " + unit.Duration(int64(*m.BufferDelayPct/100*float64(*m.BaseRTT))) + " over the kernel's minimum RTT of " + unit.Duration(*m.BaseRTT)
	default:
		return "buffer delay " + unit.Percent(*m.BufferDelayPct) + " over the kernel's minimum RTT of " + unit.Duration(*m.BaseRTT)
	}
}

func streamsText(c *measure.Cell) string {
	fair, scaling := "", ""
	if c.Fairness != nil && c.Streams > 1 {
		fair = fmt.Sprintf("fairness %.3f (Jain's index, 1 is even)", *c.Fairness)
	}
	if c.Scaling != nil && c.Streams > 1 {
		scaling = fmt.Sprintf("%.2f times the single-stream baseline", *c.Scaling)
	}
	return doc.Join(fair, scaling)
}

func packetText(bytes float64) string {
	if !(math.Abs(bytes) < 1e15) {
		return ""
	}
	return unit.Count(int64(math.Round(bytes))) + " B"
}

func bdpText(c *measure.Cell) string {
	return doc.Join(doc.Known("%s", c.BDP, unit.Size), doc.Known("needs a window of %s", c.NeededWindow, unit.Size))
}

// windowText returns the window if one was requested or the kernel cut it; for datagrams always, since those
// that find no room in it are lost.
func windowText(c *measure.Cell, sender, receiver *measure.Buffer) string {
	cut := sender != nil && sender.Cut || receiver != nil && receiver.Cut
	asked, s, r := "", gotText(sender), gotText(receiver)
	switch {
	case c.Window != (measure.Pair{}) || cut:
		asked = "requested " + WindowName(c.Window)
	case !IsUDP(c):
		return ""
	}
	switch {
	case s == r && s != "":
		return doc.Join(asked, "both ends got "+s)
	case s != "" && r != "":
		return doc.Join(asked, "sender got "+s+", receiver "+r)
	case s != "":
		return doc.Join(asked, "sender got "+s)
	case r != "":
		return doc.Join(asked, "receiver got "+r)
	}
	return asked
}

func gotText(b *measure.Buffer) string {
	switch {
	case b == nil || b.Granted == 0:
		return ""
	case b.Cut:
		return unit.Size(Usable(b)) + " (limited by the kernel)"
	default:
		return unit.Size(Usable(b))
	}
}

// Usable returns the part of a buffer that the data can use; a system that does not report it allows all of
// it.
func Usable(b *measure.Buffer) int64 {
	if b.Usable > 0 {
		return b.Usable
	}
	return b.Granted
}

func reconciledText(r *measure.Reconciled) string {
	if r == nil {
		return ""
	}
	in := doc.ScaleFor(max(r.SenderBps, r.ReceiverBps))
	what := "totals"
	if r.OfRates {
		what = "rates"
	}
	s := fmt.Sprintf("sender %s, receiver %s %s, %s differ by %.2f%%", in.Number(r.SenderBps), in.Number(r.ReceiverBps), in.Name, what, r.DifferencePct)
	if r.Note != "" {
		s += ": " + doc.Clean(r.Note)
	}
	return s
}

// stackText names congestion control, MSS, the data path and the interfaces.
func stackText(c *measure.Cell, sender, receiver *measure.Evidence) string {
	congestion, mss, io, via := doc.Clean(c.Spec.Congestion), "", ioText(c, sender, receiver), ""
	if sender != nil && sender.Reported != "" {
		congestion = "" // that program may not use what was asked for
	}
	if sender != nil && len(sender.Streams) > 0 {
		s := sender.Streams[0]
		congestion = doc.Clean(s.Congestion)
		if s.MSS > 0 {
			mss = fmt.Sprintf("MSS %d", s.MSS)
		}
	}
	if sender != nil && sender.Route != nil && receiver != nil && receiver.Route != nil {
		via = doc.Clean(sender.Route.Interface + " -> " + receiver.Route.Interface)
	}
	return doc.Join(congestion, mss, io, via)
}

// ioText names the data path, of both ends if they differ: "sendfile -> lean I/O".
func ioText(c *measure.Cell, sender, receiver *measure.Evidence) string {
	io := doc.Clean(c.IO)
	if sender != nil && receiver != nil && sender.IO != "" && receiver.IO != "" {
		if io = doc.Clean(sender.IO); sender.IO != receiver.IO {
			io += " -> " + doc.Clean(receiver.IO)
		}
	}
	if io == "" {
		return ""
	}
	return io + " I/O"
}

// fileRows returns the figures of a capture's cell that the captures do not show.
func fileRows(c *measure.Cell) []doc.Row {
	if stat.MainFigure(c) == nil {
		return nil
	}
	var out doc.Rows
	out.Add("by seconds", FigureText(c))
	out.Add("share", shareText(c))
	if c.Steady != nil && c.Steady.Checked {
		out.Add("steady", steadyText(c))
	}
	out.Add("streams", streamsText(c))
	out.Add("BDP", bdpText(c))
	return out
}

// MachinePct returns the CPU use of a machine in percent, "-" if unknown.
func MachinePct(f *measure.CPUFigure) string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", f.Pct)
}

// LinkRate formats a nominal rate with no more digits than it has: "10 Gb/s". It marks a rate that counts frames
// only, whose ceiling is above that of an Ethernet link: "1 Gb/s (L2)".
func LinkRate(c *measure.Ceiling) string {
	in, layer := doc.ScaleFor(float64(c.LinkBps)), ""
	if c.LinkLayer == unit.L2 {
		layer = " (L2)"
	}
	return doc.Plain(float64(c.LinkBps)/in.Div) + " " + in.Name + layer
}
