package plan

import "thru/internal/measure"

// clash refuses options that do not go together.
func (r Request) clash() error {
	udp, bulk, crr := r.Protocol == measure.UDP, r.Traffic == measure.Bulk, r.Traffic == measure.CRR
	lean := (r.IO == measure.IOSendfile || r.IO == measure.IOLean) && !r.IOForced
	for _, c := range []struct {
		bad               bool
		hint, these, with string
	}{
		{r.RRUL && (!bulk || udp || r.Bidir || r.Reverse || r.OneWay || r.Streams > 1 || r.DSCP > 0 || r.BindPort != 0),
			"it is four streams of TCP each way at once, each with a DSCP of its own", "{rrul}", "{protocol=udp} {kind=rr} {kind=crr} {direction=bidir} {direction=reverse} {direction=forward} {streams} {dscp} {client_port}"},
		{r.Search && (!bulk || r.Bidir || r.Rate > 0 || r.TotalRate > 0), "take {protocol=udp} {search}, with {direction=reverse} for the other direction, and without {bitrate}: it finds the rate", "{search}", "{kind=rr} {kind=crr} {direction=bidir} {bitrate} {total_bitrate}"},
		{lean && udp, "UDP takes {io} gso, mmsg or portable", "{io=sendfile} {io=lean}", "{protocol=udp}"},
		{lean && !bulk, "a request is too small to gain by it: leave it out", "{io=sendfile} {io=lean}", "{kind=rr} {kind=crr}"},
		{r.Verify && (r.IO == measure.IOSendfile || r.IO == measure.IOLean || !bulk), "data can only be compared where it is copied", "{verify}", "{io=sendfile} {io=lean} {io} {kind=rr} {kind=crr}"},
		{(r.Rate > 0 || r.TotalRate > 0) && !bulk, "requests take {rate}, in requests a second", "{bitrate} {total_bitrate}", "{kind=rr} {kind=crr}"},
		{(r.Amount > 0 || r.Blocks > 0) && (!bulk || r.Latency || r.Search), "{bytes} and {blocks} are of bulk traffic alone", "{bytes} {blocks}", "{kind=rr} {kind=crr} {latency} {rrul} {search}"},
		{crr && udp, "{kind=crr} opens TCP connections; by UDP: {kind=rr} {protocol=udp}", "{kind=crr}", "{protocol=udp}"},
		{crr && r.Reverse, "{kind=crr} goes from here only: run it at the other end instead", "{direction=reverse}", "{kind=crr}"},
		{crr && (r.Congestion != "" || r.MSS != 0 || r.Window != (measure.Pair{}) || r.BindDev != "" || r.BindPort != 0), "of the socket options {kind=crr} takes {dscp} and {source_address}", "{congestion} {mss} {window} {device} {client_port}", "{kind=crr}"},
		{!bulk && r.Bidir, "a request's answer takes the other direction anyway", "{direction=bidir}", "{kind=rr} {kind=crr}"},
		{r.OneConnection && udp, "datagrams have no connection: leave it out", "{one_connection}", "{protocol=udp}"},
		{r.Latency && !bulk, "{kind=rr} measures latency itself", "{latency}", "{kind=rr} {kind=crr}"},
		{udp && (r.Congestion != "" || r.MSS != 0 || r.NoDelay), "it is of TCP", "{congestion} {mss} {no_delay}", "{protocol=udp}"},
		{r.Capture > 0 && (udp || !bulk), "a capture follows connections of TCP that carry data", "{capture} --keep", "{protocol=udp} {kind=rr} {kind=crr}"},
	} {
		if c.bad {
			return refuseClash(c.hint, c.these, c.with)
		}
	}
	return nil
}
