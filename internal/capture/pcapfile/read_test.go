package pcapfile

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"thru/internal/capture/frame"
)

// The packets of the tests' files, at a time with all its digits.
const (
	second   = 1_700_000_000
	atNs     = int64(second)*1e9 + 123_456_789
	atMicro  = int64(second)*1e9 + 123_456_000
	oneData  = "one packet!!"
	twoData  = "two, snapped"
	twoBytes = 1514
)

// TestPcap reads pcap of each kind.
func TestPcap(t *testing.T) {
	tests := []struct {
		name string
		file []byte
		ns   int64
	}{
		{"little", twoOld(little, microMagic, 2, 4, 123_456), atMicro},
		{"big", twoOld(big, microMagic, 2, 4, 123_456), atMicro},
		{"little, nanoseconds", twoOld(little, nanoMagic, 2, 4, 123_456_789), atNs},
		{"big, nanoseconds", twoOld(big, nanoMagic, 2, 4, 123_456_789), atNs},
		{"lengths in the other order where it shows", little.pcapOf(microMagic, 2, 3,
			little.old(second, 123_456, 12, 12, oneData), little.old(second, 123_456, twoBytes, 12, twoData)), atMicro},
		{"lengths in the other order", big.pcapOf(microMagic, 2, 2,
			big.old(second, 123_456, 12, 12, oneData), big.old(second, 123_456, twoBytes, 12, twoData)), atMicro},
		{"modified", little.pcapOf(extraMagic, 2, 4,
			little.old(second, 123_456, 12, 12, "\x02\x00\x00\x00\x08\x00\x04\x00"+oneData),
			little.old(second, 123_456, 12, twoBytes, "\x02\x00\x00\x00\x08\x00\x04\x00"+twoData)), atMicro},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, r, err := all(iotest.HalfReader(bytes.NewReader(tt.file)))
			if err != nil {
				t.Fatal(err)
			}
			want(t, got, []Record{
				{Number: 1, TimeNs: tt.ns, WireBytes: 12, Data: []byte(oneData)},
				{Number: 2, TimeNs: tt.ns, WireBytes: twoBytes, Data: []byte(twoData)},
			})
			if nics := r.Interfaces(); len(nics) != 1 || nics[0] != (Interface{Link: frame.Ethernet, Snap: 100}) {
				t.Errorf("interfaces %+v", nics)
			}
		})
	}
}

// twoOld is a pcap file of two packets.
func twoOld(m maker, magic uint32, major, minor uint16, rest uint32) []byte {
	return m.pcapOf(magic, major, minor, m.old(second, rest, 12, 12, oneData), m.old(second, rest, 12, twoBytes, twoData))
}

// twoSections is a pcapng file of all kinds of packet blocks, in two byte orders.
func twoSections(m, n maker) []byte {
	comment := m.option(1, strings.Repeat("no comment, ", 100))
	return m.join(
		m.section(),
		m.nic(1, 100, m.option(2, "eth0"), m.option(3, "first"), m.option(9, "\x09")),
		m.nic(113, 0, comment, m.option(9, "\x06"), m.option(14, string(m.join(uint64(1_000))))),
		m.block(4, "names of hosts"),
		m.packet(0, uint64(atNs), 12, oneData),
		m.block(packetBlock, uint32(1), m.time(uint64(atMicro/1000-1e9)), uint32(12), uint32(twoBytes), twoData, comment),
		m.block(obsoleteBlock, uint16(0), uint16(3), m.time(uint64(atNs)), uint32(12), uint32(twoBytes), twoData),
		m.block(simpleBlock, uint32(12), oneData),
		m.block(statisticsBlock, uint32(0), uint64(0), m.option(4, "\x09\x00\x00\x00\x00\x00\x00\x00"), m.option(5, string(m.join(uint64(3)))), m.option(7, string(m.join(uint64(4)))), uint32(0)),
		n.section(),
		n.nic(101, 0),
		n.block(0x0bad, make([]byte, 3*bufferBytes)),
		n.packet(0, uint64(atMicro/1000), 12, oneData),
		n.block(simpleBlock, uint32(1<<20), strings.Repeat("large", 1<<20/5), "x"),
		n.packet(0, uint64(atMicro/1000), 12, oneData),
	)
}

// TestPcapng reads each kind of block, in sections of both byte orders.
func TestPcapng(t *testing.T) {
	for name, file := range map[string][]byte{
		"little, then big": twoSections(little, big),
		"big, then little": twoSections(big, little),
		"little":           twoSections(little, little),
	} {
		t.Run(name, func(t *testing.T) {
			got, r, err := all(iotest.HalfReader(bytes.NewReader(file)))
			if err != nil {
				t.Fatal(err)
			}
			want(t, got, []Record{
				{1, atNs, 0, 12, []byte(oneData)},
				{2, atMicro, 1, twoBytes, []byte(twoData)},
				{3, atNs, 0, twoBytes, []byte(twoData)},
				{4, atNs, 0, 12, []byte(oneData)}, // without a time of its own
				{5, atMicro, 2, 12, []byte(oneData)},
				{6, atMicro, 2, 1 << 20, []byte(strings.Repeat("large", 1<<20/5)[:mostData])},
				{7, atMicro, 2, 12, []byte(oneData)},
			})
			nics := r.Interfaces()
			if len(nics) != 3 || nics[0].Name != "eth0" || nics[0].Description != "first" || nics[0].Snap != 100 || nics[0].Dropped == nil || *nics[0].Dropped != 7 {
				t.Errorf("first interface: %+v", nics)
			}
			if nics[1] != (Interface{Link: frame.LinuxSLL}) || nics[2] != (Interface{Link: frame.Raw}) {
				t.Errorf("other interfaces: %+v", nics[1:])
			}
		})
	}
}

// TestPacked reads files compressed by gzip and zstd.
func TestPacked(t *testing.T) {
	plain := twoSections(little, big)
	var zipped, squeezed bytes.Buffer
	z := gzip.NewWriter(&zipped)
	s, err := zstd.NewWriter(&squeezed)
	for _, w := range []io.WriteCloser{z, s} {
		_, werr := w.Write(plain)
		err = errors.Join(err, werr, w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	expected, _, _ := all(bytes.NewReader(plain))
	for name, file := range map[string][]byte{"gzip": zipped.Bytes(), "zstd": squeezed.Bytes()} {
		t.Run(name, func(t *testing.T) {
			got, _, err := all(bytes.NewReader(file))
			if err != nil {
				t.Fatal(err)
			}
			want(t, got, expected)
			_, _, err = all(bytes.NewReader(file[:len(file)-7]))
			if !errors.Is(err, ErrTruncated) || !strings.Contains(err.Error(), "of the unpacked file") {
				t.Errorf("cut: %v", err)
			}
			if _, _, err = all(bytes.NewReader(file[:9])); err == nil {
				t.Error("no error for nine bytes of it")
			}
		})
	}
}

// TestEveryCut cuts files at each byte: the packets before are read, and the
// cut is reported unless it falls between two packets or blocks.
func TestEveryCut(t *testing.T) {
	small := little.join(little.section(), little.nic(1, 0), little.packet(0, 1, 12, oneData), little.packet(0, 2, 12, twoData))
	tests := []struct {
		name  string
		file  []byte
		least int   // bytes below which there is no reader at all
		ends  []int // bytes after which it may end
	}{
		{"pcap", twoOld(little, microMagic, 2, 4, 0), 24, []int{24, 24 + 28, 24 + 56}},
		{"pcapng", small, 4, []int{28, 48, 48 + 44, 48 + 88}},
	}
	for _, tt := range tests {
		for n := 1; n <= len(tt.file); n++ {
			whole, packets := false, 0
			for i, end := range tt.ends {
				whole = whole || end == n
				if n >= end {
					packets = i
				}
			}
			if tt.name == "pcapng" {
				packets = max(packets-1, 0)
			}
			got, _, err := all(bytes.NewReader(tt.file[:n]))
			switch {
			case whole && err != nil, !whole && !errors.Is(err, ErrTruncated), len(got) != packets:
				t.Errorf("%s, %d bytes: %d packets, want %d: %v", tt.name, n, len(got), packets, err)
			}
		}
	}
}

// TestReaderError verifies that the error of the underlying reader is passed
// on, and stays.
func TestReaderError(t *testing.T) {
	broken := errors.New("the disk is broken")
	file := twoOld(little, microMagic, 2, 4, 0)
	r, err := NewReader(io.MultiReader(bytes.NewReader(file[:60]), iotest.ErrReader(broken)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if _, err := r.Next(); !errors.Is(err, broken) || !strings.Contains(fmt.Sprint(err), "after packet 1, at byte 52") {
			t.Error(err)
		}
	}
	if _, err := NewReader(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Error(err)
	}
}
