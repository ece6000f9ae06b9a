package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/facts"
	"thru/internal/report/fleet"
	"thru/internal/report/inventory"
	"thru/internal/report/result"
	"thru/internal/stat"
	"thru/internal/unit"
)

// methodLines explains in plain words how a result was measured, and its limits, so that a reader can check a
// figure.
func methodLines(d *measure.Document) (all []string) {
	if result.IsCheck(d) {
		return []string{
			"The facts come from each host's kernel. Some hundred small packets between the end points probed the path in both directions.",
			"Each gate compares one fact with the threshold in its line. The check put no load on the path: if all gates pass, a measurement is valid; its result is still open.",
		}
	}
	if inventory.Is(d) {
		return inventory.Method()
	}
	c := methodCell(d)
	if c == nil {
		return nil
	}
	if s := filesMethod(d); s != "" {
		all = append(all, s)
	} else {
		all = append(all, countMethod(c), timeMethod(c))
	}
	all = append(all, doubtMethod(c), machineMethod(c))
	if c.RTTIdle != nil || c.RTTLoaded != nil {
		all = append(all, "RTT idle: a small message on the test connection before the traffic. RTT loaded: the sender kernel's smoothed RTT under the traffic (tcp_info). Kernel's minimum RTT: the fastest acknowledgement. RTT of path probes: between the agents, including the time to wake both.")
	}
	if c.Ceiling != nil {
		all = append(all, fmt.Sprintf("The ceiling is the payload rate that the link rate (%s) allows at MTU %d, without the headers of Ethernet, IP and %s.",
			ceilingSource(c.Ceiling), c.Ceiling.MTU, strings.ToUpper(doc.Clean(c.Protocol))))
	}
	if len(d.Findings)+len(c.Findings) > 0 {
		all = append(all, `Rules judge the causes by the counters of both ends. "Certain": the evidence supports the cause, and similar causes are ruled out. "Likely": a similar cause is not ruled out. "Possible": a condition for the cause is met, its effect was not measured.`)
	}
	if len(d.Groups) > 0 && len(fleet.Sets(d)) > 0 {
		if slices.ContainsFunc(fleet.Sets(d), (*fleet.Set).AtOnce) {
			all = append(all, "The pairs of a group started at the same moment, on clocks that were compared before. Their total counts only the time in which all of them ran.")
		} else {
			all = append(all, "The pairs were measured one after the other.")
		}
	}
	if len(d.Comparisons) > 0 || result.IsTuning(d) && len(d.Tuning.Attempts) > 0 {
		all = append(all, "Comparisons alternate runs with and without the change, so that a drift of the network affects both alike.")
	}
	return doc.NonEmpty(all...)
}

// methodCell returns the cell whose method represents all cells.
func methodCell(d *measure.Document) *measure.Cell {
	if c, _ := fleet.Judged(d); c != nil {
		return c
	}
	first, _, _ := result.MainCells(d)
	for i := range d.Cells {
		if first == nil && stat.MainFigure(&d.Cells[i]) != nil {
			first = &d.Cells[i]
		}
	}
	return first
}

// filesMethod returns the line for a result that thru read from files.
func filesMethod(d *measure.Document) string {
	switch {
	case d.Command == "import":
		return "The figures come from the output of another program. thru measured nothing itself."
	case result.OfFiles(d):
		return "The figures come from captured packets. thru sent nothing itself."
	}
	return ""
}

// countMethod explains what is counted, and at which end.
func countMethod(c *measure.Cell) string {
	switch {
	case c.Spec.Traffic == measure.CRR:
		return "A connection counts if it was opened, carried one request and its response, and was closed. The client's clock measures it."
	case result.Asks(c) && c.Spec.PerSecond > 0:
		return "The latency of a request counts from the moment at which it was due, so that a stall shows in all requests that it delayed (no coordinated omission)."
	case result.Asks(c):
		return "The latency of a request is the time from sending it to the whole response, by the client's clock. The next request waits for it."
	case result.IsUDP(c):
		return "Goodput is the payload of the datagrams that the receiving program read, by the receiver's clock. Loss is counted by sequence numbers, over the life of the streams."
	}
	return "Goodput is the payload that the receiving program read, by the receiver's clock, without headers, retransmissions and data in flight."
}

// timeMethod returns the measured time, the ramp, and the number of runs.
func timeMethod(c *measure.Cell) string {
	sender, receiver := result.ShownFlow(c)
	e := cmp.Or(receiver, sender)
	if e == nil || e.MeasuredNs <= 0 {
		return ""
	}
	s := "The run shown was measured for " + unit.Duration(e.MeasuredNs)
	if e.RampNs > 0 {
		s += ", after a ramp of " + unit.Duration(e.RampNs) + " that is not counted"
	}
	s += fmt.Sprintf(", in bins of 1 s at both ends, over %s", unit.Plural(max(c.Streams, 1), "connection"))
	if n := len(c.Runs); n > 1 {
		s += fmt.Sprintf("; there are %d runs", n)
	}
	return s + "."
}

// doubtMethod explains the interval of a figure.
func doubtMethod(c *measure.Cell) string {
	f := stat.MainFigure(c)
	switch {
	case f == nil:
		return ""
	case f.Runs > 1:
		return fmt.Sprintf("The interval is the 95%% confidence interval of the mean of %d runs.", f.Runs)
	case f.CI95Low != nil:
		return "There is a single run. Its 95% interval describes this run only: where its mean would lie if it had gone on, not the result of another run. Repeat it to learn how much runs vary (--repeat)."
	}
	return "There is a single run, too short for an interval. Repeat it to learn how much runs vary (--repeat)."
}

func machineMethod(c *measure.Cell) string {
	if c.SenderCPU == nil && c.ReceiverCPU == nil {
		return ""
	}
	return "CPU is read at both ends each second, for every core of the machine. The idle load before the test is subtracted from the cores used."
}

func ceilingSource(c *measure.Ceiling) string {
	return result.LinkRate(c) + ", " + doc.Clean(c.LinkFrom)
}

// repeating explains how to repeat the measurement: the command for each host, and the plan.
type repeating struct {
	Steps []repeatStep
	Plan  []doc.Row
}

// repeatStep is the command for one host.
type repeatStep struct {
	At         string
	Command    string
	Conclusion string
}

// newRepeating lists the far ends first, since they must run first.
func newRepeating(d *measure.Document) repeating {
	r := repeating{}
	command := reproduce(d)
	if command == "" {
		return r
	}
	for _, e := range d.EndPoints[:min(len(d.EndPoints), facts.MostEndPoints)] {
		if e.Name == "local" || result.OfFiles(d) {
			continue
		}
		s, ok := farStep(d, e)
		same := slices.IndexFunc(r.Steps, func(x repeatStep) bool { return x.Command == s.Command && x.Conclusion == s.Conclusion })
		switch {
		case ok && same >= 0:
			r.Steps[same].At += ", " + s.At
		case ok:
			r.Steps = append(r.Steps, s)
		}
	}
	if n := len(d.EndPoints) - facts.MostEndPoints; n > 0 {
		r.Steps = append(r.Steps, repeatStep{At: fmt.Sprintf("%d more", n), Command: "thru serve", Conclusion: "the same"})
	}
	here := repeatStep{At: "the host that ran the command", Command: command}
	if d.Thru != "" {
		here.Conclusion = "thru " + doc.Clean(d.Thru)
	}
	r.Steps = append(r.Steps, here)
	if p := d.Plan; p != nil {
		r.Plan = []doc.Row{{Name: "plan", Value: doc.Clean(p.Name)}, {Name: "run", Value: doc.Clean(p.Run)}, {Name: "SHA-256 of the plan file", Value: doc.Clean(p.SHA256)}, {Name: "order", Value: doc.Clean(p.Order)},
			{Name: "steps", Value: fmt.Sprintf("%d of %d done", p.Done, p.Steps)}}
		r.Plan = append(r.Plan, fleet.ManualRows(p)...)
	}
	return r
}

// farStep returns the command for an end point other than the one that measures.
func farStep(d *measure.Document, e measure.EndPoint) (repeatStep, bool) {
	s := repeatStep{At: doc.Clean(e.Name)}
	program := strings.ToLower(e.Speaks)
	switch {
	case asksOverSSH(d, e.Name), e.Facts != nil && e.Facts.OS != nil && *e.Facts.OS == "esxi":
		return s, false // nothing has to be started there
	case strings.HasPrefix(program, "iperf3"):
		s.Command, s.Conclusion = "iperf3 -s", doc.Clean(e.Speaks)
	case strings.HasPrefix(program, "iperf"):
		s.Command, s.Conclusion = "iperf -s", doc.Clean(e.Speaks)
	case e.Speaks != "":
		return s, false
	default:
		s.Command = "thru serve"
		s.Conclusion = "once, at the other end: run thru join NAME and enter the join string that it prints"
		if e.Thru != "" {
			s.Conclusion = "thru " + doc.Clean(e.Thru) + "; " + s.Conclusion
		}
	}
	return s, true
}

// asksOverSSH reports whether an end point was reached by ssh, which copies the program there.
func asksOverSSH(d *measure.Document, name string) bool {
	for _, a := range d.Arguments {
		if strings.HasPrefix(a, "ssh://") && (a == name || strings.Contains(a, name)) {
			return true
		}
	}
	return strings.HasPrefix(name, "ssh://")
}

// reproduce returns the command line that repeats the measurement.
func reproduce(d *measure.Document) string {
	words := []string{"thru"}
	if len(d.Arguments) == 0 && d.Command == "import" { // no command of thru measured it
		return ""
	}
	if len(d.Arguments) == 0 || d.Arguments[0] != d.Command {
		words = append(words, doc.Quote(d.Command))
	}
	for _, a := range d.Arguments[:min(len(d.Arguments), result.MaxLines)] {
		words = append(words, doc.Quote(a))
	}
	return strings.Join(words, " ")
}
