package host

import (
	"testing"

	"thru/internal/measure"
)

// TestQuotasOf reads the quotas of all groups around a process, in both
// versions.
func TestQuotasOf(t *testing.T) {
	h := Host{fs: files(t, map[string]string{
		"proc/2/comm": "kthreadd", "proc/17/cgroup": "0::/vm/vcpu0", "proc/18/cgroup": "0::/", "proc/self/mountinfo": "30 25 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw",
		"sys/fs/cgroup/vm/cpu.max": "200000 100000\n", "sys/fs/cgroup/vm/cpu.stat": "nr_periods 40\nnr_throttled 30\nthrottled_usec 7\n",
		"sys/fs/cgroup/vm/vcpu0/cpu.max": "50000 100000\n", "sys/fs/cgroup/vm/vcpu0/cpu.stat": "nr_periods 4\nnr_throttled 3\nthrottled_usec 2\n",
		"sys/fs/cgroup/vm/vcpu0/cpu.weight": "250\n", "sys/fs/cgroup/vm/memory.max": "4096\n",
	})}
	q, err := h.QuotasOf(17)
	if err != nil || len(q) != 2 || q[0].CPUs != 0.5 || q[0].ThrottledNs != 2000 || q[1].CPUs != 2 || q[1].Periods != 40 {
		t.Errorf("%+v, %v", q, err)
	}
	if s, err := h.Throttled(q[1].Group); err != nil || s.Throttled != 30 || s.ThrottledNs != 7000 {
		t.Errorf("%+v, %v", s, err)
	}
	if w, err := h.CPUWeightOf(17); err != nil || w != 250 {
		t.Errorf("weight %d, %v", w, err)
	}
	if m, err := h.MemoryMaxOf(17); err != nil || m == nil || *m != 4096 {
		t.Errorf("memory %v, %v", show(m), err)
	}
	q, err = h.QuotasOf(18)
	if m, merr := h.MemoryMaxOf(18); err != nil || merr != nil || len(q) != 0 || m != nil {
		t.Errorf("in the root: %+v, %v, %v, %v", q, err, show(m), merr)
	}
	if _, err := h.QuotasOf(19); err == nil {
		t.Error("a process that is not there has quotas")
	}
	old := Host{fs: files(t, map[string]string{
		"proc/17/cgroup": "4:cpu,cpuacct:/vm\n3:memory:/vm", "proc/self/mountinfo": "30 25 0:26 / /c rw - cgroup cgroup rw,cpu,cpuacct\n31 25 0:27 / /m rw - cgroup cgroup rw,memory",
		"c/vm/cpu.cfs_quota_us": "150000", "c/vm/cpu.cfs_period_us": "100000", "c/vm/cpu.stat": "nr_periods 4\nnr_throttled 3\nthrottled_time 99\n", "c/vm/cpu.shares": "512", "m/vm/memory.limit_in_bytes": "8192",
	})}
	if q, err := old.QuotasOf(17); err != nil || len(q) != 1 || q[0].CPUs != 1.5 || q[0].ThrottledNs != 99 {
		t.Errorf("version 1: %+v, %v", q, err)
	}
	w, err := old.CPUWeightOf(17)
	if m, merr := old.MemoryMaxOf(17); err != nil || merr != nil || w != 512 || m == nil || *m != 8192 {
		t.Errorf("version 1: weight %d, memory %v, %v, %v", w, show(m), err, merr)
	}
}

// TestQueueReader returns the same as queueCounters, repeatedly.
func TestQueueReader(t *testing.T) {
	counters := map[string]uint64{"rx_queue_0_packets": 5, "rx_queue_1_packets": 7, "tx_queue_0_packets": 9, "rx_crc_errors": 3}
	h := Host{kernel: machine{nics: map[string]answers{"eth0": {counters: counters}, "eth1": {counters: map[string]uint64{"rx_packets": 1}}}}}
	r := h.Queues("eth0")
	for range 2 {
		got, err := r.Read()
		want := []measure.QueueCounter{{Queue: "rx-0", Packets: counters["rx_queue_0_packets"]}, {Queue: "rx-1", Packets: 7}, {Queue: "tx-0", Packets: 9}}
		if err != nil || len(got) != len(want) {
			t.Fatalf("%+v, %v", got, err)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("queue %d: %+v, want %+v", i, got[i], want[i])
			}
		}
		counters["rx_queue_0_packets"] = 50
	}
	if got, err := h.Queues("eth1").Read(); err == nil {
		t.Errorf("a driver that counts none: %+v", got)
	}
	recorded := Host{}
	if got, err := recorded.Queues("eth0").Read(); err == nil {
		t.Errorf("a recorded tree: %+v", got)
	}
}
