package report

import (
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
			"The facts were read from each host's own kernel; the path was probed by some hundred small packets between the end points, in both directions.",
			"Each gate holds one fact against a bar that its line names. No load was put on the path: a gate that passes says that a measurement counts, not what it will show.",
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
		all = append(all, "RTT idle: a small message on the test's own connection before the traffic. RTT loaded: smoothed by the sender's kernel under the traffic (tcp_info). The kernel's least RTT: its quickest acknowledgement. RTT of the path's probes: between the agents, including the time to wake both.")
	}
	if c.Ceiling != nil {
		all = append(all, fmt.Sprintf("The ceiling is what the link's rate (%s) leaves for payload at MTU %d, when the headers of Ethernet, IP and %s are taken off.",
			ceilingSource(c.Ceiling), c.Ceiling.MTU, strings.ToUpper(doc.Clean(c.Protocol))))
	}
	if len(d.Findings)+len(c.Findings) > 0 {
		all = append(all, `Rules judge the causes by the counters of both ends. "Certain": the evidence is there, and similar causes are ruled out; "likely": one of those is not ruled out; "possible": a condition for it holds, its cost was not measured.`)
	}
	if len(d.Groups) > 0 && len(fleet.Sets(d)) > 0 {
		if slices.ContainsFunc(fleet.Sets(d), (*fleet.Set).AtOnce) {
			all = append(all, "Pairs of one group were started at the same moment on clocks that had been compared before; what they carried together counts only the time in which all of them ran.")
		} else {
			all = append(all, "Pairs were measured one after the other: no two ran at the same time.")
		}
	}
	if len(d.Comparisons) > 0 || result.IsTuning(d) && len(d.Tuning.Attempts) > 0 {
		all = append(all, "What is compared ran in turns, one with the change and one without, again and again, so that a drift of the network falls on both.")
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
		return "These are the figures of another program, read from its output; thru has measured nothing itself."
	case result.OfFiles(d):
		return "These figures come from captured packets; thru has sent nothing itself."
	}
	return ""
}

// countMethod explains what is counted, and at which end.
func countMethod(c *measure.Cell) string {
	switch {
	case c.Spec.Traffic == measure.CRR:
		return "A connection counts when it was opened, one request was answered on it, and it was closed, by the clock of the end that asks."
	case result.Asks(c) && c.Spec.PerSecond > 0:
		return "A request's time counts from the moment at which it was due, so that a stall shows in all the requests that it held up (no coordinated omission)."
	case result.Asks(c):
		return "A request's time is that from its sending to the whole response, by the clock of the end that asks; the next request waits for it."
	case result.IsUDP(c):
		return "Goodput is the payload of the datagrams that the receiver's program got, by the receiver's own clock. Loss is told by sequence numbers, over the life of the streams."
	}
	return "Goodput is the payload that the receiver's program got, by the receiver's clock: without headers, retransmissions and what only left the sender."
}

// timeMethod returns the measured time, the ramp, and the number of runs.
func timeMethod(c *measure.Cell) string {
	sender, receiver := result.ShownFlow(c)
	e := receiver
	if e == nil {
		e = sender
	}
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
		return fmt.Sprintf("The interval is that of the mean of %d runs (95%%): it says where the mean of many more runs would lie.", f.Runs)
	case f.CI95Low != nil:
		return "There is a single run. Its interval (95%) is of this run, not of the path: it says where the mean of this run would lie had it gone on, not how another one would end. Repeat it to know that (--repeat)."
	}
	return "There is a single run, too short for an interval. Repeat it to know how much it varies (--repeat)."
}

func machineMethod(c *measure.Cell) string {
	if c.SenderCPU == nil && c.ReceiverCPU == nil {
		return ""
	}
	return "CPU is read at both ends each second, of every core, for the whole machine; cores used are less what it used when no test ran."
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
	here := repeatStep{At: "where it was measured", Command: command}
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
		s.Conclusion = "once, at the other end: thru join NAME takes the join string that it prints"
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
