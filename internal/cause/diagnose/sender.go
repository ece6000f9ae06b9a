package diagnose

import (
	"fmt"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// UsualMessage is the message length from which larger ones bring nothing (C-19).
const UsualMessage = 64 << 10

// IsSmall reports whether a requested message length may be too small.
func IsSmall(length int64) bool { return length > 0 && length < UsualMessage }

// AsIsAsked returns the finding of a flow that carries its requested rate.
func (f *Flow) AsIsAsked() *Outcome {
	bps, _ := f.Goodput()
	rate := float64(f.Cell.Spec.Rate)
	o := Certain("it is the requested rate (-b %s)", unit.Rate(rate)).Well().At(measure.Where{Place: measure.AtTool, EndPoint: f.Sender.Name}).
		By(f.Sender.Proof("requested rate", rate, "bps"))
	again, _ := f.AgainPct()
	switch {
	case bps > 0.97*rate:
		return o
	case bps > 0.93*rate && again < AgainBar && !f.HasQueue():
		o.Confidence, o.Text = measure.Likely, fmt.Sprintf("it is nearly the requested rate (-b %s), and nothing on the path is full", unit.Rate(rate))
		return o
	}
	return No("the requested rate was not reached")
}

// Paces reports whether a congestion control paces its segments itself: all versions of bbr.
func Paces(control string) bool { return strings.HasPrefix(control, "bbr") }

// NearNs is a round-trip time in ns, as on a LAN or within a host, below which pacing costs more than it saves:
// small bursts also take more CPU time.
const NearNs = 1e6

// MayBePaced reports whether a pacing congestion control sends to a near host, and no other was tried: pacing may
// then explain a full CPU.
func (f *Flow) MayBePaced() bool {
	base, ok := f.BaseRTT()
	other := f.Experiment(OtherControl)
	return Paces(f.Congestion()) && ok && base < NearNs && (other == nil || Paces(ControlOf(other))) && f.Cell.Spec.Rate == 0
}

// ControlOf returns the congestion control of a cell's sender: the kernel's report, or else the requested one.
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
