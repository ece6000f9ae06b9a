package knob

import "thru/internal/measure"

const (
	needsNet  = "root (CAP_NET_ADMIN in the network namespace)"
	needsHost = "root of the host, not of a container"
	ipSysctl  = "Linux ip-sysctl.rst"
)

// tcpKnobs are the knobs of TCP. All are kernel settings (sysctl), except the congestion control of a route.
func tcpKnobs() []Knob {
	return []Knob{
		{ID: TCPRmem, Scope: OfHost, Role: Receiver, Title: "receive buffer of TCP", Linux: "net.ipv4.tcp_rmem", Needs: needsNet,
			About:  "least, first and greatest receive buffer of a connection; the window can grow to about half of the greatest",
			Effect: "a connection carries at most window x 8 / RTT: 3 MiB at 20 ms are 1.26 Gb/s, 25 MB are 10 Gb/s; 3.74 to 18.3 Gb/s with 4 MiB where it bound", Source: "RFC 6349, 3.3.1; checklist S-09; " + ipSysctl,
			Risk: "each connection may take so much memory (tcp_mem bounds them all)", Verify: "the window that the receiver advertises (snd_wnd of TCP_INFO at the sender) grows beyond the one before", Checklist: []string{"C-14", "C-15", "C-18", "C-32", "S-09", "B-17", "B-19"},
			shows: recvWindowShown()},
		{ID: TCPWmem, Scope: OfHost, Role: Sender, Title: "send buffer of TCP", Linux: "net.ipv4.tcp_wmem", Needs: needsNet,
			About:  "least, first and greatest send buffer of a connection; what is not acknowledged stays in it",
			Effect: "at most buffer x 8 / RTT: 64 KiB at 20 ms carried 44 of 189 Mb/s", Source: "RFC 6349, 3.3.1; measured (causes, calibration)",
			Risk: "each connection may take so much memory; a longer queue in the host where the path is slow", Verify: "bytes under way (unacknowledged, TCP_INFO) grow beyond the buffer before, and send() waits less", Checklist: []string{"C-14", "C-18", "C-32", "S-09", "B-19"},
			shows: sendBufferShown()},
		{ID: RmemMax, Scope: OfHost, Role: Receiver, Title: "limit of an explicit receive buffer", Linux: "net.core.rmem_max", Needs: needsHost,
			About:  "the most that a program may ask for by SO_RCVBUF (-w); without -w it does not matter to TCP",
			Effect: "-w is granted in full: 800 KiB instead of 208 KiB of a stock kernel, which is the window that -w was meant to be", Source: "socket(7), SO_RCVBUF; checklist C-39",
			Risk: "a program may take so much memory a socket", Verify: "the buffer that the kernel grants (SO_RCVBUF read back) is twice of what was asked for", Checklist: []string{"C-18", "C-32", "C-39", "B-17"},
			shows: recvWindowShown()},
		{ID: WmemMax, Scope: OfHost, Role: Sender, Title: "limit of an explicit send buffer", Linux: "net.core.wmem_max", Needs: needsHost,
			About:  "the most that a program may ask for by SO_SNDBUF (-w); without -w it does not matter to TCP",
			Effect: "-w is granted in full: 800 KiB instead of 208 KiB of a stock kernel", Source: "socket(7), SO_SNDBUF; checklist C-39",
			Risk: "a program may take so much memory a socket", Verify: "the buffer that the kernel grants (SO_SNDBUF read back) is twice of what was asked for", Checklist: []string{"C-18", "C-32", "C-39", "B-17"},
			shows: sendBufferShown()},
		{ID: WindowScaling, Scope: OfHost, Title: "window scaling", Linux: "net.ipv4.tcp_window_scaling", Needs: needsNet,
			About:  "offers windows above 64 KiB in the SYN; both ends must",
			Effect: "without it at most 65535 x 8 / RTT: 26 Mb/s at 20 ms", Source: "RFC 7323, 2",
			Risk: "a box between that strips the option may break connections", Verify: "the SYN carries the option, and TCP_INFO names a scale (tcpi_options)", Checklist: []string{"C-16", "C-32"},
			shows: optionShown("window scaling", func(t *measure.TCPInfo) *bool { return t.WScaleOK })},
		{ID: SACK, Scope: OfHost, Title: "selective acknowledgments", Linux: "net.ipv4.tcp_sack", Needs: needsNet,
			About:  "the receiver names what it has beyond a gap; both ends must offer it",
			Effect: "losses of one window are mended in one round trip instead of one a loss", Source: "RFC 2018; RFC 6675",
			Risk: "none known of current kernels", Verify: "the SYN carries SACK-permitted (tcpi_options)", Checklist: []string{"C-16"},
			shows: optionShown("selective acknowledgements", func(t *measure.TCPInfo) *bool { return t.SACK })},
		{ID: Timestamps, Scope: OfHost, Title: "TCP timestamps", Linux: "net.ipv4.tcp_timestamps", Needs: needsNet,
			About:  "times in each segment: round trips are measured by every acknowledgment, and old segments of fast connections are told apart",
			Effect: "better timeouts under loss, for 12 bytes a segment (0.8% at MTU 1500)", Source: "RFC 7323, 3",
			Risk: "12 bytes a segment", Verify: "the SYN carries the option (tcpi_options)", Checklist: []string{"C-16"},
			shows: optionShown("timestamps", func(t *measure.TCPInfo) *bool { return t.Timestamps })},
		{ID: MTUProbing, Scope: OfHost, Role: Sender, Title: "probing for the path's MTU", Linux: "net.ipv4.tcp_mtu_probing", Needs: needsNet,
			About:  "1: TCP tries smaller segments where full ones get no answer; 2: it always begins small and tries larger ones",
			Effect: "from 0 to 34 Mb/s (1) or 72 Mb/s (2) behind an MTU black hole, where a healthy path gave 189", Source: "RFC 4821; measured (causes, calibration)",
			Risk: "after real timeouts segments may stay smaller than they could be", Verify: "TCPMTUPSuccess rises where a black hole is, and data passes", Checklist: []string{"C-21", "S-03"},
			shows: shown{"TcpExt.TCPMTUPSuccess", check.probing}},
		{ID: Congestion, Scope: OfHost, Role: Sender, Title: "congestion control", Linux: "net.ipv4.tcp_congestion_control", Needs: needsNet + "; some kernels refuse it in a namespace",
			About:  "how fast a connection sends without losing packets, of new connections of this host",
			Effect: "bbr for cubic: 20 to 185 Mb/s at 0.1% loss and 20 ms; cubic for bbr: 15 to 43 Gb/s where bbr paces on loopback or a LAN", Source: "measured (causes, calibration; paced); RFC 9438",
			Risk: "bbr may take more than its share beside other connections; all new connections of the host change", Verify: "a new connection names it (TCP_CONGESTION)", Checklist: []string{"C-32", "S-10"},
			shows: congestionShown()},
		{ID: RouteCongestion, Scope: OfInterface, Role: Sender, Title: "congestion control of a route", Linux: "ip route ... congctl", Needs: needsNet,
			About:  "the same of connections by one route only, which stands for the interface; it counts before what the host and a program name",
			Effect: "as of congestion-control, for one destination", Source: "ip-route(8), congctl; measured (reference, lab)",
			Risk: "as of congestion-control; whoever writes the route anew (DHCP, a routing daemon) drops it", Verify: "a new connection names it (TCP_CONGESTION)", Checklist: []string{"C-32", "S-10"},
			shows: congestionShown()},
		{ID: SlowStartIdle, Scope: OfHost, Role: Sender, Title: "slow start after a pause", Linux: "net.ipv4.tcp_slow_start_after_idle", Needs: needsNet,
			About:  "1: a connection that was idle for a timeout begins anew with a small window",
			Effect: "0 saves the round trips of a slow start after each pause: 10 of them to 25 MB at MSS 1448, 200 ms at 20 ms RTT", Source: "RFC 2861; " + ipSysctl,
			Risk: "a burst after a pause, into a path that may have changed", Verify: "the window after a pause is as it was before (snd_cwnd)", Checklist: []string{"C-17"}},
		{ID: NoMetricsSave, Scope: OfHost, Role: Sender, Title: "no memory of earlier connections", Linux: "net.ipv4.tcp_no_metrics_save", Needs: needsNet,
			About:  "1: a new connection does not begin with the threshold that an earlier one to the same host ended with",
			Effect: "runs no longer depend on the one before: a cached threshold ends slow start too early", Source: ipSysctl + "; reference, methods (common mistakes)",
			Risk: "each connection learns the path anew", Verify: "`ip tcp_metrics` gets no new entries", Checklist: []string{"C-17"}},
	}
}
