package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Settings holds the settings of a host and its interfaces as the system's programs print them: kernel
// parameters of the namespace, offloads, rings, channels, coalescing, pause, RSS, links, addresses, routes,
// queues and their CPUs, and the CPUs of the machine's interrupts. Equal settings are equal byte for byte.
type Settings string

// settingsScript prints them in sections. If a driver lacks a setting, the error message takes its place. It
// omits counters, ages and other volatile values, and ip(8)'s messages about a namespace that another test is
// creating.
const settingsScript = `
section() { echo "== $*"; "$@" 2>&1 | grep -v "Peer netns reference is invalid"; }
parameters() { sysctl -a 2>/dev/null | grep '^net\.' | grep -v -e nf_conntrack_count -e ndisc_notify; }
files() { for f in "$@"; do test -f "$f" && echo "$f $(cat "$f" 2>&1)"; done; }
section parameters
section ip -d link show
section ip -d addr show
section ip -d route show table all
section ip -d -6 route show table all
section ip rule show
section tc -d qdisc show
for dev in $(ls /sys/class/net); do
	test -d /sys/class/net/$dev || continue
	for of in -k -g -l -c -a -x; do section ethtool $of $dev; done
	for kind in tcp4 udp4 tcp6 udp6; do section ethtool -n $dev rx-flow-hash $kind; done
	section files /sys/class/net/$dev/queues/*/rps_* /sys/class/net/$dev/queues/*/xps_* /sys/class/net/$dev/queues/*/tx_maxrate \
		/sys/class/net/$dev/gro_flush_timeout /sys/class/net/$dev/napi_defer_hard_irqs /sys/class/net/$dev/threaded
done
section files /proc/irq/*/smp_affinity_list /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor
`

// tentative marks an address during duplicate address detection: the mark disappears by itself.
const tentative = " tentative"

// Settings reads the settings. It waits until all addresses are usable.
func (h *Host) Settings() Settings {
	h.lab.t.Helper()
	const limit = 10 * time.Second
	for deadline := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		out := h.Must("sh", "-c", settingsScript+"true")
		if !strings.Contains(out, tentative) {
			return Settings(out)
		}
		if time.Now().After(deadline) {
			h.lab.t.Fatalf("lab: an address of %s cannot be used after %v:\n%s", h.Name, limit, h.IP("addr"))
		}
	}
}

// Changes lists the lines that differ, each after its section: removed ones with "-", new ones with "+". It
// is empty only if both are equal.
func (s Settings) Changes(now Settings) []string {
	if s == now {
		return nil
	}
	before, after := s.lines(), now.lines()
	var all []string
	for _, line := range before {
		if !slices.Contains(after, line) {
			all = append(all, "- "+line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			all = append(all, "+ "+line)
		}
	}
	if len(all) == 0 {
		return []string{fmt.Sprintf("the same lines in another order, or %d times instead of %d", len(after), len(before))}
	}
	return all
}

// lines returns the lines of the text, each after its section.
func (s Settings) lines() []string {
	var all []string
	section := ""
	for line := range strings.Lines(string(s)) {
		line = strings.TrimRight(line, "\n")
		if name, is := strings.CutPrefix(line, "== "); is {
			section = name
			continue
		}
		all = append(all, section+": "+strings.TrimSpace(line))
	}
	return all
}
