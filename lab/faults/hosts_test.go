package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"thru/internal/measure"
	"thru/lab"
)

// hostFaults: hosts that are too slow.
func hostFaults() []Fault {
	sender, receiver := measure.AtSender, measure.AtReceiver
	const many = "so many packets that a CPU is full of them"
	return []Fault{
		{Name: "offloads-off", About: "neither segmentation nor checksum offload", Forward: is("offloads-off", sender).or(many, "sender-cpu"),
			Needs: []lab.Need{lab.Program("ethtool")}, Build: overVeth(lab.Options{}, offloads("tso off gso off tx off"))},
		{Name: "receiver-cpu", About: "three programs share the receiver's CPU", Forward: is("receiver-cpu", receiver),
			Args: flags("-A 0,1"), Needs: []lab.Need{lab.Program("taskset")}, Build: hogged(1, 3)},
		{Name: "sender-cpu", About: "three programs share the sender's CPU", Forward: is("sender-cpu", sender),
			Args: flags("-A 0,1"), Needs: []lab.Need{lab.Program("taskset")}, Build: hogged(0, 3)},
		{Name: "cpu-quota", About: "the receiver may use a fifth of a CPU", Forward: is("cpu-quota", receiver), Build: quota(false, 20_000)},
		{Name: "cpu-quota-sender", About: "the sender may use a third of a CPU", Forward: is("cpu-quota", sender), Build: quota(true, 33_000)},
		{Name: "firewall-cost", About: "ten thousand rules at the receiver", Forward: (&Want{Cause: "firewall-cost"}).or(many, "sender-cpu", "receiver-cpu"),
			Needs: []lab.Need{lab.Program("nft")}, Build: overVeth(lab.Options{}, longChain)},
		{Name: "too-many-streams", About: "128 streams on two CPUs", Forward: (&Want{Cause: "too-many-streams"}).or("the CPUs are full in any case", "sender-cpu", "receiver-cpu"),
			Args: flags("-P 128"), Build: overVeth(lab.Options{})},
	}
}

// offloads changes the offloads of the client's interface (ethtool(8), -K).
func offloads(how string) func(*lab.Pair) {
	return func(p *lab.Pair) { p.A.Must("ethtool", flags("-K %s %s", lab.DataDev, how)...) }
}

// hogged is a fast link whose ends have one CPU each; other programs use one of these CPUs too.
func hogged(cpu, programs int) func(testing.TB) *Scene {
	return func(t testing.TB) *Scene {
		t.Helper()
		s := overVeth(lab.Options{})(t)
		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel)
		for range programs {
			cmd := s.Server.Command(ctx, "taskset", "-c", fmt.Sprint(cpu), "sh", "-c", "while :; do :; done")
			if err := cmd.Start(); err != nil {
				t.Fatalf("faults: %v", err)
			}
			t.Cleanup(func() { cancel(); _ = cmd.Wait() }) // killed
		}
		return s
	}
}

// quota is a fast link of which one end may use so many microseconds of CPU in each period. `ip netns exec`
// hides control groups, so it mounts them again.
func quota(client bool, us int) func(testing.TB) *Scene {
	return func(t testing.TB) *Scene {
		t.Helper()
		s := overVeth(lab.Options{})(t)
		dir := lab.Group(t, "cpu", map[string]string{"cpu.cfs_quota_us": fmt.Sprint(us)}, nil)
		join := []string{"sh", "-c", `mount -t tmpfs none /sys/fs/cgroup && mkdir "$0" && mount -t cgroup -o cpu none "$0" && echo $$ > "$1/cgroup.procs" && shift && exec "$@"`, "/sys/fs/cgroup/cpu", dir}
		if client {
			s.ClientBy = join
		} else {
			s.ServerBy = join
		}
		return s
	}
}

// longChain makes the receiver evaluate many firewall rules for each packet.
func longChain(p *lab.Pair) {
	const rules = 10_000
	var b strings.Builder
	b.WriteString("table inet long {\nchain in {\ntype filter hook input priority 0\n")
	for n := range rules {
		fmt.Fprintf(&b, "ip saddr 192.0.2.1 tcp dport %d drop\n", n+1)
	}
	b.WriteString("}\n}\n")
	p.B.Nft(b.String())
}
