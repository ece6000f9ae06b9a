//go:build faults && linux

package faults

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"thru/internal/capture/frame"
	"thru/internal/capture/pcapfile"
	"thru/internal/capture/trace"
	"thru/internal/measure"
	"thru/lab"
)

var captures = flag.String("dir", "", "folder of captures that TestAgainstTshark reads, with those below it")

// TestAgainstTshark compares counts from captures with tshark's, and prints where they differ. Fields of
// packets must be equal; the classification of packets may differ (docs/capture.md says why).
func TestAgainstTshark(t *testing.T) {
	if *captures == "" {
		t.Skip("needs -dir FOLDER with captures")
	}
	lab.Require(t, lab.Program("tshark"))
	all := sums{}
	err := filepath.WalkDir(*captures, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && !strings.HasSuffix(path, ".json") {
			t.Run(e.Name(), func(t *testing.T) { against(t, path, all) })
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\n%-22s %10s %10s %12s %12s\n", "", "ways", "equal", "tshark", "thru")
	for _, what := range slices.Sorted(maps.Keys(all)) {
		x := all[what]
		fmt.Printf("%-22s %10d %10d %12d %12d\n", what, x.directions, x.equal, x.theirs, x.ours)
	}
}

// counts are figures of one direction of a connection by name. A name that begins with "=" is of fields of
// the packets.
type counts map[string]int64

// sums are totals of the comparison, by name.
type sums map[string]*struct{ directions, equal, theirs, ours int64 }

// marks maps tshark's analysis flags to the name of the count.
var marks = map[string]string{
	"tcp.analysis.retransmission": "sent again", "tcp.analysis.fast_retransmission": "sent again", "tcp.analysis.spurious_retransmission": "sent again",
	"tcp.analysis.out_of_order": "out of order", "tcp.analysis.lost_segment": "gaps", "tcp.analysis.ack_lost_segment": "=acknowledges unseen",
	"tcp.analysis.duplicate_ack": "duplicate acks", "tcp.analysis.zero_window": "zero windows", "tcp.analysis.zero_window_probe": "zero window probes",
	"tcp.analysis.window_full": "window filled", "tcp.analysis.keep_alive": "keep-alives",
}

// against compares one file.
func against(t *testing.T, path string, all sums) {
	theirs, starts, err := byTshark(path)
	if err != nil || len(starts) == 0 {
		t.Skipf("tshark finds no TCP: %v", err)
	}
	c, err := byTrace(path)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if c.Known != len(starts) {
		fmt.Printf("%s: %d connections, tshark has %d\n", filepath.Base(path), c.Known, len(starts))
	}
	if c.Twice.N > 0 {
		fmt.Printf("%s: not compared: %d packets were captured twice, which tshark counts as sent again\n", filepath.Base(path), c.Twice.N)
		return
	}
	for _, conn := range c.Conns {
		stream, known := starts[conn.FirstPacket]
		if !known {
			fmt.Printf("%s: tshark has no connection that begins with packet %d\n", filepath.Base(path), conn.FirstPacket)
			continue
		}
		for _, side := range []struct {
			from, to string
			ours     counts
		}{{conn.From, conn.To, ours(conn.Data, opening(conn, true), conn.OpenNs)}, {conn.To, conn.From, ours(conn.Acks, opening(conn, false), conn.OpenNs)}} {
			there, back := theirs[key(stream, side.from)], theirs[key(stream, side.to)]
			if there == nil {
				there = counts{}
			}
			there["acknowledged unseen"] = back["=acknowledges unseen"] // tshark flags the acknowledgement, thru the missing data
			if bad := compare(there, side.ours, all); len(bad) > 0 {
				fmt.Printf("%s %d from %s: %s\n", filepath.Base(path), conn.Index, side.from, strings.Join(bad, "; "))
			}
		}
	}
}

// compare counts the figures that are equal, and returns the others.
func compare(theirs, ours counts, all sums) (bad []string) {
	for _, what := range slices.Sorted(maps.Keys(ours)) {
		x := all[what]
		if x == nil {
			x = &struct{ directions, equal, theirs, ours int64 }{}
			all[what] = x
		}
		x.directions++
		x.theirs += theirs[what]
		x.ours += ours[what]
		if theirs[what] == ours[what] {
			x.equal++
			continue
		}
		bad = append(bad, fmt.Sprintf("%s %d, tshark %d", what, ours[what], theirs[what]))
	}
	return bad
}

// ours returns the counts of one direction; o is the SYN or SYN-ACK of its sender.
func ours(w measure.Direction, o *measure.Opening, openNs *int64) counts {
	c := counts{
		"=packets": w.Packets, "=payload": w.Payload, "sent again": w.Again.N, "out of order": w.Late.N, "again or late": w.Again.N + w.Late.N,
		"gaps": w.Gaps.N, "acknowledged unseen": w.Unseen.N, "duplicate acks": w.DupAcks.N, "zero windows": w.Zero.N,
		"zero window probes": w.Probes.N, "window filled": w.Filled.N, "keep-alives": w.KeepAlive.N,
	}
	if o != nil {
		c["sent again"] += o.Again.N // thru counts these separately
		c["again or late"] += o.Again.N
		c["=mss"], c["=window scale"], c["=sack permitted"], c["=timestamps"] = number(o.MSS, 0), number(o.WindowScale, -1), one(o.SACK), one(o.Timestamps)
	}
	if openNs != nil {
		c["=handshake us"] = *openNs / 1000
	}
	return c
}

// opening is the SYN or SYN-ACK of one side.
func opening(c measure.Connection, from bool) *measure.Opening {
	if c.FromOpened == nil {
		return nil
	}
	if *c.FromOpened == from {
		return c.SYN
	}
	return c.SYNACK
}

// one is 1 for true.
func one(is *bool) int64 {
	if is != nil && *is {
		return 1
	}
	return 0
}

// number is the value of an option, or the given value where it is absent.
func number(n *int, absent int64) int64 {
	if n == nil {
		return absent
	}
	return int64(*n)
}

// byTrace reads a capture as thru does.
func byTrace(path string) (*measure.Capture, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r, err := pcapfile.NewReader(file)
	if err != nil {
		return nil, err
	}
	b := trace.New(trace.Options{})
	for {
		record, err := r.Next()
		if err != nil {
			return b.Capture(), nil // at the end, or where the file is damaged: what came before counts
		}
		p := frame.Packet{Number: record.Number, TimeNs: record.TimeNs, Interface: record.Interface, WireBytes: record.WireBytes}
		b.Add(&p, frame.Decode(r.Interfaces()[record.Interface].Link, record.Data, &p))
	}
}

// key names one direction of a connection.
func key(stream int, from string) string { return fmt.Sprint(stream, " ", from) }

// byTshark counts by connection and sender, and returns the packet that each connection begins with: tshark
// also numbers connections that only an ICMP error quotes.
func byTshark(path string) (found map[string]counts, starts map[int64]int, err error) {
	fields := append([]string{"tcp.stream", "frame.number", "ip.src", "ipv6.src", "tcp.srcport", "tcp.len", "tcp.flags.syn", "tcp.options.mss_val",
		"tcp.options.wscale.shift", "tcp.options.sack_perm", "tcp.options.timestamp.tsval", "tcp.analysis.initial_rtt"}, slices.Sorted(maps.Keys(marks))...)
	args := flags("-n -r %s -Y tcp&&!icmp&&!icmpv6 -o tcp.desegment_tcp_streams:false -T fields -E occurrence=l", path)
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	cmd := exec.Command("tshark", args...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, nil, err
	}
	found, starts = map[string]counts{}, map[int64]int{}
	begun := map[int]bool{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		values := map[string]string{}
		for i, v := range strings.Split(lines.Text(), "\t") {
			values[fields[i]] = v
		}
		stream, _ := strconv.Atoi(values["tcp.stream"])
		if frame, _ := strconv.ParseInt(values["frame.number"], 10, 64); !begun[stream] {
			begun[stream], starts[frame] = true, stream
		}
		k := key(stream, net.JoinHostPort(cmp.Or(values["ipv6.src"], values["ip.src"]), values["tcp.srcport"]))
		if found[k] == nil {
			found[k] = counts{}
		}
		found[k].add(values)
	}
	_, _ = io.Copy(io.Discard, out)
	return found, starts, cmd.Wait()
}

// add counts one packet of tshark's output.
func (c counts) add(values map[string]string) {
	has := func(field string) *bool { is := values[field] != ""; return &is }
	value := func(field string) int64 {
		n, _ := strconv.ParseInt(values[field], 0, 64) // absent
		return n
	}
	c["=packets"]++
	c["=payload"] += value("tcp.len")
	marked := map[string]bool{}
	for field, name := range marks {
		if *has(field) && !marked[name] {
			marked[name] = true
			c[name]++
		}
	}
	if marked["sent again"] || marked["out of order"] {
		c["again or late"]++
	}
	if syn := values["tcp.flags.syn"]; (syn == "1" || syn == "True") && c["=opened"] == 0 {
		c["=opened"] = 1
		c["=mss"], c["=window scale"] = value("tcp.options.mss_val"), -1
		if *has("tcp.options.wscale.shift") {
			c["=window scale"] = value("tcp.options.wscale.shift")
		}
		c["=sack permitted"], c["=timestamps"] = one(has("tcp.options.sack_perm")), one(has("tcp.options.timestamp.tsval"))
	}
	if s, err := strconv.ParseFloat(values["tcp.analysis.initial_rtt"], 64); err == nil {
		c["=handshake us"] = int64(s*1e6 + 0.0005)
	}
}
