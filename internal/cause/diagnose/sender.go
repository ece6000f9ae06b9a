package diagnose

import (
	"fmt"

	"thru/internal/measure"
	"thru/internal/unit"
)

// UsualMessage is from where on larger ones are known to bring nothing (C-19).
const UsualMessage = 64 << 10

// IsSmall tells of a length that was asked for, and that larger ones may beat.
func IsSmall(length int64) bool { return length > 0 && length < UsualMessage }

// AsIsAsked is the finding of a flow that carries the rate it was asked for.
func (f *Flow) AsIsAsked() *Outcome {
	bps, _ := f.Goodput()
	rate := float64(f.Cell.Spec.Rate)
	o := Certain("it is the rate that was asked for (-b %s)", unit.Rate(rate)).Well().At(measure.Where{Place: measure.AtTool, EndPoint: f.Sender.Name}).
		By(f.Sender.Proof("rate asked for", rate, "bps"))
	again, _ := f.AgainPct()
	switch {
	case bps > 0.97*rate:
		return o
	case bps > 0.93*rate && again < AgainBar && !f.HasQueue():
		o.Confidence, o.Text = measure.Likely, fmt.Sprintf("it is nearly the rate that was asked for (-b %s), and nothing on the path is full", unit.Rate(rate))
		return o
	}
	return No("the rate that was asked for was not reached")
}

// Paces tells the congestion controls whose segments leave at a rate of their own.
func Paces(control string) bool { return control == "bbr" || control == "bbr2" || control == "bbr3" }

// NearNs is a round trip in ns, as on a LAN or within a host, under which pacing
// costs more than it saves: small bursts take more of the CPUs too.
const NearNs = 1e6

// MayBePaced tells that a control that paces sends to a near host, and no other
// was tried: then a full CPU may be what the pacing costs.
func (f *Flow) MayBePaced() bool {
	base, ok := f.BaseRTT()
	other := f.Experiment(OtherControl)
	return Paces(f.Congestion()) && ok && base < NearNs && (other == nil || Paces(ControlOf(other))) && f.Cell.Spec.Rate == 0
}

// ControlOf is the congestion control that a cell's sender used: what its
// kernel says, else what was asked for.
func ControlOf(c *measure.Cell) string {
	for _, r := range c.Runs {
		for _, f := range r.Flows {
			if f.Sender != nil && len(f.Sender.Streams) > 0 && f.Sender.Streams[0].Congestion != "" {
				return f.Sender.Streams[0].Congestion
			}
		}
	}
	return c.Spec.Congestion
}
