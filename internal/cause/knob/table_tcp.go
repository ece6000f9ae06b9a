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
			About:  "minimum, default and maximum receive buffer of a connection; the window can grow to about half of the maximum",
			Effect: "a connection carries at most window x 8 / RTT: 3 MiB at 20 ms are 1.26 Gb/s, 25 MB are 10 Gb/s; 3.74 to 18.3 Gb/s with 4 MiB if the buffer was the limit", Source: "RFC 6349, 3.3.1; checklist S-09; " + ipSysctl,
			Risk: "each connection may take that much memory (tcp_mem limits the total)", Verify: "the window that the receiver advertises (snd_wnd of TCP_INFO at the sender) grows beyond the earlier one", Checklist: []string{"C-14", "C-15", "C-18", "C-32", "S-09", "B-17", "B-19"},
			shows: recvWindowShown()},
		{ID: TCPWmem, Scope: OfHost, Role: Sender, Title: "send buffer of TCP", Linux: "net.ipv4.tcp_wmem", Needs: needsNet,
			About:  "minimum, default and maximum send buffer of a connection, which holds unacknowledged data",
			Effect: "at most buffer x 8 / RTT: 64 KiB at 20 ms carried 44 of 189 Mb/s", Source: "RFC 6349, 3.3.1; measured (causes, calibration)",
			Risk: "each connection may take that much memory; a longer queue in the host if the path is slow", Verify: "bytes in flight (unacknowledged, TCP_INFO) grow beyond the earlier buffer, and send() waits less", Checklist: []string{"C-14", "C-18", "C-32", "S-09", "B-19"},
			shows: sendBufferShown()},
		{ID: RmemMax, Scope: OfHost, Role: Receiver, Title: "limit of an explicit receive buffer", Linux: "net.core.rmem_max", Needs: needsHost,
			About:  "the largest buffer that a program may request with SO_RCVBUF (-w); without -w it does not affect TCP",
			Effect: "-w is granted in full: for example 800 KiB instead of 208 KiB, the default limit", Source: "socket(7), SO_RCVBUF; checklist C-39",
			Risk: "a program may take that much memory per socket", Verify: "the buffer that the kernel grants (SO_RCVBUF read back) is twice the requested one", Checklist: []string{"C-18", "C-32", "C-39", "B-17"},
			shows: recvWindowShown()},
		{ID: WmemMax, Scope: OfHost, Role: Sender, Title: "limit of an explicit send buffer", Linux: "net.core.wmem_max", Needs: needsHost,
			About:  "the largest buffer that a program may request with SO_SNDBUF (-w); without -w it does not affect TCP",
			Effect: "-w is granted in full: for example 800 KiB instead of 208 KiB, the default limit", Source: "socket(7), SO_SNDBUF; checklist C-39",
			Risk: "a program may take that much memory per socket", Verify: "the buffer that the kernel grants (SO_SNDBUF read back) is twice the requested one", Checklist: []string{"C-18", "C-32", "C-39", "B-17"},
			shows: sendBufferShown()},
		{ID: WindowScaling, Scope: OfHost, Title: "window scaling", Linux: "net.ipv4.tcp_window_scaling", Needs: needsNet,
			About:  "offers windows above 64 KiB in the SYN; both ends must",
			Effect: "without it at most 65535 x 8 / RTT: 26 Mb/s at 20 ms", Source: "RFC 7323, 2",
			Risk: "a middlebox that strips the option may break connections", Verify: "the SYN carries the option, and TCP_INFO has a scale (tcpi_options)", Checklist: []string{"C-16", "C-32"},
			shows: optionShown("window scaling", func(t *measure.TCPInfo) *bool { return t.WScaleOK })},
		{ID: SACK, Scope: OfHost, Title: "selective acknowledgments", Linux: "net.ipv4.tcp_sack", Needs: needsNet,
			About:  "the receiver acknowledges data beyond a gap; both ends must offer it",
			Effect: "losses in one window are repaired in one round trip, instead of one round trip per loss", Source: "RFC 2018; RFC 6675",
			Risk: "none known with current kernels", Verify: "the SYN carries SACK-permitted (tcpi_options)", Checklist: []string{"C-16"},
			shows: optionShown("selective acknowledgements", func(t *measure.TCPInfo) *bool { return t.SACK })},
		{ID: Timestamps, Scope: OfHost, Title: "TCP timestamps", Linux: "net.ipv4.tcp_timestamps", Needs: needsNet,
			About:  "a time in each segment: every acknowledgement gives an RTT sample, and old segments of fast connections are detected",
			Effect: "better timeouts under loss, for 12 bytes per segment (0.8% at MTU 1500)", Source: "RFC 7323, 3",
			Risk: "12 bytes per segment", Verify: "the SYN carries the option (tcpi_options)", Checklist: []string{"C-16"},
			shows: optionShown("timestamps", func(t *measure.TCPInfo) *bool { return t.Timestamps })},
		{ID: MTUProbing, Scope: OfHost, Role: Sender, Title: "probing for the path's MTU", Linux: "net.ipv4.tcp_mtu_probing", Needs: needsNet,
			About:  "1: TCP tries smaller segments if full ones are not acknowledged; 2: it always starts small and tries larger ones",
			Effect: "from 0 to 34 Mb/s (1) or 72 Mb/s (2) behind an MTU black hole, on a path that carries 189 without it", Source: "RFC 4821; measured (causes, calibration)",
			Risk: "after other timeouts segments may stay smaller than necessary", Verify: "with a black hole TCPMTUPSuccess rises, and data passes", Checklist: []string{"C-21", "S-03"},
			shows: shown{"TcpExt.TCPMTUPSuccess", check.probing}},
		{ID: Congestion, Scope: OfHost, Role: Sender, Title: "congestion control", Linux: "net.ipv4.tcp_congestion_control", Needs: needsNet + "; some kernels refuse it in a namespace",
			About:  "the algorithm that sets the sending rate of new connections of this host",
			Effect: "bbr for cubic: 20 to 185 Mb/s at 0.1% loss and 20 ms; cubic for bbr: 15 to 43 Gb/s if bbr paces on loopback or a LAN", Source: "measured (causes, calibration, paced); RFC 9438",
			Risk: "bbr may take more than its share from other connections; all new connections of the host change", Verify: "a new connection reports it (TCP_CONGESTION)", Checklist: []string{"C-32", "S-10"},
			shows: congestionShown()},
		{ID: RouteCongestion, Scope: OfInterface, Role: Sender, Title: "congestion control of a route", Linux: "ip route ... congctl", Needs: needsNet,
			About:  "the congestion control of connections over one route, in place of the interface; it overrides the host's and a program's choice",
			Effect: "as for congestion-control, for one destination", Source: "ip-route(8), congctl; measured (reference, lab)",
			Risk: "as for congestion-control; a program that rewrites the route (DHCP, a routing daemon) removes it", Verify: "a new connection reports it (TCP_CONGESTION)", Checklist: []string{"C-32", "S-10"},
			shows: congestionShown()},
		{ID: SlowStartIdle, Scope: OfHost, Role: Sender, Title: "slow start after a pause", Linux: "net.ipv4.tcp_slow_start_after_idle", Needs: needsNet,
			About:  "1: a connection that was idle for a timeout restarts with a small window",
			Effect: "0 saves the round trips of a slow start after each pause: 10 round trips to 25 MB at MSS 1448, 200 ms at 20 ms RTT", Source: "RFC 2861; " + ipSysctl,
			Risk: "a burst after a pause, on a path that may have changed", Verify: "the window is the same after a pause as before (snd_cwnd)", Checklist: []string{"C-17"}},
		{ID: NoMetricsSave, Scope: OfHost, Role: Sender, Title: "no cached metrics of earlier connections", Linux: "net.ipv4.tcp_no_metrics_save", Needs: needsNet,
			About:  "1: a new connection does not start with the slow-start threshold of an earlier one to the same host",
			Effect: "a run no longer depends on the one before: a cached threshold ends slow start too early", Source: ipSysctl + "; reference, methods (common mistakes)",
			Risk: "each connection must learn the path again", Verify: "`ip tcp_metrics` gets no new entries", Checklist: []string{"C-17"}},
	}
}
