//go:build long

package lab_test

import (
	"testing"

	"thru/internal/measure"
)

// TestTransferBinds limits each layer on purpose, with real servers and an agent at their host: thru must
// name that layer and no other. Cases that take all CPUs run alone.
func TestTransferBinds(t *testing.T) {
	const (
		network     = measure.LayerNetwork
		here, there = measure.LayerDiskHere, measure.LayerDiskFar
		protocol    = measure.LayerMemory
		down, up    = false, true
	)
	slow, gigabit := capped(100e6), capped(1e9)
	full := []string{"network", "shaper", "link-rate"}
	disk := []string{"disk"}
	server := []string{"app-limited", "slow-reader", "sender-cpu", "receiver-cpu", "cpu-quota"}
	var rows []binding
	add := func(name string, b binding, directions ...bool) {
		for _, direction := range directions {
			b.name, b.upload = name, direction
			rows = append(rows, b)
		}
	}
	for _, p := range []string{"http", "sftp", "smb", "rsync"} {
		add("the link", binding{path: slow, protocol: p, size: 40, layer: network, causes: full}, down, up)
	}
	for _, p := range []string{"http", "ftp"} {
		add("the disk here", binding{path: gigabit, protocol: p, size: 40, slow: slowHere, layer: here, causes: disk}, down, up)
	}
	for _, p := range []string{"http", "sftp"} {
		add("the disk there", binding{path: gigabit, protocol: p, size: 40, slow: slowThere, layer: there, causes: disk}, down)
	}
	add("the disk there", binding{path: gigabit, protocol: "nfs", size: 40, slow: slowThere, layer: there, causes: disk}, down, up)
	add("the disk there", binding{path: gigabit, protocol: "smb", size: 40, slow: slowThere, more: "sync always = yes", layer: there, causes: disk}, up)

	add("the server's limit", binding{path: slow, protocol: "http", size: 10, more: "limit_rate 3m;", layer: protocol, causes: server}, down)
	add("the server's limit", binding{path: slow, protocol: "ftp", size: 10, more: "anon_max_rate=3000000", layer: protocol, causes: server}, down, up)
	add("the server's limit, far away", binding{path: far, protocol: "ftp", size: 10, more: "anon_max_rate=3000000", layer: protocol, causes: server}, down)
	add("the server's CPU", binding{path: gigabit, protocol: "sftp", size: 40, quota: 5_000, layer: protocol, causes: server}, down, up)
	add("the server's CPU", binding{path: gigabit, protocol: "smb", size: 40, quota: 5_000, layer: protocol, causes: server}, down, up)

	for _, p := range []string{"http", "ftp"} {
		add("a buffer here", binding{path: far, protocol: p, size: 20, flags: "--buffer 64K", layer: protocol, causes: []string{"receive-window"}}, down)
		add("a buffer here", binding{path: far, protocol: p, size: 20, flags: "--buffer 64K", layer: protocol, causes: []string{"send-buffer"}}, up)
	}
	add("a buffer there", binding{path: far, protocol: "http", size: 20, more: "rcvbuf=64k", layer: protocol, causes: []string{"receive-window"}}, up)
	add("a buffer there", binding{path: far, protocol: "http", size: 20, more: "sndbuf=64k", layer: protocol, causes: []string{"app-limited", "send-buffer"}}, down)
	add("a buffer there", binding{path: far, protocol: "smb", size: 20, more: "socket options = SO_RCVBUF=65536 SO_SNDBUF=65536", layer: protocol, causes: []string{"receive-window"}}, up)
	add("round trips", binding{path: far, protocol: "sftp", size: 20, flags: "--block 2K", layer: protocol, causes: []string{"round-trips"}}, down, up)
	add("round trips", binding{path: far, protocol: "smb", size: 20, flags: "--block 4K", layer: protocol, causes: []string{"round-trips"}}, down, up)
	add("round trips", binding{path: far, protocol: "nfs", size: 20, flags: "--block 4K", layer: protocol, causes: []string{"round-trips"}}, down, up)
	add("round trips", binding{path: far, protocol: "nfs4", size: 20, flags: "--block 4K", layer: protocol, causes: []string{"round-trips"}}, down, up)

	add("nothing", binding{path: far, protocol: "http", size: 100, layer: network, causes: full}, down, up)
	add("nothing", binding{path: far, protocol: "smb", size: 100, layer: network, causes: full}, down)
	healthy := []string{"client", "cipher-cpu", "slow-reader", "receiver-cpu", "sender-cpu", "network", "single-flow"}
	add("nothing", binding{path: capped(0), protocol: "http", size: 2000, causes: healthy, alone: true}, down, up)
	healthy = append(healthy, "app-limited") // the server's encryption takes a CPU too
	add("nothing", binding{path: capped(0), protocol: "sftp", size: 700, causes: healthy, alone: true}, down, up)
	add("four clients", binding{path: slow, protocol: "http", size: 10, flags: "--many 4", layer: network, causes: full}, down, up)
	add("four clients of a slow server", binding{path: slow, protocol: "http", size: 5, more: "limit_rate 1m;", flags: "--many 4", layer: protocol, causes: server}, down)
	for _, b := range rows {
		t.Run(b.title(), func(t *testing.T) {
			if !b.alone {
				t.Parallel()
			}
			b.check(t)
		})
	}
}
