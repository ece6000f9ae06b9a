package plan

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/measure"
)

// checkKind refuses options that do not go with the requested kind of traffic.
func (r Request) checkKind() error {
	udp, bulk := r.Protocol == measure.UDP, r.Traffic == measure.Bulk
	paths := measure.Paths(r.Protocol, r.Traffic)
	if err := r.clash(); err != nil {
		return err
	}
	for _, c := range []struct {
		bad        bool
		hint, text string
	}{
		{r.IO != "" && !slices.Contains(paths, r.IO), "{io} takes " + strings.Join(paths, ", ") + " for this traffic", fmt.Sprintf("data path %q does not exist for this traffic", r.IO)},
		{udp && bulk && badSize(r.Length, measure.MinDatagram, measure.MaxDatagram), "with {protocol=udp}, {length} takes 16 to 65507 bytes", "the length of a datagram is out of range"},
		{udp && !bulk && badSize(r.Length, 1, measure.MaxDatagram), "with {protocol=udp}, {length} takes 1 to 65507 bytes", "the length of a message is out of range"},
		{!bulk && badSize(r.Length, 1, measure.MaxMessage), "with {kind=rr} and {kind=crr}, {length} takes REQUEST/RESPONSE up to 1M", "the length of a message is out of range"},
		{r.rate() > measure.MaxRate, "{bitrate} takes a rate such as 500M or 5G, at most 10T; 0 is unlimited", "the rate is out of range"},
		{r.PerSecond > 0 && bulk, "add {kind=rr} or {kind=crr}, or take {bitrate} for bulk traffic", "{rate} does not go with bulk traffic"},
		{r.OneConnection && !r.Bidir, "add {direction=bidir}: it puts both directions on the same connections", "{one_connection} does not go without {direction=bidir}"},
		{r.Search && !udp, "add {protocol=udp}", "{search} needs {protocol=udp}"},
		{r.DontFragment && !udp, "leave it out, or add {protocol=udp}: TCP segments are never fragmented", "{dont_fragment} does not go with TCP"},
	} {
		if c.bad {
			return Refuse(c.hint, c.text)
		}
	}
	return r.checkFar()
}

// mostIPerf3Length is the largest -l that an iperf3 server accepts with TCP.
const mostIPerf3Length = 1 << 20

// checkFar refuses what an end point that is no agent cannot do.
func (r Request) checkFar() error {
	name := r.engine()
	far, three, two := name != measure.Native, name == measure.IPerf3, name == measure.IPerf2
	const agent, login = "run thru at both ends (thru serve)", "name an iperf3 server: iperf3://HOST"
	for _, c := range []struct {
		bad        bool
		hint, text string
	}{
		{far && r.Traffic != measure.Bulk, agent, "requests do not work with an " + name + " end point"},
		{far && r.RRUL, agent, "{rrul} does not work with an " + name + " end point"},
		{far && r.Latency, agent, "{latency} does not work with an " + name + " end point"},
		{far && r.Search, agent, "{search} does not work with an " + name + " end point"},
		{far && r.Verify, agent, "{verify} does not work with an " + name + " end point"},
		{far && r.DataAddr != "", "leave it out: the end point has the address", "{data_address} does not work with an " + name + " end point"},
		{three && r.OneConnection, "leave it out: iperf3 opens connections for each direction", "{one_connection} does not work with an iperf3 end point"},
		{three && r.Protocol != measure.UDP && max(r.Length.Send, r.Length.Recv) > mostIPerf3Length, "iperf3 takes {length} up to 1M", "the length is out of range"},
		{two && r.Bidir && r.Protocol == measure.UDP, "leave {direction=bidir} out: both directions are measured one after the other", "iperf2 does not send datagrams both ways at once"},
		{two && differ(r.Window), "name one size: an iperf2 server sets its own by its {window}", "the receiver's window cannot be set at an iperf2 end point"},
		{two && r.Bidir && !r.OneConnection, "take {direction=bidir} {one_connection}: iperf2 sends both directions on one TCP connection", "{direction=bidir} alone does not work with an iperf2 end point"},
		{two && r.PeerCPU != nil, "name only the local CPU: {affinity} N", "iperf2 does not let its client choose its CPU"},
		{!three && r.Login.User != "", login, "{user} does not go with this end point"},
		{!three && r.Login.PublicKey != "", login, "{public_key} does not go with this end point"},
		{!three && r.Login.PKCS1, login, "{older_padding} does not go with this end point"},
		{!three && r.FarOutput, "it is only for iperf3:// end points", "{server_output} does not go with this end point"},
	} {
		if c.bad {
			return Refuse(c.hint, c.text)
		}
	}
	return nil
}

// differ reports whether the two sizes of a pair differ.
func differ(p measure.Pair) bool { return p.Send != p.Recv }
