package loss

import (
	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// Sturdy is a congestion control that does not take each loss for a full path.
func Sturdy(r advise.Request) []advise.Draft {
	w := r.Way
	if w.Cell != nil && w.Cell.Protocol != measure.TCP {
		return nil
	}
	now, want := advise.CongestionOf(w), "bbr"
	if diagnose.PacesItself(now) {
		return advise.FairQueue(w, w.From, r.Here(w.From))
	}
	if !w.From.Has(want) {
		if want = "cubic"; now == want || now == "" || !w.From.Has(want) {
			return nil
		}
	}
	return advise.Use(w, want, hopes()[r.Cause])
}

// hopes are what a control that does not take each loss for a full path was
// measured to bring.
func hopes() map[string]string {
	return map[string]string{
		"loss":       "bbr for cubic: 20 to 185 Mb/s at 0.1% loss and 20 ms",
		"policer":    "bbr for cubic: 55 to 95 of the 100 Mb/s that a policer lets pass",
		"reordering": "bbr does not slow down for each segment that comes late; how much that is, is measured",
	}
}
