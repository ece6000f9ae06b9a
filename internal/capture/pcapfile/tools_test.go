package pcapfile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"thru/internal/capture/frame"
)

// tool returns the path of a program of Wireshark's. Its absence is a failure
// where THRU_REQUIRE_LAB requires it.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("THRU_REQUIRE_LAB") != "" {
		t.Fatal(name, "is required here:", err)
	}
	if err != nil {
		t.Skip("no", name, "on this host")
	}
	return path
}

// output runs a program and returns what it printed.
func output(t *testing.T, path string, args ...string) string {
	t.Helper()
	var failed bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", path, args, err, &failed)
	}
	return string(out)
}

// written returns a file of our writer with connections over IPv4 and IPv6,
// in a VLAN and in a tunnel, some packets cut.
func written(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "written.pcapng")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lost := int64(12)
	nics := []Interface{{Name: "eth0", Link: frame.Ethernet, Snap: 130, Dropped: &lost}}
	buffer := bufio.NewWriter(file)
	w, err := NewWriter(buffer, nics)
	for n := range 200 {
		data := segmentOf(n)
		r := Record{TimeNs: atNs/1000*1000 + int64(n)*1_001_000, WireBytes: len(data), Data: data[:min(len(data), 130)]}
		if err == nil {
			err = w.Write(r)
		}
	}
	if err = errors.Join(err, w.Close(nics), buffer.Flush()); err != nil {
		t.Fatal(err)
	}
	return path
}

// segmentOf returns the n-th frame: its contents follow from the bits of n.
func segmentOf(n int) []byte {
	options := [][]byte{
		nil,
		{1, 1, 8, 10, 0, 0, 0, byte(n), 0, 0, 1, 0},
		{2, 4, 5, 0xb4, 1, 3, 3, byte(n % 15), 4, 2, 8, 10, 0, 0, 2, byte(n), 0, 0, 0, 0, 0, 0, 0, 0},
	}[n%3]
	flags := []byte{0x10, 0x18, 0x02, 0x12, 0x11, 0x04, 0xc2}[n%7]
	tcp := binary.BigEndian.AppendUint16(nil, uint16(40000+n%5))
	tcp = binary.BigEndian.AppendUint16(tcp, 5201)
	tcp = binary.BigEndian.AppendUint32(tcp, uint32(n)*0x01020304)
	tcp = binary.BigEndian.AppendUint32(tcp, uint32(n)*0x04030201)
	tcp = append(tcp, byte(5+len(options)/4)<<4, flags, byte(n), 0xf0, 0, 0, 0, 0)
	tcp = append(append(tcp, options...), make([]byte, n*7)...)
	kind, ip := 0x0800, header4(6, tcp)
	if n&1 != 0 {
		kind, ip = 0x86dd, append(append([]byte{0x60, 0, 0, 0, byte(len(tcp) >> 8), byte(len(tcp)), 6, 60}, make([]byte, 32)...), tcp...)
	}
	if n&2 != 0 {
		kind, ip = 0x0800, header4(47, append([]byte{0x20, 0, byte(kind >> 8), byte(kind), 0, 0, 0, 9}, ip...))
	}
	frame := []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}
	if n&4 != 0 {
		frame = append(frame, 0x81, 0, 0, 5)
	}
	return append(append(frame, byte(kind>>8), byte(kind)), ip...)
}

// header4 is an IPv4 packet.
func header4(proto byte, payload []byte) []byte {
	n := 20 + len(payload)
	return append([]byte{0x45, 0, byte(n >> 8), byte(n), 0, 1, 0x40, 0, 64, proto, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2}, payload...)
}

// fields are the compared fields of a packet.
var fields = strings.Fields("frame.number frame.time_epoch frame.cap_len frame.len tcp.srcport tcp.dstport tcp.seq_raw tcp.ack_raw tcp.window_size_value tcp.len " +
	"tcp.options.mss_val tcp.options.wscale.shift tcp.options.timestamp.tsval")

// ofTshark returns the packets of a file by tshark.
func ofTshark(t *testing.T, file string, fields []string) string {
	t.Helper()
	args := []string{"-n", "-r", file, "-T", "fields", "-E", "occurrence=l", "-o", "tcp.analyze_sequence_numbers:FALSE", "-Y", "tcp"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	return output(t, tool(t, "tshark"), args...)
}

// ofOurs returns the first n fields of the packets by our reader.
func ofOurs(t *testing.T, file string, n int) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	records, r, err := all(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, record := range records {
		p := frame.Packet{WireBytes: record.WireBytes}
		if frame.Decode(r.Interfaces()[record.Interface].Link, record.Data, &p) != frame.IsTCP {
			continue
		}
		o := p.Options
		values := []string{
			fmt.Sprint(record.Number), fmt.Sprintf("%d.%09d", record.TimeNs/1e9, record.TimeNs%1e9), fmt.Sprint(len(record.Data)), fmt.Sprint(record.WireBytes),
			fmt.Sprint(p.Source.Port), fmt.Sprint(p.Target.Port), fmt.Sprint(p.Seq), fmt.Sprint(p.Ack), fmt.Sprint(p.Window), fmt.Sprint(p.Payload),
			where(o.HasMSS, uint32(o.MSS)), where(o.HasScale, uint32(o.Scale)), where(o.Timestamps, o.TSVal),
		}
		out.WriteString(strings.Join(values[:n], "\t") + "\n")
	}
	return out.String()
}

// where is a number where there is one.
func where(has bool, number uint32) string {
	if !has {
		return ""
	}
	return fmt.Sprint(number)
}

// TestTools writes a file, converts it to every other format by editcap, and
// compares what we read in each with tshark.
func TestTools(t *testing.T) {
	editcap, original := tool(t, "editcap"), written(t)
	dir := filepath.Dir(original)
	files := map[string]string{"pcapng of ours": original}
	for name, args := range map[string][]string{
		"pcapng":        {"-F", "pcapng"},
		"pcap":          {"-F", "pcap"},
		"nanoseconds":   {"-F", "nsecpcap"},
		"modified":      {"-F", "modpcap"},
		"snapped":       {"-F", "pcapng", "-s", "106"},
		"another link":  {"-F", "pcap", "-T", "rawip", "-C", "14"},
		"moved in time": {"-F", "pcapng", "-t", "-0.000001"},
	} {
		files[name] = filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		output(t, editcap, append(args, original, files[name])...)
	}
	for name, path := range files {
		t.Run(name, func(t *testing.T) {
			shown := fields
			if name == "snapped" { // tshark shows a part of an option, too
				shown = fields[:slices.Index(fields, "tcp.options.mss_val")]
			}
			ours, theirs := ofOurs(t, path, len(shown)), ofTshark(t, path, shown)
			if ours == "" || ours != theirs {
				t.Error(firstDifference(ours, theirs))
			}
		})
	}
}

// firstDifference shows the first line that differs.
func firstDifference(ours, theirs string) string {
	a, b := strings.Split(ours, "\n"), strings.Split(theirs, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d\nours:   %s\ntshark: %s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines of ours, %d of tshark's", len(a), len(b))
}

// TestCapinfos compares capinfos' facts about our writer's file.
func TestCapinfos(t *testing.T) {
	out := output(t, tool(t, "capinfos"), written(t))
	for _, want := range []string{"Wireshark/... - pcapng", "eth0", "nanoseconds (9)", "Number of packets:   200", "Number of stat entries = 1", "130 bytes"} {
		if !strings.Contains(out, want) {
			t.Errorf("capinfos does not say %q:\n%s", want, out)
		}
	}
}
