package kvm

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// crowd is a host with so many guests, each of four CPUs, two queues of vhost
// and one tap.
func crowd(t testing.TB, guests int) (root string, ids []string) {
	root = t.TempDir()
	put(t, root, "proc/2/comm", "kthreadd\n")
	put(t, root, "proc/stat", "cpu  0\ncpu0 50 0 50 400 0 0 0 0 0 0\n")
	put(t, root, "sys/devices/system/cpu/online", "0-63\n")
	var dev strings.Builder
	for i := range guests {
		pid := 10_000 + 20*i
		tap := fmt.Sprintf("vnet%d", i)
		put(t, root, proc(pid, "cmdline"), strings.ReplaceAll(fmt.Sprintf("/usr/bin/kvm -id %d -name g%d,debug-threads=on -m 4096 -smp 4 -netdev tap,id=n,ifname=%s,vhost=on,queues=2 -device virtio-net-pci,netdev=n,mq=on", i, i, tap), " ", "\x00"))
		put(t, root, proc(pid, "status"), strings.Repeat("Some:\tother line\n", 40)+"VmRSS:\t 4096 kB\nVmSwap:\t 0 kB\n")
		put(t, root, proc(pid, "stat"), "1 (kvm) S "+strings.Repeat("0 ", 49))
		for j, comm := range []string{"kvm", "CPU 0/KVM", "CPU 1/KVM", "CPU 2/KVM", "CPU 3/KVM", fmt.Sprintf("vhost-%d", pid), fmt.Sprintf("vhost-%d", pid)} {
			put(t, root, task(pid, pid+j, "comm"), comm+"\n")
			put(t, root, task(pid, pid+j, "schedstat"), "1000000 1000 10\n")
		}
		fmt.Fprintf(&dev, "%s: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", tap)
		ids = append(ids, fmt.Sprintf("vm:%d", i))
	}
	put(t, root, "proc/self/net/dev", dev.String())
	return root, append(ids, hostID)
}

// TestCrowd: all of some guests are watched at once.
func TestCrowd(t *testing.T) {
	root, ids := crowd(t, 12)
	w, err := At(root, "x").prepare(ids)
	if err != nil {
		t.Fatal(err)
	}
	w.tick(w.last.Add(time.Second))
	if n := len(w.recs.series()); n < 12*20 {
		t.Errorf("%d series", n)
	}
}

// BenchmarkTick is the cost of one reading of 50 guests.
func BenchmarkTick(b *testing.B) {
	root, ids := crowd(b, 50)
	w, err := At(root, "x").prepare(ids)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		w.tick(w.last.Add(time.Second))
	}
	b.ReportMetric(float64(len(w.recs[0].meters)+len(w.recs[1].meters)), "series")
}

// BenchmarkInventory is the cost of an inventory of 50 guests.
func BenchmarkInventory(b *testing.B) {
	root, _ := crowd(b, 50)
	h := At(root, "x")
	for b.Loop() {
		if _, err := h.Inventory(b.Context(), nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}
