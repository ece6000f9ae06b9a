package lab

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"thru/lab/wire"
)

// captured is one path, and traffic over it, whose packets are compared.
type captured struct {
	name string
	path WiredOptions
	run  func(t *testing.T, x *Wired)
}

// iperfs runs a second of iperf3 with more arguments.
func iperfs(args ...string) func(*testing.T, *Wired) {
	return func(t *testing.T, x *Wired) {
		x.goodput(t, args...)
	}
}

// slow limits a path to a rate at which captures stay small.
func slow(w wire.Way) wire.Way {
	w.Rate, w.Queue = 40e6, 256<<10
	w.Delay = 10 * time.Millisecond
	w.Seed = 7
	return w
}

var captures = []captured{
	{"clean", WiredOptions{AtoB: slow(wire.Way{}), BtoA: wire.Way{Delay: 10 * time.Millisecond}}, iperfs()},
	{"loss", WiredOptions{AtoB: slow(wire.Way{Loss: 0.01}), BtoA: wire.Way{Delay: 10 * time.Millisecond}}, iperfs()},
	{"burst-loss", WiredOptions{AtoB: slow(wire.Way{Loss: 0.03, LossBurst: 10}), BtoA: wire.Way{Delay: 10 * time.Millisecond}}, iperfs()},
	{"loss-single", WiredOptions{AtoB: slow(wire.Way{Loss: 0.01}), BtoA: wire.Way{Delay: 10 * time.Millisecond}, NoOffloads: true}, iperfs()},
	{"loss-v6", WiredOptions{AtoB: slow(wire.Way{Loss: 0.01}), BtoA: wire.Way{Delay: 10 * time.Millisecond}}, func(t *testing.T, x *Wired) {
		iperf3(t, x.Pair, "-c", x.Data.B6.String(), "-t", "1")
	}},
	{"loss-no-sack", WiredOptions{AtoB: slow(wire.Way{Loss: 0.01, StripSACK: true}), BtoA: wire.Way{Delay: 10 * time.Millisecond}}, iperfs()},
	{"loss-no-stamps", WiredOptions{AtoB: slow(wire.Way{Loss: 0.01, StripTimestamps: true}), BtoA: wire.Way{Delay: 10 * time.Millisecond}}, iperfs()},
	{"no-scale", WiredOptions{AtoB: slow(wire.Way{StripWScale: true}), BtoA: wire.Way{Delay: 10 * time.Millisecond}}, iperfs()},
	{"loss-acks", WiredOptions{AtoB: slow(wire.Way{}), BtoA: wire.Way{Loss: 0.05, Delay: 10 * time.Millisecond}}, iperfs()},
	{"reorder", WiredOptions{AtoB: slow(wire.Way{Reorder: 0.03, ReorderDelay: 3 * time.Millisecond}), BtoA: wire.Way{Delay: 10 * time.Millisecond}}, iperfs()},
	{"reorder-far", WiredOptions{AtoB: slow(wire.Way{Reorder: 0.02, ReorderDelay: 15 * time.Millisecond}), BtoA: wire.Way{Delay: 10 * time.Millisecond}}, iperfs()},
	{"reorder-loss", WiredOptions{AtoB: slow(wire.Way{Loss: 0.01, Reorder: 0.02, ReorderDelay: 5 * time.Millisecond}), BtoA: wire.Way{Delay: 10 * time.Millisecond}}, iperfs()},
	{"duplicate", WiredOptions{AtoB: slow(wire.Way{Duplicate: 0.02}), BtoA: wire.Way{Delay: 10 * time.Millisecond}}, iperfs()},
	{"queue", WiredOptions{AtoB: wire.Way{Rate: 40e6, Queue: 30000, Delay: 5 * time.Millisecond, Seed: 3}, BtoA: wire.Way{Delay: 5 * time.Millisecond}}, iperfs()},
	{"police", WiredOptions{AtoB: wire.Way{PoliceRate: 40e6, Delay: 5 * time.Millisecond, Seed: 3}, BtoA: wire.Way{Delay: 5 * time.Millisecond}}, iperfs()},
	{"broken-tso", WiredOptions{AtoB: wire.Way{DropAbove: 1514, Delay: 5 * time.Millisecond, Seed: 3}, BtoA: wire.Way{Delay: 5 * time.Millisecond}}, iperfs()},
	{"parallel", WiredOptions{AtoB: slow(wire.Way{Loss: 0.005}), BtoA: wire.Way{Delay: 10 * time.Millisecond}}, iperfs("-P", "4")},
	{"both-ways", WiredOptions{AtoB: slow(wire.Way{Loss: 0.005}), BtoA: slow(wire.Way{Loss: 0.005})}, iperfs("--bidir")},
	{"reverse", WiredOptions{AtoB: wire.Way{Delay: 10 * time.Millisecond}, BtoA: slow(wire.Way{Loss: 0.005})}, iperfs("-R")},
	{"lan", WiredOptions{AtoB: wire.Way{Rate: 100e6, Queue: 64 << 10, Loss: 0.001, Seed: 3}}, iperfs()},
	{"zero-window", WiredOptions{AtoB: wire.Way{Delay: 2 * time.Millisecond}, BtoA: wire.Way{Delay: 2 * time.Millisecond}}, slowReader},
	{"far", WiredOptions{AtoB: wire.Way{Rate: 20e6, Queue: 256 << 10, Loss: 0.005, Delay: 120 * time.Millisecond, Seed: 3}, BtoA: wire.Way{Delay: 120 * time.Millisecond}}, iperfs()},
}

// slowReader moves data to a program that reads for a while, then sleeps.
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

// capture runs tcpdump at a host while something is done.
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
		time.Sleep(300 * time.Millisecond) // what is on its way
		cmd.Process.Signal(syscall.SIGINT)
		if err := cmd.Wait(); err != nil {
			if _, ok := err.(*exec.ExitError); !ok {
				t.Error(err)
			}
		}
	}
}

// TestCaptures compares what is made of captures with what Wireshark makes of
// them.
func TestCaptures(t *testing.T) {
	dir := os.Getenv("THRU_KEEP_CAPTURES")
	if dir == "" {
		dir = t.TempDir()
	}
	for _, c := range captures {
		t.Run(c.name, func(t *testing.T) {
			x := wired(t, c.path, "tcpdump", "tshark", "iperf3", "python3")
			files := []string{filepath.Join(dir, c.name+"-a.pcap"), filepath.Join(dir, c.name+"-b.pcap")}
			a, b := capture(t, x.A, files[0]), capture(t, x.B, files[1])
			c.run(t, x)
			a()
			b()
		})
	}
}
