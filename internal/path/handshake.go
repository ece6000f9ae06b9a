package path

import (
	"fmt"
	"net"

	"thru/internal/measure"
	"thru/internal/sock"
)

// timestampsSize is the size of the option in each segment, padded: Linux subtracts it from its MSS once it is agreed (net/ipv4/tcp_input.c).
const timestampsSize = 12

// tcpState is the kernel's state of a connection.
type tcpState struct {
	info       measure.TCPInfo
	congestion string
	ipv6       bool
}

// readTCP reads it; fields that this system does not report are nil.
func readTCP(c *net.TCPConn) tcpState {
	return tcpState{
		info: sock.InfoOf(c), congestion: sock.Read(c, sock.ReadGranted).Congestion,
		ipv6: plain(c.RemoteAddr().(*net.TCPAddr).AddrPort()).Addr().Is6(),
	}
}

// known reports whether the kernel reports TCP options.
func (t tcpState) known() bool { return t.info.SACK != nil && t.info.AdvMSS != nil }

// ownMSS returns the MSS that this end advertised.
func (t tcpState) ownMSS() *int { return new(int(*t.info.AdvMSS) + t.timestamps()) }

// timestamps returns the bytes of the option in each segment.
func (t tcpState) timestamps() int {
	if t.info.Timestamps != nil && *t.info.Timestamps {
		return timestampsSize
	}
	return 0
}

// synSent returns the SYN of the dialling end, as its settings request it, because a connection shows only what both ends have agreed to.
func (t tcpState) synSent(s sock.Stack) *measure.SYN {
	if !t.known() {
		return nil
	}
	syn := &measure.SYN{
		MSS: t.ownMSS(), HasScale: either(s.WindowScaling, t.info.WScaleOK), SACK: either(s.SACK, t.info.SACK),
		Timestamps: either(s.Timestamps, t.info.Timestamps), ECN: either(s.ECN, t.info.ECN),
	}
	if *t.info.WScaleOK && t.info.RecvWScale != nil {
		syn.WindowScale = new(int(*t.info.RecvWScale))
	}
	retried := t.info.Retrans != nil && *t.info.Retrans > 0 // the kernel requests ECN only in the first SYN (RFC 3168 section 6.1.1.1)
	if retried || t.congestion == "dctcp" {                 // dctcp requests it whatever the setting is
		syn.ECN = nil
	}
	return syn
}

// either reports whether a setting requests an option, or the connection has it.
func either(asked, agreed *bool) *bool {
	if agreed != nil && *agreed {
		return new(true)
	}
	return asked
}

// synackSent returns the SYN-ACK of the answering end. It holds an option where the SYN had it and this end supports it, so exactly the options of the
// connection.
func (t tcpState) synackSent() *measure.SYN {
	if !t.known() {
		return nil
	}
	syn := t.agreed()
	syn.MSS = t.ownMSS()
	if *t.info.WScaleOK && t.info.RecvWScale != nil {
		syn.WindowScale = new(int(*t.info.RecvWScale))
	}
	return syn
}

// agreed returns the options that a connection shows.
func (t tcpState) agreed() *measure.SYN {
	return &measure.SYN{HasScale: t.info.WScaleOK, SACK: t.info.SACK, Timestamps: t.info.Timestamps, ECN: t.info.ECN}
}

// synackSeen returns the SYN-ACK as it arrived at the dialling end. sent is the other end's own report of it; nil: not known. why explains a missing MSS.
func (t tcpState) synackSeen(s sock.Stack, sent *measure.SYN) (syn *measure.SYN, why string) {
	if !t.known() {
		return nil, ""
	}
	syn = t.agreed()
	if *t.info.WScaleOK && t.info.SendWScale != nil {
		syn.WindowScale = new(int(*t.info.SendWScale))
	}
	mss, exact, why := t.peerMSS(s)
	if !exact && mss > 0 && sent != nil && sent.MSS != nil && *sent.MSS <= mss {
		exact = true // it was no less on arrival, and nothing raises it
		mss = *sent.MSS
	}
	if exact {
		syn.MSS, why = &mss, ""
	}
	return syn, why
}

// peerMSS returns the MSS that the peer has advertised, or a lower limit of it: the kernel shows only the MSS that it will send, which has other limits too
// (tcp_sync_mss in net/ipv4/tcp_output.c).
func (t tcpState) peerMSS(s sock.Stack) (mss int, exact bool, why string) {
	if t.info.SendMSS == nil || t.info.PMTU == nil {
		return 0, false, "the kernel does not report it"
	}
	mss = int(*t.info.SendMSS) + t.timestamps()
	header := 20 + 20
	if t.ipv6 {
		header = 40 + 20
	}
	own := int(*t.info.PMTU) - header
	switch {
	case s.MTUProbing == nil || *s.MTUProbing:
		return 0, false, "net.ipv4.tcp_mtu_probing limits it first"
	case t.info.SendWnd == nil || int(*t.info.SendMSS) >= int(*t.info.SendWnd)/2:
		return mss, false, "the peer's first window hides it: the kernel sends no segment larger than half of that window"
	case mss >= own:
		return mss, false, fmt.Sprintf("this end's own MTU hides it: it is at least %d bytes", mss)
	}
	return mss, true, ""
}
