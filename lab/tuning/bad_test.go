package tuning

import (
	"fmt"
	"strings"

	"thru/lab"
	"thru/lab/wire"
)

// Kernel parameters that are set badly.
const (
	rmem = "net.ipv4.tcp_rmem"
	wmem = "net.ipv4.tcp_wmem"
)

// Bad settings, and what repairs them.
var (
	smallReceive = Bad{Name: "small-receive", About: "the receiver may buffer 128 KB", Cures: []string{"tcp-rmem@peer"},
		Spoil: func(s *Scene) { s.B.Sysctl(rmem, "4096 65536 131072") }}
	smallReceiveBack = Bad{Name: "small-receive-back", About: "the client may buffer 256 KB of what it gets", Cures: []string{"tcp-rmem@local"},
		Spoil: func(s *Scene) { s.A.Sysctl(rmem, "4096 65536 262144") }}
	smallSend = Bad{Name: "small-send", About: "the sender may buffer 128 KB", Cures: []string{"tcp-wmem@local"},
		Spoil: func(s *Scene) { s.A.Sysctl(wmem, "4096 16384 131072") }}
	noScaling = Bad{Name: "no-scaling", About: "the receiver does not scale windows", Cures: []string{"window-scaling@peer"},
		Spoil: func(s *Scene) { s.B.Sysctl("net.ipv4.tcp_window_scaling", "0") }}
	noSACK = Bad{Name: "no-sack", About: "no SACK, which costs where segments are lost", Cures: []string{"sack@peer"},
		Spoil: func(s *Scene) { s.B.Sysctl("net.ipv4.tcp_sack", "0") }}
	wrongControl = Bad{Name: "wrong-control", About: "reno, where packets are lost", Cures: []string{"route-congestion@local", "congestion-control@local"},
		Spoil: func(s *Scene) { s.control(s.A, s.Data.A4.String(), "reno") }}
	brokenTSO = Bad{Name: "broken-tso", About: "segments that the sender's NIC should have cut are lost", Cures: segmentation(Local),
		Spoil: func(s *Scene) { s.change(wire.AtoB, func(w *wire.Impairment) { w.DropAbove = 1514 }) }}
	brokenTSONear = Bad{Name: "broken-tso", About: "the peer drops segments that were not cut", Cures: segmentation(Local),
		Spoil: func(s *Scene) { s.B.Nft(dropAbove(1514)) }}
	offloadsOff = Bad{Name: "offloads-off", About: "neither segmentation nor checksum offload at the sender", Cures: append(segmentation(Local), "tx-checksum@local", "scatter-gather@local"),
		Spoil: func(s *Scene) { s.A.Must("ethtool", words("-K %s tso off gso off tx off", lab.DataDev)...) }}
	oneQueue = Bad{Name: "one-queue", About: "one queue of two is used", Cures: []string{"channels@local", "channels@peer"},
		Spoil: func(s *Scene) {
			for _, h := range []*lab.Host{s.A, s.B} {
				h.Must("ethtool", words("-L %s rx 1 tx 1", lab.DataDev)...)
			}
		}}
	oneEnd = Bad{Name: "mtu-one-end", About: "jumbo frames at the sender alone", Cures: []string{"mtu@peer", "mtu@local"},
		Spoil: func(s *Scene) { s.B.IP("link", "set", lab.DataDev, "mtu", "1500") }}
)

// Faults that hide each other from the rules: small windows keep the packet losses of a broken offload rare,
// and the losses keep the windows from limiting.
var (
	tinySend = Bad{Name: "tiny-send", About: "the sender may buffer a page", Cures: []string{"tcp-wmem@local"},
		Spoil: func(s *Scene) { s.A.Sysctl(wmem, "4096 4096 4096") }}
	tinyReceive = Bad{Name: "tiny-receive", About: "the receiver may buffer 6 KB", Cures: []string{"tcp-rmem@peer"},
		Spoil: func(s *Scene) { s.B.Sysctl(rmem, "4096 4096 6144") }}
	littleReceive = Bad{Name: "little-receive", About: "the receiver may buffer 16 KB", Cures: []string{"tcp-rmem@peer"},
		Spoil: func(s *Scene) { s.B.Sysctl(rmem, "4096 8192 16384") }}
	jumboHere = Bad{Name: "jumbo-here", About: "the sender is set to jumbo frames, the peer is not", Cures: []string{"mtu@peer", "mtu@local"},
		Spoil: func(s *Scene) { s.A.IP("link", "set", lab.DataDev, "mtu", "9000") }}
	noSegmentation = Bad{Name: "no-segmentation", About: "the sender cuts segments one by one, and takes them so", Cures: append(segmentation(Local), "gro@local"),
		Spoil: func(s *Scene) { s.A.Must("ethtool", words("-K %s tso off gso off gro off", lab.DataDev)...) }}
	usualControl = Bad{Name: "usual-control", About: "cubic at both ends",
		Spoil: func(s *Scene) {
			s.control(s.A, s.Data.A4.String(), "cubic")
			s.control(s.B, s.Data.B4.String(), "cubic")
		}}
)

// Settings that differ from the usual advice and do no harm here: they must stay.
var (
	idleBuffers = Bad{Name: "idle-buffers", About: "small buffers of the direction that carries no data",
		Spoil: func(s *Scene) {
			s.A.Sysctl(rmem, "4096 65536 131072")
			s.B.Sysctl(wmem, "4096 16384 131072")
		}}
	shortQueue = Bad{Name: "short-queue", About: "a queue of 100 packets for acknowledgements",
		Spoil: func(s *Scene) { s.B.IP("link", "set", lab.DataDev, "txqueuelen", "100") }}
)

// segmentation returns the changes that move segmentation from the NIC to the kernel and back.
func segmentation(endPoint string) []string {
	return []string{"tso@" + endPoint, "gso@" + endPoint}
}

// dropAbove is a ruleset that drops received packets above the size of a frame (nft(8), netdev family): those
// that the sender has not cut.
func dropAbove(bytes int) string {
	return fmt.Sprintf(`table netdev broken {
	chain in {
		type filter hook ingress device "%s" priority 0
		meta length > %d drop
	}
}
`, lab.DataDev, bytes)
}

// words splits a formatted command line.
func words(format string, args ...any) []string { return strings.Fields(fmt.Sprintf(format, args...)) }
