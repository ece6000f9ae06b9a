package plan

import "thru/internal/measure"

// Classes are the code points of RRUL, as flent's test of that name has them: best
// effort, background (CS1), video (CS5) and voice (EF).
func Classes() []int { return []int{0, 8, 40, 46} }

// classes are one stream of each class in each direction.
func classes(forward, back measure.Spec) (all []measure.Spec) {
	for _, s := range []measure.Spec{forward, back} {
		for _, dscp := range Classes() {
			s.DSCP, s.Streams, s.FirstStream = dscp, 1, len(all)
			all = append(all, s)
		}
	}
	return all
}

// checkRRUL refuses what does not go with a test of all classes at once.
func (r Request) checkRRUL() error {
	switch {
	case !r.RRUL:
		return nil
	case r.engine() != measure.Native:
		return Refuse("it takes thru at both ends (thru serve)", "{rrul} does not go to an "+r.engine()+" end point")
	case r.Traffic != measure.Bulk || r.Protocol == measure.UDP || r.Bidir || r.Reverse || r.OneWay || r.Streams > 1 || r.DSCP > 0 || r.BindPort != 0:
		return Refuse("it is four streams of TCP each way at once, each with a DSCP of its own", "{rrul} does not go with {protocol=udp}, {kind=rr}, {direction=bidir}, {direction=reverse}, {direction=forward}, {streams}, {dscp} and {client_port}")
	case r.Local == r.Peer && r.Local != "":
		return Refuse("name the other end point", "{rrul} is of two hosts")
	}
	return nil
}
