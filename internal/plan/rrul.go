package plan

import "thru/internal/measure"

// Classes returns the code points of RRUL, as in flent's test of that name: best effort, background (CS1),
// video (CS5) and voice (EF).
func Classes() []int { return []int{0, 8, 40, 46} }

// classes returns one stream of each class in each direction.
func classes(forward, back measure.Spec) (all []measure.Spec) {
	for _, s := range []measure.Spec{forward, back} {
		for _, dscp := range Classes() {
			s.DSCP, s.Streams, s.FirstStream = dscp, 1, len(all)
			all = append(all, s)
		}
	}
	return all
}
