package control

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// stepOf returns what the cell at an index shows about its base: the causes that
// it ruled out, and those that it made more likely.
func (x *explanation) stepOf(b *base, cell int, before measure.Diagnosis, err error) measure.Step {
	c, now := &x.doc.Cells[cell], x.doc.Cells[b.cell].Diagnosis
	s := measure.Step{
		Experiment: c.Experiment, From: c.From, To: c.To, Cells: []int{cell}, Figure: cellFigure(c),
		RuledOut: ruledOut(before, now), Raised: raised(before, now),
	}
	if c.Goodput != nil {
		s.Bps = &c.Goodput.Value
	}
	if n := len(c.Runs); n > 1 && c.Runs[n-1].Goodput != nil { // one of the runs that alternate
		s.Bps, s.Figure = c.Runs[n-1].Goodput, unit.Rate(*c.Runs[n-1].Goodput)
	}
	if len(now.Findings) > 0 {
		s.Conclusion = now.Findings[0].Summary
	}
	if err != nil {
		s.Error = err.Error()
	}
	return s
}

// ruledOut returns the causes that the evidence contradicts now and did not before.
func ruledOut(before, now measure.Diagnosis) (causes []string) {
	for _, e := range now.RuledOut {
		if !slices.ContainsFunc(before.RuledOut, func(o measure.Excluded) bool { return o.Cause == e.Cause }) {
			causes = append(causes, e.Cause)
		}
	}
	return causes
}

// raised returns the causes whose confidence rose.
func raised(before, now measure.Diagnosis) (causes []string) {
	for _, f := range now.Findings {
		if !f.Healthy && sureness(now, f.Cause) > sureness(before, f.Cause) {
			causes = append(causes, f.Cause)
		}
	}
	return causes
}

// sureness returns the confidence of a cause as a number; 0 where it was not found.
func sureness(d measure.Diagnosis, cause string) int {
	for _, f := range d.Findings {
		if f.Cause == cause {
			return 1 + slices.Index([]string{measure.Possible, measure.Likely, measure.Certain}, f.Confidence)
		}
	}
	return 0
}

// baseTitle names the base traffic.
func baseTitle(c measure.Cell) string {
	return fmt.Sprintf("base traffic: %s, %s", strings.ToUpper(c.Protocol), unit.Plural(c.Streams, "stream"))
}

// cellFigure returns the result of a cell in words.
func cellFigure(c *measure.Cell) string {
	if c.Goodput == nil {
		return "no data arrived"
	}
	words := []string{unit.Rate(c.Goodput.Value)}
	if d := c.Datagrams; d != nil {
		words = append(words, unit.Percent(d.LossPct)+" lost")
	}
	if n := c.Retransmits; n != nil && *n > 0 {
		words = append(words, unit.Count(*n)+" retransmits")
	}
	if c.RTTLoaded != nil {
		words = append(words, "RTT "+unit.Duration(*c.RTTLoaded)+" under load")
	}
	return strings.Join(words, ", ")
}

// pathFigure returns the result of probe and gates in words.
func pathFigure(doc *measure.Document) string {
	var words []string
	if len(doc.Paths) > 0 {
		words = pathWords(&doc.Paths[0])
	}
	for _, of := range []struct{ status, verb string }{{measure.GateFail, "fail"}, {measure.GateWarn, "warn"}} {
		var ids []string
		for _, g := range doc.Gates {
			if g.Status == of.status && !slices.Contains(ids, g.ID) {
				ids = append(ids, g.ID)
			}
		}
		if n := len(ids); n == 1 {
			words = append(words, "the gate "+ids[0]+" "+of.verb+"s")
		} else if n > 1 {
			words = append(words, fmt.Sprintf("%d gates %s", n, of.verb))
		}
	}
	if len(words) == 0 && len(doc.Gates) > 0 {
		return "no gate warns"
	}
	return strings.Join(words, ", ")
}

// pathWords returns the main facts of a path: RTT, MTU, TCP options, packet loss.
func pathWords(p *measure.Path) (words []string) {
	if p.RTT != nil {
		words = append(words, "RTT "+unit.Duration(p.RTT.P50))
	}
	there, back := p.Forward.MTU, p.Back.MTU
	switch {
	case there != nil && back != nil && there.Bytes == back.Bytes:
		words = append(words, fmt.Sprintf("%d bytes pass in both directions", there.Bytes))
	case there != nil && back != nil:
		words = append(words, fmt.Sprintf("%d bytes pass forward and %d back", there.Bytes, back.Bytes))
	}
	if h := p.Handshake; h != nil && h.SYNSent != nil && h.SYNSeen != nil && h.SYNACKSent != nil && h.SYNACKSeen != nil {
		switch {
		case reflect.DeepEqual(h.SYNSent, h.SYNSeen) && reflect.DeepEqual(h.SYNACKSent, h.SYNACKSeen):
			words = append(words, "TCP options arrive unchanged")
		case reflect.DeepEqual(h.SYNSent, h.SYNSeen): // the answer may also leave out options that were offered
			words = append(words, "the TCP options of the SYN-ACK are not those that the end point would send")
		default:
			words = append(words, "the path changes TCP options")
		}
	}
	return words
}
