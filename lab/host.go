package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// Host is one namespace of a lab.
type Host struct {
	Name  string
	lab   *Lab
	netns string
}

// Counters are an interface's counters since its creation, in bytes of whole frames without the check sum,
// and in packets. On a veth a packet may be a segment of up to 64 KB, counted once with one header.
type Counters struct {
	RxBytes, TxBytes     uint64
	RxPackets, TxPackets uint64
}

// Sub returns the difference between c and an earlier reading.
func (c Counters) Sub(earlier Counters) Counters {
	return Counters{
		RxBytes: c.RxBytes - earlier.RxBytes, TxBytes: c.TxBytes - earlier.TxBytes,
		RxPackets: c.RxPackets - earlier.RxPackets, TxPackets: c.TxPackets - earlier.TxPackets,
	}
}

// Command returns a command that runs in the host. `ip netns exec` replaces itself by the program, so the
// process id is the program's. The end of ctx kills it.
func (h *Host) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", h.netns, name}, args...)...)
	// A grandchild that holds the output open must not hold up the test.
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

// Output runs a program in the host, with a time limit, and returns its standard output; the error contains
// the program's message.
func (h *Host) Output(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), programTimeout)
	defer cancel()
	return output(h.Command(ctx, name, args...))
}

// Must is Output that fails the test on an error.
func (h *Host) Must(name string, args ...string) string {
	h.lab.t.Helper()
	out, err := h.Output(name, args...)
	if err != nil {
		h.lab.t.Fatalf("%v", err)
	}
	return out
}

// IP runs the program ip on the host's interfaces and routes.
func (h *Host) IP(args ...string) string {
	h.lab.t.Helper()
	return h.lab.must("ip", append([]string{"-netns", h.netns}, args...)...)
}

// LinkDown takes an interface down: its peer loses the carrier.
func (h *Host) LinkDown(dev string) {
	h.lab.t.Helper()
	h.IP("link", "set", dev, "down")
}

// LinkUp brings an interface up. IPv6 addresses and routes that LinkDown removed do not come back.
func (h *Host) LinkUp(dev string) {
	h.lab.t.Helper()
	h.IP("link", "set", dev, "up")
}

// Sysctl sets a kernel parameter of the namespace, such as net.ipv4.tcp_rmem.
func (h *Host) Sysctl(name, value string) {
	h.lab.t.Helper()
	h.Must("sysctl", "-q", "-w", name+"="+value)
}

// Nft loads a ruleset, one rule per line (nft(8) refuses chains on one line).
func (h *Host) Nft(ruleset string) {
	h.lab.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), programTimeout)
	defer cancel()
	cmd := h.Command(ctx, "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(ruleset)
	if _, err := output(cmd); err != nil {
		h.lab.t.Fatalf("%v", err)
	}
}

// Counters reads an interface's counters.
func (h *Host) Counters(dev string) Counters {
	h.lab.t.Helper()
	c, err := parseCounters(h.IP("-json", "-stats", "link", "show", "dev", dev))
	if err != nil {
		h.lab.t.Fatalf("lab: counters of %s in %s: %v", dev, h.Name, err)
	}
	return c
}

// parseCounters reads the output of `ip -json -stats link show dev DEV`.
func parseCounters(out string) (Counters, error) {
	type count struct {
		Bytes   uint64 `json:"bytes"`
		Packets uint64 `json:"packets"`
	}
	var links []struct {
		Stats *struct {
			Rx count `json:"rx"`
			Tx count `json:"tx"`
		} `json:"stats64"`
	}
	if err := json.Unmarshal([]byte(out), &links); err != nil {
		return Counters{}, fmt.Errorf("lab: reading the output of ip: %w", err)
	}
	if len(links) != 1 || links[0].Stats == nil {
		return Counters{}, fmt.Errorf("lab: ip listed %d interfaces, or one without counters", len(links))
	}
	s := links[0].Stats
	return Counters{
		RxBytes: s.Rx.Bytes, TxBytes: s.Tx.Bytes,
		RxPackets: s.Rx.Packets, TxPackets: s.Tx.Packets,
	}, nil
}

// Pids lists the processes that run in the host.
func (h *Host) Pids() []int {
	h.lab.t.Helper()
	pids, err := namespacePids(h.netns)
	if err != nil {
		h.lab.t.Fatalf("%v", err)
	}
	return pids
}

// Sockets lists the host's TCP sockets except those in TIME-WAIT, which the kernel keeps for a minute after a
// proper close: one line each, as ss(8) prints them.
func (h *Host) Sockets() []string {
	h.lab.t.Helper()
	out := h.Must("ss", "-Htan", "exclude", "time-wait")
	var lines []string
	for _, line := range strings.Split(out, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
