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
			"it is four TCP streams in each direction at once, each with its own DSCP", "{rrul}", "{protocol=udp} {kind=rr} {kind=crr} {direction=bidir} {direction=reverse} {direction=forward} {streams} {dscp} {client_port}"},
		{r.Search && (!bulk || r.Bidir || r.Rate > 0 || r.TotalRate > 0), "take {protocol=udp} {search}, with {direction=reverse} for the other direction, and without {bitrate}: it finds the rate", "{search}", "{kind=rr} {kind=crr} {direction=bidir} {bitrate} {total_bitrate}"},
		{lean && udp, "UDP takes {io} gso, mmsg or portable", "{io=sendfile} {io=lean}", "{protocol=udp}"},
		{lean && !bulk, "leave it out: a request is too small to gain by it", "{io=sendfile} {io=lean}", "{kind=rr} {kind=crr}"},
		{r.Verify && (r.IO == measure.IOSendfile || r.IO == measure.IOLean || !bulk), "only copied data can be compared", "{verify}", "{io=sendfile} {io=lean} {io} {kind=rr} {kind=crr}"},
		{(r.Rate > 0 || r.TotalRate > 0) && !bulk, "requests take {rate}, in requests a second", "{bitrate} {total_bitrate}", "{kind=rr} {kind=crr}"},
		{(r.Amount > 0 || r.Blocks > 0) && (!bulk || r.Latency || r.Search), "{bytes} and {blocks} are only for bulk traffic", "{bytes} {blocks}", "{kind=rr} {kind=crr} {latency} {rrul} {search}"},
		{crr && udp, "{kind=crr} opens TCP connections; by UDP: {kind=rr} {protocol=udp}", "{kind=crr}", "{protocol=udp}"},
		{crr && r.Reverse, "run it at the other end instead: {kind=crr} goes only from here", "{direction=reverse}", "{kind=crr}"},
		{crr && (r.Congestion != "" || r.MSS != 0 || r.Window != (measure.Pair{}) || r.BindDev != "" || r.BindPort != 0), "{kind=crr} takes only the socket options {dscp} and {source_address}", "{congestion} {mss} {window} {device} {client_port}", "{kind=crr}"},
		{!bulk && r.Bidir, "leave it out: the response takes the other direction anyway", "{direction=bidir}", "{kind=rr} {kind=crr}"},
		{r.OneConnection && udp, "leave it out: datagrams have no connection", "{one_connection}", "{protocol=udp}"},
		{r.Latency && !bulk, "{kind=rr} measures latency itself", "{latency}", "{kind=rr} {kind=crr}"},
		{udp && (r.Congestion != "" || r.MSS != 0 || r.NoDelay), "it is only for TCP", "{congestion} {mss} {no_delay}", "{protocol=udp}"},
		{r.Capture > 0 && (udp || !bulk), "a capture needs TCP connections that carry data", "{capture} --keep", "{protocol=udp} {kind=rr} {kind=crr}"},
	} {
		if c.bad {
			return refuseClash(c.hint, c.these, c.with)
		}
	}
	return nil
}
