package tune_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"thru/internal/cause/knob"
	"thru/internal/measure"
	"thru/internal/tune"
	"thru/lab"
)

// inHost runs a test in its own network namespace, whose interfaces /sys
// shows: a veth pair with 4 queues and addresses, a tap, and an ifb, whose
// two queues have the discipline mq.
func inHost(t *testing.T, do func(m tune.Machine) error) {
	t.Helper()
	lab.Require(t, lab.Root(), lab.Program("ip"), lab.Program("tc"), lab.Program("ethtool"), lab.Program("sysctl"), lab.Namespaces())
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS)
		if err == nil {
			err = errors.Join(
				unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""), unix.Mount("sysfs", "/sys", "sysfs", 0, ""),
				shell("sysctl -q -w net.ipv6.conf.default.accept_dad=0", "ip link set lo up", "ip link add v0 numtxqueues 4 numrxqueues 4 type veth peer name v1 numtxqueues 4 numrxqueues 4",
					"ip link set v0 up", "ip link set v1 up", "ip addr add 10.7.0.1/24 dev v0", "ip -6 addr add fd07::1/64 dev v0 nodad",
					"ip tuntap add dev t0 mode tap", "ip link add i0 numtxqueues 2 numrxqueues 2 type ifb", "ip link set i0 up", "ip route add 10.8.0.0/16 via 10.7.0.2 dev v0 metric 7 mtu 1400 advmss 1300 proto static",
					"ip route add default via 10.7.0.2 dev v0 src 10.7.0.1 onlink", "ip -6 route add fd08::/64 via fd07::2 dev v0 metric 70 pref high"),
				settled(),
			)
		}
		if err == nil {
			err = do(tune.New())
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// settled waits until no address is tentative: the kernel removes the flag
// some time after an interface is up, even without duplicate detection.
func settled() error {
	for range 400 {
		out, err := exec.Command("ip", "-6", "-o", "addr", "show", "tentative").Output()
		if err != nil || len(out) == 0 {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("addresses stay tentative")
}

// shell runs commands in the calling thread's namespaces.
func shell(lines ...string) error {
	for _, line := range lines {
		words := strings.Fields(line)
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", line, err, out)
		}
	}
	return nil
}

// snapshot returns the settings here in the output of the system's own
// programs.
func snapshot() (string, error) {
	var all strings.Builder
	lines := []string{"ip -d link", "ip addr", "ip route show table all", "ip -6 route show table all", "tc qdisc", "sysctl -a --pattern ^net\\."}
	for _, iface := range []string{"v0", "v1", "t0", "i0", "lo"} {
		lines = append(lines, "ethtool -k "+iface)
	}
	for _, line := range append(lines, "ethtool -l v0", "ethtool -l v1", "ethtool -c t0") {
		words := strings.Fields(line)
		out, err := exec.Command(words[0], words[1:]...).Output()
		if err != nil {
			return "", fmt.Errorf("%s: %w", line, err)
		}
		fmt.Fprintf(&all, "# %s\n%s", line, out)
	}
	masks, err := filepath.Glob("/sys/class/net/*/queues/*/*ps_cpus")
	for _, name := range masks {
		b, _ := os.ReadFile(name) // an interface with one queue has no XPS
		fmt.Fprintf(&all, "%s %s\n", name, b)
	}
	return all.String(), err
}

// differs returns the first line that differs between two snapshots.
func differs(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("%q, now %q", x[i], y[i])
		}
	}
	if len(x) != len(y) {
		return fmt.Sprintf("%d lines, now %d", len(x), len(y))
	}
	return ""
}

// others lists other possible values of each knob.
func others(s measure.KnobState) []string {
	number := func(text string) int { n, _ := strconv.Atoi(text); return n }
	switch s.Knob {
	case knob.TCPRmem, knob.TCPWmem:
		return []string{"8192 65536 33554432"}
	case knob.Channels:
		if !strings.HasPrefix(s.Value, "rx") {
			return nil // a tap has one queue
		}
		return []string{"rx 2 tx 3", "tx 2"}
	case knob.RPS:
		return []string{strings.ReplaceAll(s.Value, " 0", " 1")}
	case knob.XPS:
		return []string{"tx-1 1"}
	case knob.Coalescing:
		return []string{"rx-frames 9"}
	case knob.MTU:
		return []string{strconv.Itoa(number(s.Value) - 100), strconv.Itoa(number(s.Value) - 20)}
	case knob.Qdisc:
		return []string{"pfifo"}
	case knob.Congestion, knob.RouteCongestion:
		return slices.DeleteFunc(strings.Fields(s.Possible), func(c string) bool { return c == s.Value })
	case knob.TxQueueLen:
		return []string{"3", "5000"}
	}
	if strings.Contains(s.Possible, " ") {
		return slices.DeleteFunc(strings.Fields(s.Possible), func(c string) bool { return c == s.Value })
	}
	return []string{strconv.Itoa(number(s.Value) + 1)}
}

// Each knob of this kernel is read, set, and set back; then all output of the
// system's programs is as before, byte for byte.
func TestEveryKnobBack(t *testing.T) {
	t.Parallel()
	inHost(t, func(m tune.Machine) error {
		tried := map[string]int{}
		now, err := snapshot()
		if err != nil {
			return err
		}
		for _, s := range m.Knobs([]string{"v0", "v1", "t0", "i0", "lo"}) {
			if s.Refused != "" {
				t.Logf("%s of %s: refused: %s", s.Knob, s.Interface, s.Refused)
				continue
			}
			for _, value := range others(s) {
				if now, err = thereAndBack(m, s, value, now); err != nil {
					t.Errorf("%s of %q from %q to %q: %v", s.Knob, s.Interface, s.Value, value, err)
				}
				tried[s.Knob]++
			}
		}
		for _, id := range []string{knob.TCPRmem, knob.TCPWmem, knob.WindowScaling, knob.SACK, knob.Timestamps, knob.MTUProbing, knob.RouteCongestion,
			knob.Qdisc, knob.SlowStartIdle, knob.NoMetricsSave, knob.MTU, knob.TSO, knob.GSO, knob.GRO, knob.TXChecksum, knob.ScatterGather, knob.Channels,
			knob.Coalescing, knob.RPS, knob.XPS, knob.TxQueueLen} {
			if tried[id] == 0 {
				t.Errorf("%s was not tried", id)
			}
		}
		if got, err := m.Read(knob.Qdisc, "i0"); got != "mq" || err != nil {
			t.Errorf("the discipline of several queues: %q, %v", got, err)
		}
		return nil
	})
}

// thereAndBack sets a knob, checks that something has changed, undoes it, and returns the settings afterwards.
func thereAndBack(m tune.Machine, s measure.KnobState, value, before string) (after string, err error) {
	if err := errors.Join(m.Set(s.Knob, s.Interface, value), m.Set(s.Knob, s.Interface, value)); err != nil {
		return before, err
	}
	found, err := m.Read(s.Knob, s.Interface)
	if err != nil || found == s.Value {
		return before, fmt.Errorf("reads %q afterwards: %w", found, err)
	}
	during, err := snapshot()
	if err == nil && during == before {
		err = errors.New("no program sees it")
	}
	if back := m.Set(s.Knob, s.Interface, s.Value); err == nil {
		err = back
	}
	after, lost := snapshot()
	if d := differs(before, after); d != "" {
		err = errors.Join(err, errors.New("left behind: "+d))
	}
	return after, errors.Join(err, lost)
}

// Offloads that depend on each other come back, in whatever order they are
// undone.
func TestOffloadsInAnyOrder(t *testing.T) {
	t.Parallel()
	ids := []string{knob.TXChecksum, knob.ScatterGather, knob.TSO, knob.GSO}
	inHost(t, func(m tune.Machine) error {
		for _, begin := range [][]string{nil, {"ethtool -K v0 tx-tcp6-segmentation off"}, {"ethtool -K v0 tso off"}, {"ethtool -K v0 tx off"}, {"ethtool -K v0 sg off"}} {
			if err := shell(begin...); err != nil {
				return err
			}
			before, err := snapshot()
			if err != nil {
				return err
			}
			for first := range ids {
				order := slices.Concat(ids[first:], ids[:first])
				values := map[string]string{}
				for _, id := range order {
					if values[id], err = m.Read(id, "v0"); err != nil {
						return err
					}
					if err := m.Set(id, "v0", "off"); err != nil {
						t.Errorf("%v: %v", begin, err)
					}
				}
				for _, id := range order {
					_ = m.Set(id, "v0", values[id]) // an offload that another one still keeps off is an error, and stays requested
				}
				after, err := snapshot()
				if err != nil {
					return err
				}
				if d := differs(before, after); d != "" {
					t.Errorf("%v, order %v: %s", begin, order, d)
				}
			}
		}
		return nil
	})
}

// A change that could not be undone is refused, by Set and, where already
// known, by Knobs, and nothing has changed.
func TestRefusedByTheKernel(t *testing.T) {
	t.Parallel()
	inHost(t, func(m tune.Machine) error {
		for _, c := range []struct {
			prepare                  []string
			knob, iface, value, says string
			after                    []string
		}{
			{nil, knob.MTU, "v0", "1200", "IPv6", nil}, {nil, knob.MTU, "v0", "500", "IPv4", nil}, {nil, knob.MTU, "v0", "70000", "", nil}, {nil, knob.MTU, "v9", "1400", "no such knob", nil},
			{[]string{"ip link add m0 link v0 type macvlan"}, knob.MTU, "v0", "1400", "upper interface m0", []string{"ip link del m0"}},
			{[]string{"ip -6 route add fd09::/64 dev v0 mtu 1450"}, knob.MTU, "v0", "1400", "MTU of 1450", []string{"ip -6 route del fd09::/64 dev v0"}},
			{[]string{"sysctl -q -w net.ipv6.conf.v0.mtu=1300"}, knob.MTU, "v0", "1400", "separate IPv6 MTU", []string{"sysctl -q -w net.ipv6.conf.v0.mtu=1500"}},
			{[]string{"tc qdisc replace dev v0 root handle 1: tbf rate 1gbit burst 256kb limit 1mb"}, knob.Qdisc, "v0", "pfifo", "tbf 1: was configured", []string{"tc qdisc del dev v0 root"}},
			{nil, knob.Qdisc, "v0", "nonsense", "no discipline", nil}, {nil, knob.Qdisc, "v0", "mq", "only the kernel assigns", nil}, {nil, knob.Qdisc, "v0", "tbf", "", nil},
			{[]string{"ip route add 10.9.0.0/16 nexthop via 10.7.0.2 dev v0 nexthop via 10.7.0.3 dev v0"}, knob.RouteCongestion, "10.9.0.0/16 dev v0 table main metric 0", "reno", "no route", []string{"ip route del 10.9.0.0/16"}},
			{[]string{"ip route append 10.8.0.0/16 via 10.7.0.3 dev v0 metric 7"}, knob.RouteCongestion, "10.8.0.0/16 dev v0 table main metric 7", "reno", "2 routes", []string{"ip route del 10.8.0.0/16 via 10.7.0.3 metric 7"}},
			{nil, knob.RouteCongestion, "10.8.0.0/16 dev v0 table main metric 7", "nonsense", "", nil}, {nil, knob.RouteCongestion, "10.8.0.0/16", "reno", "is not a route", nil},
			{nil, knob.Channels, "v0", "rx 5", "maximum is 4", nil}, {nil, knob.Channels, "v0", "rx 0", "", nil}, {nil, knob.LRO, "v0", "on", "does not allow", nil},
			{nil, knob.Channels, "v0", "rx 4 tx 9", "maximum is 4", nil},
			{[]string{"ip link add b0 type bridge", "ip link set v1 master b0"}, knob.LRO, "b0", "on", "", []string{"ip link del b0"}},
			{nil, knob.Congestion, "", "nonsense", "", nil}, {nil, knob.TCPRmem, "", "-1 5 6", "", nil},
		} {
			if err := shell(c.prepare...); err != nil {
				return err
			}
			before, err := snapshot()
			if err != nil {
				return err
			}
			if err := m.Set(c.knob, c.iface, c.value); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s of %q to %q: %v, want %q", c.knob, c.iface, c.value, err, c.says)
			}
			after, err := snapshot()
			if err != nil {
				return err
			}
			if d := differs(before, after); d != "" {
				t.Errorf("%s of %q to %q left behind: %s", c.knob, c.iface, c.value, d)
			}
			if err := shell(c.after...); err != nil {
				return err
			}
		}
		return nil
	})
}

// A removed queue would lose its CPUs.
func TestQueuesWithCPUs(t *testing.T) {
	inHost(t, func(m tune.Machine) error {
		if err := os.WriteFile("/sys/class/net/v0/queues/rx-3/rps_cpus", []byte("1\n"), 0); err != nil {
			return err
		}
		if err := m.Set(knob.Channels, "v0", "rx 2 tx 2"); err == nil || !strings.Contains(err.Error(), "queue rx-3 would lose its rps_cpus (1)") {
			t.Errorf("fewer queues: %v", err)
		}
		return m.Set(knob.Channels, "v0", "tx 2")
	})
}

// A kept discipline of thru's own can be replaced and removed; somebody
// else's discipline in its place is not touched.
func TestQdiscOfSomebodyElse(t *testing.T) {
	inHost(t, func(m tune.Machine) error {
		for _, kind := range []string{"pfifo", "bfifo", "noqueue"} {
			if err := m.Set(knob.Qdisc, "v0", kind); err != nil {
				return err
			}
		}
		if err := errors.Join(m.Set(knob.Qdisc, "v0", "pfifo"), shell("tc qdisc replace dev v0 root handle 9: pfifo limit 7")); err != nil {
			return err
		}
		if got, err := m.Read(knob.Qdisc, "v0"); got != "pfifo 9:" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if err := m.Set(knob.Qdisc, "v0", "noqueue"); err == nil {
			t.Error("a foreign discipline was taken away")
		}
		return nil
	})
}

// Without CAP_NET_ADMIN everything is read, no interface is changed, and the
// reason is reported.
func TestWithoutTheCapability(t *testing.T) {
	inHost(t, func(m tune.Machine) error {
		before, err := snapshot()
		if err != nil {
			return err
		}
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&header, &data[0]); err != nil {
			return err
		}
		data[0].Effective &^= 1 << unix.CAP_NET_ADMIN
		if err := unix.Capset(&header, &data[0]); err != nil { // of this thread alone
			return err
		}
		for _, id := range []string{knob.MTU, knob.TSO, knob.Channels, knob.TxQueueLen, knob.Qdisc} {
			for _, s := range m.Knobs([]string{"v0"}) {
				if s.Knob == id && !strings.Contains(s.Refused, "root") {
					t.Errorf("%+v", s)
				} else if s.Knob == id && m.Set(id, "v0", others(s)[0]) == nil {
					t.Errorf("%s was changed", id)
				}
			}
		}
		after, err := snapshot()
		if d := differs(before, after); d != "" {
			t.Error(d)
		}
		return err
	})
}

// Where /sys shows another network namespace, its queues are not touched.
func TestSysOfAnotherNamespace(t *testing.T) {
	inHost(t, func(m tune.Machine) error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil { // /sys stays that of the namespace before
			return err
		}
		if err := shell("ip link add v1 type veth peer name v0", "ip link set v0 up"); err != nil {
			return err
		}
		if got, err := m.Read(knob.RPS, "v0"); err == nil {
			t.Errorf("the queues of another namespace: %q", got)
		}
		if err := m.Set(knob.RPS, "v0", "rx-0 1"); !errors.Is(err, tune.ErrUnknown) {
			t.Errorf("set: %v", err)
		}
		return nil
	})
}
