package loss

import (
	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// sturdier proposes a congestion control that does not take each loss for a full path, with its measured gain.
func sturdier(hope string) advise.Proposer {
	return func(r advise.Request) []advise.Draft {
		w := r.Direction
		if w.Cell != nil && w.Cell.Protocol != measure.TCP {
			return nil
		}
		now, want := advise.CongestionOf(w), "bbr"
		if diagnose.Paces(now) {
			return advise.FairQueue(w, w.From, r.Here(w.From))
		}
		if !w.From.Has(want) {
			if want = "cubic"; now == want || now == "" || !w.From.Has(want) {
				return nil
			}
		}
		return advise.Use(w, want, hope)
	}
}
