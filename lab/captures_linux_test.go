package lab

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"thru/internal/capture/pcapfile"
	"thru/internal/capture/trace"
	"thru/internal/measure"
	"thru/lab/wire"
)

// captured is a path with traffic over it, whose captures the tests compare with tshark.
type captured struct {
	name     string
	path     WiredOptions
	run      func(t *testing.T, x *Wired)
	inOrder  bool // the path does not reorder
	lossless bool // the path loses nothing
	alone    bool // beside others thru counts a filled window that Wireshark does not
}

// iperfs runs iperf3 for a second, with more arguments.
func iperfs(args ...string) func(*testing.T, *Wired) {
	return func(t *testing.T, x *Wired) {
		x.goodput(t, args...)
	}
}

// slow limits a path to a rate that keeps captures small.
func slow(w wire.Impairment) wire.Impairment {
	w.Rate, w.Queue = 40e6, 256<<10
	w.Delay = 10 * time.Millisecond
	w.Seed = 7
	return w
}

// deep is slow with a queue that a second of traffic cannot fill, however fast the sender starts.
func deep(w wire.Impairment) wire.Impairment {
	w = slow(w)
	w.Queue = 8 << 20
	return w
}

// back is the opposite direction of such a path.
var back = wire.Impairment{Delay: 10 * time.Millisecond}

var captures = []captured{
	{name: "loss", path: WiredOptions{AtoB: slow(wire.Impairment{Loss: 0.01}), BtoA: back}, run: iperfs(), inOrder: true},
	{name: "loss without SACK", path: WiredOptions{AtoB: slow(wire.Impairment{Loss: 0.01, StripSACK: true}), BtoA: back}, run: iperfs(), inOrder: true},
	{name: "no window scaling", path: WiredOptions{AtoB: slow(wire.Impairment{StripWScale: true}), BtoA: back}, run: iperfs(), inOrder: true, lossless: true, alone: true},
	{name: "reordering", path: WiredOptions{AtoB: deep(wire.Impairment{Reorder: 0.03, ReorderDelay: 3 * time.Millisecond}), BtoA: back}, run: iperfs(), lossless: true},
	{name: "duplicates", path: WiredOptions{AtoB: deep(wire.Impairment{Duplicate: 0.02}), BtoA: back}, run: iperfs(), inOrder: true, lossless: true},
	{name: "broken segmentation offload", path: WiredOptions{AtoB: wire.Impairment{DropAbove: 1514, Delay: 5 * time.Millisecond}, BtoA: back}, run: iperfs(), inOrder: true},
	{name: "both ways", path: WiredOptions{AtoB: slow(wire.Impairment{Loss: 0.005}), BtoA: slow(wire.Impairment{Loss: 0.005})}, run: iperfs("--bidir"), inOrder: true},
	{name: "slow reader", path: WiredOptions{AtoB: wire.Impairment{Delay: 2 * time.Millisecond}, BtoA: wire.Impairment{Delay: 2 * time.Millisecond}}, run: slowReader, inOrder: true, lossless: true},
}

// slowReader sends data to a program that alternates between reading and sleeping.
func slowReader(t *testing.T, x *Wired) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	server := x.B.Command(ctx, "python3", "-c", `
import socket, time
s = socket.create_server(("", 5201))
c, _ = s.accept()
for i in range(4):
    time.sleep(0.7)
    n = 0
    while n < 300000:
        n += len(c.recv(65536))
while c.recv(65536): pass`)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	defer cancel()
	Eventually(t, 5*time.Second, "the reader listens", func() bool { return len(x.B.Sockets()) > 0 })
	x.A.Must("python3", "-c", `
import socket
s = socket.create_connection(("`+x.Data.B4.String()+`", 5201))
s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1<<20)
s.sendall(b"x" * 2000000)
s.shutdown(socket.SHUT_WR)
s.recv(1)`)
}

// capture runs tcpdump at a host until stop is called.
func capture(t *testing.T, h *Host, file string) (stop func()) {
	t.Helper()
	cmd := h.Command(context.Background(), "tcpdump", "-i", DataDev, "-s", "128", "-B", "8192", "-U", "-w", file, "tcp or icmp or icmp6")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	Eventually(t, 5*time.Second, "tcpdump captures", func() bool {
		f, err := os.Stat(file)
		return err == nil && f.Size() > 0
	})
	return func() {
		time.Sleep(300 * time.Millisecond) // packets in flight
		cmd.Process.Signal(syscall.SIGINT)
		if err := cmd.Wait(); err != nil {
			if _, ok := err.(*exec.ExitError); !ok {
				t.Error(err)
			}
		}
	}
}

// TestCaptures compares thru's reading of captures from both ends with Wireshark's, and with the impairments
// of the path.
func TestCaptures(t *testing.T) {
	for _, c := range captures {
		t.Run(c.name, func(t *testing.T) {
			if !c.alone {
				t.Parallel()
			}
			x := wired(t, c.path, "tcpdump", "tshark", "iperf3", "python3")
			dir := t.TempDir()
			files := []string{filepath.Join(dir, "a.pcap"), filepath.Join(dir, "b.pcap")}
			a, b := capture(t, x.A, files[0]), capture(t, x.B, files[1])
			c.run(t, x)
			a()
			b()
			for i, place := range []string{measure.AtSender, measure.AtReceiver} {
				got := traced(t, files[i])
				compareCounts(t, files[i], got)
				if got.Place != place && c.name != "both ways" {
					t.Errorf("%s: placed at %q: %s", files[i], got.Place, got.PlacedBy)
				}
				for _, conn := range got.Conns {
					c.holds(t, i == 0, &conn)
				}
			}
		})
	}
}

// holds compares the counts of a connection with the impairments of the path.
func (c *captured) holds(t *testing.T, atSender bool, m *measure.Connection) {
	t.Helper()
	if (c.inOrder || atSender && c.name != "both ways") && m.Data.Late.N > 0 {
		t.Errorf("%d packets out of order on a path that keeps the order", m.Data.Late.N)
	}
	if c.lossless && m.Data.Again.N > m.Data.Spurious.N {
		t.Errorf("%d packets sent again, %d of them for nothing, on a path that loses none", m.Data.Again.N, m.Data.Spurious.N)
	}
}

// traced reads a capture file as thru does.
func traced(t *testing.T, file string) *measure.Capture {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapfile.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	c, err := trace.Read(r, trace.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// marks are the analysis flags of Wireshark (tcp.analysis.*) that the tests compare.
var marks = []string{
	"retransmission", "out_of_order", "lost_segment", "ack_lost_segment", "duplicate_ack",
	"zero_window", "zero_window_probe", "keep_alive", "window_full",
}

// sharkKey identifies one flag of one direction of a connection.
type sharkKey struct {
	stream int
	from   string
	mark   string
}

// tshark counts the packets with each of Wireshark's analysis flags, without retransmitted SYNs.
func tshark(t *testing.T, file string) map[sharkKey]int64 {
	t.Helper()
	args := []string{"-r", file, "-Y", "tcp.analysis.flags && !(tcp.flags.syn == 1)", "-T", "fields", "-E", "separator=;"}
	for _, f := range []string{"tcp.stream", "ip.src", "ipv6.src", "tcp.srcport"} {
		args = append(args, "-e", f)
	}
	for _, m := range marks {
		args = append(args, "-e", "tcp.analysis."+m)
	}
	out, err := exec.Command("tshark", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[sharkKey]int64{}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), ";")
		stream, err := strconv.Atoi(f[0])
		if err != nil {
			t.Fatalf("tshark: %q: %v", line, err)
		}
		from := net.JoinHostPort(f[1]+f[2], f[3])
		for i, m := range marks {
			if f[4+i] != "" {
				counts[sharkKey{stream, from, m}]++
			}
		}
	}
	return counts
}

// compareCounts compares a capture with Wireshark's counts. docs/capture.md gives the reason for each
// difference: which data is retransmitted or reordered, and which packets without data probe a closed window.
func compareCounts(t *testing.T, file string, c *measure.Capture) {
	t.Helper()
	shark := tshark(t, file)
	for i := range c.Conns {
		m := &c.Conns[i]
		for _, direction := range []struct {
			from     string
			own, far *measure.Direction
		}{{m.From, &m.Data, &m.Acks}, {m.To, &m.Acks, &m.Data}} {
			of := func(mark string) int64 { return shark[sharkKey{m.Index, direction.from, mark}] }
			for _, x := range []struct {
				what        string
				ours, their int64
			}{
				{"sent again or out of order", direction.own.Again.N + direction.own.Late.N + twiceOf(c, i, direction.own), of("retransmission") + of("out_of_order")},
				{"gaps", direction.own.Gaps.N, of("lost_segment")},
				{"acknowledged unseen", direction.far.Unseen.N, of("ack_lost_segment")},
				{"duplicate acknowledgements", direction.own.DupAcks.N, of("duplicate_ack")},
				{"zero windows", direction.own.Zero.N, of("zero_window")},
				{"probes and keep-alives", direction.own.Probes.N + direction.own.KeepAlive.N, of("zero_window_probe") + of("keep_alive")},
				{"window filled", direction.own.Filled.N, of("window_full")},
			} {
				if x.ours != x.their {
					t.Errorf("%s: %s, %s: %d, Wireshark %d", filepath.Base(file), direction.from, x.what, x.ours, x.their)
				}
			}
		}
	}
}

// twiceOf counts the duplicated packets, which Wireshark takes for retransmissions. In these captures they
// carry the main connection's data.
func twiceOf(c *measure.Capture, conn int, w *measure.Direction) int64 {
	if conn == 0 && w == &c.Conns[0].Data {
		return c.Twice.N
	}
	return 0
}
