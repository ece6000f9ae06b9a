package host

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thru/internal/measure"
	"thru/internal/unit"
)

func TestParsePCIeSpeed(t *testing.T) {
	for s, want := range map[string]int{
		"2.5 GT/s PCIe": 1, "5 GT/s": 2, "5.0 GT/s PCIe\n": 2, "8 GT/s": 3, "8.0 GT/s PCIe": 3, "16.0 GT/s PCIe": 4, "32.0 GT/s PCIe": 5, "64.0 GT/s PCIe": 6,
		"Unknown": 0, "Unknown speed": 0, "": 0, "133 MHz PCI-X": 0, "NaN GT/s": 0, "128.0 GT/s PCIe": 0,
	} {
		if got, err := parsePCIeSpeed(s); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: generation %d, %v; want %d", s, got, err, want)
		}
	}
}

func TestParseCPUMask(t *testing.T) {
	for s, want := range map[string]string{"0": "", "00000000,00000000": "", "f": "0-3", "00000001,80000000": "31-32", "80000000,00000000": "63"} {
		if got, err := parseCPUMask(s); unit.List(got) != want || err != nil {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "-1", "x", "0x1", strings.Repeat("f", maxCPU)} {
		if got, err := parseCPUMask(s); err == nil {
			t.Errorf("%.10q: %v", s, got)
		}
	}
}

func TestParseBond(t *testing.T) {
	got, err := parseBond(`Ethernet Channel Bonding Driver: v3.7.1 (April 27, 2011)

Bonding Mode: fault-tolerance (active-backup)
Primary Slave: None
Currently Active Slave: eth1
MII Status: up

Slave Interface: eth0
MII Status: down
Speed: 1000 Mbps
Link Failure Count: 2

Slave Interface: eth1
MII Status: up
Speed: Unknown
Link Failure Count: x
`)
	want := measure.Bond{Mode: "active-backup", Active: "eth1", Members: []measure.BondMember{{Name: "eth0", SpeedBps: new(int64(1e9)), Failures: new(int64(2))}, {Name: "eth1", Up: true}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	root := "Bonding Mode: IEEE 802.3ad Dynamic link aggregation\nTransmit Hash Policy: layer3+4 (1)\nLACP rate: fast\nActive Aggregator Info:\n\tAggregator ID: 2\n\tNumber of ports: 1\n"
	if got, err := parseBond(root); got.Mode != "802.3ad" || got.Hash != "layer3+4" || got.LACP != "fast" || show(got.Aggregate) != 2 || err != nil {
		t.Errorf("as root sees it: %+v, %v", got, err)
	}
	if _, err := parseBond(""); err == nil {
		t.Error("an empty file is a bond")
	}
}
