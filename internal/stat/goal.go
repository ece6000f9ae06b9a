package stat

import "thru/internal/measure"

// Goal is what a plan demands (plan.Target).
type Goal struct {
	Of     string         // OfTotal, OfPair or OfHost
	Where  []measure.Axis // only of groups that have these values; none: of all
	Rung   string         // only of this rung; empty: of all
	Figure string         // FigureGoodput and so on
	Wanted float64
	AtMost bool // else at least
}

// What a Goal is of.
const (
	OfTotal = "total" // the aggregate of a group
	OfPair  = "pair"  // each pair
	OfHost  = "host"  // each host's sent or received, the lesser that it has
)

// Figures of a Goal.
const (
	FigureGoodput  = "goodput_bps"
	FigureShare    = "share_pct" // goodput of the ceiling
	FigureRTT      = "rtt_loaded_ns"
	FigureLoss     = "loss_pct" // of datagrams; of TCP what was sent again
	FigureFairness = "jain_fairness"
)

// Goals fills d.Targets, and d.Verdict by them; without goals it leaves both
// as they are. It comes after Groups.
func Goals(d *measure.Document, goals []Goal) {}
