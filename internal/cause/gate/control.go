package gate

import ()

func AtRTT(rtt int64) string {
	if rtt == 0 {
		return ""
	}
	return " at " + Span(rtt) + " RTT"
}
