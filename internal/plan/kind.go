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
		{r.rate() > measure.MaxRate, "{bitrate} takes a rate such as 500M or 5G, at most 10T; 0 is as fast as it goes", "the rate is out of range"},
		{r.PerSecond > 0 && bulk, "{rate} is of requests: add {kind=rr} or {kind=crr}; for bulk traffic {bitrate}", "{rate} does not go with bulk traffic"},
		{r.OneConnection && !r.Bidir, "it is of {direction=bidir}: both directions on the same connections", "{one_connection} does not go without {direction=bidir}"},
		{r.Search && !udp, "add {protocol=udp}", "{search} finds a rate without loss, of {protocol=udp}"},
		{r.DontFragment && !udp, "TCP never splits its segments; with {protocol=udp} it says whether datagrams may be", "{dont_fragment} does not go with TCP"},
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
	const agent, login = "it takes thru at both ends (thru serve)", "name a server of iperf3: iperf3://HOST"
	for _, c := range []struct {
		bad        bool
		hint, text string
	}{
		{far && r.Traffic != measure.Bulk, agent, "requests do not go to an " + name + " end point"},
		{far && r.RRUL, agent, "{rrul} does not go to an " + name + " end point"},
		{far && r.Latency, agent, "{latency} does not go to an " + name + " end point"},
		{far && r.Search, agent, "{search} does not go to an " + name + " end point"},
		{far && r.Verify, agent, "{verify} does not go to an " + name + " end point"},
		{far && r.DataAddr != "", "the address is in the end point", "{data_address} does not go to an " + name + " end point"},
		{three && r.OneConnection, "iperf3 opens connections for each direction: leave it out", "{one_connection} does not go to an iperf3 end point"},
		{three && r.Protocol != measure.UDP && max(r.Length.Send, r.Length.Recv) > mostIPerf3Length, "iperf3 takes {length} up to 1M", "the length is out of range"},
		{two && r.Bidir && r.Protocol == measure.UDP, "leave {direction=bidir} out: both directions are measured one after the other", "iperf2 does not send datagrams both ways at once"},
		{two && differ(r.Window), "name one size: an iperf2 server sets its own by its {window}", "the receiver's window cannot be set at an iperf2 end point"},
		{two && r.Bidir && !r.OneConnection, "an iperf2 end point does both directions on one TCP connection: {direction=bidir} {one_connection}", "{direction=bidir} alone does not go to an iperf2 end point"},
		{two && r.PeerCPU != nil, "name the local CPU alone: {affinity} N", "iperf2 takes no CPU from its client"},
		{!three && r.Login.User != "", login, "{user} does not go with this end point"},
		{!three && r.Login.PublicKey != "", login, "{public_key} does not go with this end point"},
		{!three && r.Login.PKCS1, login, "{older_padding} does not go with this end point"},
		{!three && r.FarOutput, "it is of iperf3:// end points", "{server_output} does not go to this end point"},
	} {
		if c.bad {
			return Refuse(c.hint, c.text)
		}
	}
	return nil
}

// differ reports whether the two sizes of a pair differ.
func differ(p measure.Pair) bool { return p.Send != p.Recv }
