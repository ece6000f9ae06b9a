package host

import (
	"math"
	"slices"
	"testing"

	"thru/internal/unit"
)

func FuzzStat(f *testing.F) {
	f.Add([]byte("cpu  1 2 3 4 5 6 7 8\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		cores, err := parseStat(string(b))
		if err == nil && len(cores) == 0 {
			t.Error("neither cores nor an error")
		}
		for _, c := range cores {
			if c.Core < 0 || c.System < 0 || c.IRQ < 0 || c.SoftIRQ < 0 || c.Steal < 0 {
				t.Errorf("negative: %+v", c)
			}
		}
	})
}

func FuzzSoftnet(f *testing.F) {
	f.Add([]byte("00002502 00000000 00000001 0 0 0 0 0 0 0 0 0 00000001 0 0\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		cores, err := parseSoftnet(string(b))
		if err == nil && len(cores) == 0 {
			t.Error("neither cores nor an error")
		}
		for _, c := range cores {
			if c.Core < 0 || max(c.Processed, c.Dropped, c.TimeSqueeze) > math.MaxUint32 {
				t.Errorf("beyond 32 bits: %+v", c)
			}
		}
	})
}

func FuzzProtocols(f *testing.F) {
	f.Add([]byte("Tcp: MaxConn InSegs\nTcp: -1 5\n"))
	f.Add([]byte("Ip6InReceives 5\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if all, err := parseProtocols(string(b)); err == nil && len(all) == 0 {
			t.Error("netstat: neither counters nor an error")
		}
		if all, err := parseSNMP6(string(b)); err == nil && len(all) == 0 {
			t.Error("snmp6: neither counters nor an error")
		}
	})
}

func FuzzNetDev(f *testing.F) {
	f.Add([]byte("head\n eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"), "eth0")
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		if n, err := parseNetDev(string(b), name); err == nil && n.Name != name {
			t.Errorf("asked for %q, got %q", name, n.Name)
		}
	})
}

func FuzzProcess(f *testing.F) {
	f.Add([]byte("1 (a b) c) S 1 1 1 0 -1 1 1 0 0 0 250 175 0 0 20\n"))
	f.Add([]byte("VmRSS: 5 kB\nvoluntary_ctxt_switches: 1\nnonvoluntary_ctxt_switches: 2\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, err := parseBorn(string(b)); err == nil && d < 0 {
			t.Errorf("began at %v", d)
		}
		if p, err := parseProcStat(string(b)); err == nil && (p.UserNs < 0 || p.SystemNs < 0) {
			t.Errorf("negative time: %+v", p)
		}
		if s, err := parseStatus(string(b)); err == nil && (s.resident < 0 || s.voluntary < 0 || s.involuntary < 0) {
			t.Errorf("negative count: %+v", s)
		}
	})
}

func FuzzFiles(f *testing.F) {
	f.Add([]byte("MemTotal: 5 kB\nMemAvailable: 4 kB\n"))
	f.Add([]byte("model name: x\nflags: hypervisor\n"))
	f.Add([]byte("PRETTY_NAME=\"x\"\n"))
	f.Add([]byte("0-3,6"))
	f.Add([]byte("DRIVER=vmxnet3\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := parseMeminfo(string(b)); err == nil && (m.Total < 0 || m.Available < 0) {
			t.Errorf("negative memory: %+v", m)
		}
		if c, err := parseCPUInfo(string(b)); err == nil && c.model == "" && c.guest == nil {
			t.Error("cpuinfo: neither a fact nor an error")
		}
		if s, err := parseOSRelease(string(b)); err == nil && s == "" {
			t.Error("os-release: neither a name nor an error")
		}
		if cpus, err := parseCPUList(string(b)); err == nil && (len(cpus) == 0 || !slices.IsSorted(cpus) || cpus[len(cpus)-1] > maxCPU) {
			t.Errorf("list of CPUs %d", cpus)
		} else if err == nil {
			if again, err := parseCPUList(unit.List(cpus)); err != nil || !slices.Equal(cpus, again) {
				t.Errorf("%d became %d, %v", cpus, again, err)
			}
		}
		uevent(string(b), "DRIVER")
		names := splitStrings(b)
		if all := driverCounters(names, make([]uint64, len(names))); len(all) > len(names) {
			t.Errorf("%d counters of %d names", len(all), len(names))
		}
	})
}

func FuzzRise(f *testing.F) {
	f.Add(uint64(math.MaxUint32), uint64(5))
	f.Add(uint64(math.MaxUint64), uint64(0))
	f.Fuzz(func(t *testing.T, before, after uint64) {
		var n notes
		d, ok := rise(&n, "x", before, after)
		fell := after < before
		if fell && (d >= 1<<31 || len(n) != 1) || !fell && (d != after-before || !ok || len(n) != 0) {
			t.Errorf("from %d to %d: %d, %v, %v", before, after, d, ok, n)
		}
	})
}

func FuzzInterrupts(f *testing.F) {
	f.Add([]byte("  CPU0 CPU1\n 38: 0 5 PCI-MSIX-0000:00:03.0 1-edge virtio2-input.0\nNMI: 1 2\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		table, err := parseInterrupts(string(b))
		for irq, i := range table.irqs {
			if err == nil && (irq < 0 || len(i.names) == 0 || len(i.counts) != len(table.cpus)) {
				t.Errorf("interrupt %d is %+v", irq, i)
			}
			ownName(i.names, owner("eth0", "virtio2"))
			table.countsByCPU(irq)
		}
		if n := len(table.countsByCore()); n > len(table.cpus) {
			t.Errorf("%d cores of %d columns", n, len(table.cpus))
		}
	})
}

func FuzzLink(f *testing.F) {
	for _, b := range recordedIn(f, "links") {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := parseLink(b)
		if err == nil && l.name == "" {
			t.Error("neither a name nor an error")
		}
		links := []link{l, {name: "below", index: l.lowerIndex, kind: "bond"}, {name: "above", index: l.masterIndex, kind: "bridge"}}
		resolve(links)
		if l.tunnel != nil && l.tunnel.Overhead < 0 {
			t.Errorf("tunnel %+v", l.tunnel)
		}
	})
}

func FuzzEthtool(f *testing.F) {
	for _, b := range recordedIn(f, "ethtool") {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := parseLinkSettings(b); err == nil && (s.speedBps < 0 || s.maxBps < 0 || s.peerBps < 0) {
			t.Errorf("settings %+v", s)
		}
		if r, err := parseRings(b); err == nil && min(r.RX, r.TX, r.RXMax, r.TXMax) < 0 {
			t.Errorf("rings %+v", r)
		}
		if c, err := parseChannels(b); err == nil && min(c.RX, c.TX, c.Combined, c.RXMax, c.TXMax, c.CombinedMax) < 0 {
			t.Errorf("channels %+v", c)
		}
		if c, err := parseCoalesce(b); err == nil && min(c.RXNs, c.TXNs) < 0 {
			t.Errorf("coalescing %+v", c)
		}
		if _, err := parsePause(b); err == nil && len(b) < 16 {
			t.Error("pause of too few bytes")
		}
		if r, err := parseRSS(b); err == nil {
			sum := 0
			for _, n := range r.Queues {
				sum += n
			}
			if sum > r.Table {
				t.Errorf("%d entries of %d", sum, r.Table)
			}
		}
		names := splitStrings(b)
		if all, err := parseFeatures(names, b); err == nil && len(all) > len(names) {
			t.Errorf("%d features of %d names", len(all), len(names))
		}
		if c, err := parseQstats(b); err == nil && len(c.Queue) < 4 {
			t.Errorf("queue %+v", c)
		}
	})
}

func FuzzInterfaceFiles(f *testing.F) {
	f.Add("Bonding Mode: load balancing (xor)\nSlave Interface: a\nSpeed: 5 Mbps\n")
	f.Add("00000001,0000000f")
	f.Add("16.0 GT/s PCIe")
	f.Add("[0]: rx_ucast_packets")
	f.Fuzz(func(t *testing.T, s string) {
		if b, err := parseBond(s); err == nil && (b.Mode == "" || b.Members == nil) {
			t.Errorf("bond %+v", b)
		}
		if cpus, err := parseCPUMask(s); err == nil && len(cpus) > maxCPU {
			t.Errorf("%d CPUs", len(cpus))
		}
		if gen, err := parsePCIeSpeed(s); err == nil && (gen < 1 || gen > 6) {
			t.Errorf("generation %d", gen)
		}
		for _, c := range queueCounters(map[string]uint64{s: 1}) {
			if len(c.Queue) < 4 || c.Packets != 1 {
				t.Errorf("%q gave %+v", s, c)
			}
		}
		driverErrors(map[string]uint64{s: 1})
	})
}
