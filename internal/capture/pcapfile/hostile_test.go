package pcapfile

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestHostile verifies the errors for files of other formats, or with false
// values.
func TestHostile(t *testing.T) {
	good := little.join(little.section(), little.nic(1, 0), little.packet(0, uint64(atMicro/1000), 12, oneData)) // 92 bytes
	after := func(parts ...any) []byte { return little.join(append([]any{good}, parts...)...) }
	tests := []struct {
		name    string
		file    []byte
		packets int
		want    error
		says    string
	}{
		{"empty", nil, 0, ErrFormat, "empty"},
		{"one byte", []byte{0xd4}, 0, ErrTruncated, "at byte 0"},
		{"magic of pcap only", []byte("\xd4\xc3\xb2\xa1"), 0, ErrTruncated, "at byte 0"},
		{"magic of pcapng only", []byte("\x0a\x0d\x0d\x0a"), 0, ErrTruncated, "at byte 0"},
		{"text", []byte("Hello, World! This is no capture.\n"), 0, ErrFormat, `begins with "Hello, World! Th"`},
		{"web page", []byte("<!DOCTYPE html><html><body>Not found</body></html>"), 0, ErrFormat, "begins with"},
		{"zeros", make([]byte, 1000), 0, ErrFormat, "begins with"},
		{"snoop", []byte("snoop\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x04"), 0, ErrFormat, "snoop"},
		{"lz4", []byte("\x04\x22\x4d\x18 and so on and so on"), 0, ErrFormat, "lz4"},
		{"gzip of nothing", []byte("\x1f\x8b and what is no gzip"), 0, nil, "unpacking"},
		{"version of pcap", little.pcapOf(microMagic, 99, 1), 0, ErrDamaged, "version 99.1"},
		{"packet of 4 GiB", little.pcapOf(microMagic, 2, 4, little.old(0, 0, 12, 12, oneData), little.old(0, 0, 1<<32-1, 1<<32-1, oneData)), 1, ErrDamaged, "after packet 1, at byte 52"},
		{"packet of 16 MiB, cut", little.pcapOf(microMagic, 2, 4, little.old(0, 0, 16<<20, 16<<20, oneData)), 0, ErrTruncated, "at byte 24"},
		{"zeros behind a packet", little.pcapOf(microMagic, 2, 4, little.old(0, 0, 12, 12, oneData), make([]byte, 1000)), 1, ErrDamaged, "zeros where a packet begins after packet 1"},
		{"more captured than there was", little.pcapOf(microMagic, 2, 4, little.old(0, 0, 1<<20, 60, oneData)), 0, ErrDamaged, "1048576 bytes captured of a packet of 60"},
		{"block of length 0", after(uint32(6), uint32(0), uint32(0)), 1, ErrDamaged, "after packet 1, at byte 92"},
		{"block of length 13", after(uint32(6), uint32(13), "abcde", uint32(13)), 1, ErrDamaged, "length 13"},
		{"block of 4 GiB", after(uint32(6), uint32(1<<32-4), "abcd"), 1, ErrDamaged, "length 4294967292"},
		{"block of 4 GiB of a kind that is not known", after(uint32(77), uint32(1<<32-4), "abcd"), 1, ErrTruncated, "cut after packet 1"},
		{"block with another length at its end", after(uint32(77), uint32(16), "abcd", uint32(20)), 1, ErrDamaged, "length 16 at its begin and 20"},
		{"packet before its interface", little.join(little.section(), little.packet(0, 0, 12, oneData)), 0, ErrDamaged, "interface 0 of 0"},
		{"simple packet before its interface", little.join(little.section(), little.block(simpleBlock, uint32(4), "abcd")), 0, ErrDamaged, "simple packet block"},
		{"statistics before their interface", little.join(little.section(), little.block(statisticsBlock, uint32(0), uint64(0))), 0, ErrDamaged, "statistics"},
		{"interface out of range", after(little.packet(1<<31, 0, 12, oneData)), 1, ErrDamaged, "interface 2147483648 of 1"},
		{"interface of the section before", after(little.section(), little.packet(0, 0, 12, oneData)), 1, ErrDamaged, "interface 0 of 0"},
		{"data beyond the block", after(little.block(packetBlock, uint32(0), uint64(0), uint32(13), uint32(13), oneData)), 1, ErrDamaged, "13 captured bytes in a block that holds 12"},
		{"short packet block", after(little.block(packetBlock, uint32(0), uint64(0))), 1, ErrDamaged, "packet block of 12 bytes"},
		{"short obsolete block", after(little.block(obsoleteBlock, uint32(0), uint64(0))), 1, ErrDamaged, "packet block of 12 bytes"},
		{"short interface block", after(little.block(interfaceBlock, uint32(0))), 1, ErrDamaged, "interface block of 4 bytes"},
		{"short section", after(little.block(sectionBlock, uint32(orderMagic))), 1, ErrDamaged, "section header of 4 bytes"},
		{"section of no byte order", after(little.block(sectionBlock, uint32(0x1a1a1a1a), uint64(0), uint32(0))), 1, ErrDamaged, "no byte order"},
		{"version of pcapng", after(little.block(sectionBlock, uint32(orderMagic), uint16(2), uint16(0), uint64(0))), 1, ErrDamaged, "version 2"},
		{"a million interfaces", after(slices.Repeat(little.nic(1, 0, little.option(2, strings.Repeat("n", 60))), 1_000_000)), 1, nil, ""},
		{"a packet of the last of a million interfaces", after(little.join(slices.Concat(slices.Repeat(little.nic(1, 0), 1_000_000)), little.packet(9999, 1, 12, oneData), little.packet(999_999, 1, 12, oneData))), 2, ErrLimit, "an interface after the first 16384"},
		{"a packet of more than a million interfaces", after(little.join(slices.Concat(slices.Repeat(little.nic(1, 0), 1_000_000)), little.packet(1_000_001, 1, 12, oneData))), 1, ErrDamaged, "of interface 1000001 of 1000001"},
		{"a section behind a million interfaces", after(little.join(slices.Concat(slices.Repeat(little.nic(1, 0), 1_000_000)), little.section(), little.nic(1, 0), little.block(simpleBlock, uint32(12), oneData))), 1, ErrLimit, "an interface after"},
		{"options without end", after(little.nic(1, 0, slices.Repeat(little.option(2, ""), 50_000))), 1, nil, ""},
		{"option beyond the block", after(little.nic(1, 0, little.join(uint16(2), uint16(60_000), "name"))), 1, nil, ""},
		{"times of no unit", after(little.nic(1, 0, little.option(9, "\x7f")), little.packet(1, 1<<63, 12, oneData)), 2, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var before, then runtime.MemStats
			runtime.ReadMemStats(&before)
			got, _, err := all(bytes.NewReader(tt.file))
			runtime.ReadMemStats(&then)
			if len(got) != tt.packets {
				t.Errorf("%d packets, want %d", len(got), tt.packets)
			}
			if used := then.TotalAlloc - before.TotalAlloc; used > 16<<20 {
				t.Errorf("%d bytes allocated for a file of %d", used, len(tt.file))
			}
			switch {
			case tt.says == "" && err != nil:
				t.Error(err)
			case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says) || tt.want != nil && !errors.Is(err, tt.want)):
				t.Errorf("error %v, want %q", err, tt.says)
			}
		})
	}
}

// FuzzRead verifies for any bytes: no panic, packets numbered one by one with
// existing interfaces, limited data, and an error that stays.
func FuzzRead(f *testing.F) {
	f.Add(twoOld(little, microMagic, 2, 4, 1))
	f.Add(twoOld(big, nanoMagic, 2, 3, 1))
	f.Add(little.pcapOf(extraMagic, 2, 4, little.old(1, 2, 4, 4, "12345678abcd")))
	f.Add(little.join(little.section(), little.nic(1, 60, little.option(2, "eth0"), little.option(9, "\x94"), little.option(14, "\xff\xff\xff\xff\xff\xff\xff\xff")),
		little.packet(0, 1<<60, 60, oneData), little.block(simpleBlock, uint32(4), "abcd"), little.block(statisticsBlock, uint32(0), uint64(0), little.option(5, "12345678"))))
	f.Add(big.join(big.section(), big.nic(113, 0), big.block(obsoleteBlock, uint16(0), uint16(3), uint64(1), uint32(4), uint32(4), "abcd"), little.section(), little.nic(1, 0), little.packet(0, 3, 4, "abcd")))
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x01\x00\x00\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x28\xb5\x2f\xfd\x04\x00\x09\x00\x00abc"))
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := NewReader(bytes.NewReader(file))
		if err != nil {
			return
		}
		for number := int64(1); ; number++ {
			record, err := r.Next()
			if err != nil {
				if _, again := r.Next(); again != err {
					t.Fatalf("%v, then %v", err, again)
				}
				return
			}
			if record.Number != number || record.Interface < 0 || record.Interface >= len(r.Interfaces()) ||
				len(record.Data) > mostData || record.WireBytes < len(record.Data) || record.WireBytes > mostWire {
				t.Fatalf("record %d: %+v of %d bytes", number, record, len(record.Data))
			}
		}
	})
}
