//go:build linux

package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
)

// awaitPort waits until a server listens at "tcp/PORT" or "udp/PORT".
func awaitPort(ctx context.Context, p *process, at string) error {
	network, port, _ := strings.Cut(at, "/")
	for end := time.Now().Add(serverTime); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		if listens(network, port) || listens(network+"6", port) {
			return nil
		}
	}
	p.stop()
	return fmt.Errorf("%s does not listen at %s: %s", strings.Join(p.cmd.Args, " "), at, p.errors.String())
}

// listens reports whether /proc/net (proc(5)) has an unconnected local port: state 0A is LISTEN, 07 is an
// unconnected UDP socket.
func listens(network, port string) bool {
	number, err := strconv.Atoi(port)
	if err != nil {
		return false
	}
	b, _ := os.ReadFile("/proc/self/net/" + network)
	end := fmt.Sprintf(":%04X", number)
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) > 3 && strings.HasSuffix(f[1], end) && (f[3] == "0A" || f[3] == "07") {
			return true
		}
	}
	return false
}

// loopbackBytes returns what the loopback interface has received so far. In a separate namespace only the run
// uses it.
func loopbackBytes() uint64 {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return 0
	}
	return lo.Attrs().Statistics.RxBytes
}

// busyConnection is the minimum that a data connection has sent, in bytes.
const busyConnection = 1 << 20

// busyCongestion names the congestion control of the data connections, according to the kernel (ss(8)).
func busyCongestion() string {
	out, err := exec.Command("ss", "-tinH").Output()
	if err != nil {
		return "not checked: no ss"
	}
	var names []string
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) == 0 || !strings.HasPrefix(line, "\t") {
			continue
		}
		for _, word := range f {
			n, err := strconv.ParseUint(strings.TrimPrefix(word, "bytes_sent:"), 10, 64)
			if err == nil && strings.HasPrefix(word, "bytes_sent:") && n > busyConnection && !slices.Contains(names, f[0]) {
				names = append(names, f[0])
			}
		}
	}
	return strings.Join(names, " and ")
}
