package kvm

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"thru/internal/host"
	"thru/internal/host/tree"
	"thru/internal/measure"
)

// nothing is the value of a missing reading.
func nothing() float64 { return math.NaN() }

// percentOfNs converts ns per second to percent.
const percentOfNs = 1e-7

// mostQueues limits how many queues of one NIC are watched.
const mostQueues = 64

// newMeter returns a meter of a guest or host, by its id.
func newMeter(of, instance, counter, native string, k kind, scale float64) *meter {
	return &meter{Series: measure.Series{Of: of, Instance: instance, Counter: counter, Native: native}, kind: k, scale: scale}
}

// sources returns the sources of counters of guests, and of the host where it
// is watched too. groups are the control groups with a quota of all running
// guests.
func (h *Host) sources(guests []process, withHost bool, groups groupUse, missing *[]measure.NotChecked) (all []source) {
	devices := map[string][]*meter{} // interfaces
	for i := range guests {
		p := &guests[i]
		all = append(all, h.cpuSource(p), h.memorySource(p))
		all = append(all, h.limitSources(p, groups, missing)...)
		all = append(all, h.ioThreadSources(p)...)
		for _, n := range p.nics {
			if n.ifname != "" {
				devices[n.ifname] = append(devices[n.ifname], h.adapterMeters(p.ID, n.ifname)...)
			}
		}
	}
	if withHost {
		all = append(all, h.hostSources(devices, missing)...)
	}
	if len(devices) > 0 {
		all = append(all, h.deviceSource(devices))
	}
	return all
}

// cpuSource reads how long each virtual CPU ran, and how long it was ready
// and did not run (Documentation/scheduler/sched-stats.rst,
// /proc/PID/schedstat); for the guest the sum and the mean.
func (h *Host) cpuSource(p *process) source {
	var files []string
	var s source
	for _, th := range p.Threads {
		if th.Role != roleCPU {
			continue
		}
		number := strconv.Itoa(len(files))
		if th.CPU != nil {
			number = strconv.Itoa(*th.CPU)
		}
		files = append(files, task(p.pid, th.TID, "schedstat"))
		s.meters = append(s.meters,
			newMeter(p.ID, number, measure.CounterUsed, "schedstat: time on a CPU", rate, percentOfNs),
			newMeter(p.ID, number, measure.CounterReady, "schedstat: run delay", rate, percentOfNs))
	}
	if len(files) == 0 {
		s.read = func() ([]float64, bool) { return nil, true }
		return s
	}
	s.meters = append(s.meters,
		newMeter(p.ID, "", measure.CounterUsed, "schedstat: time on a CPU", rate, percentOfNs),
		newMeter(p.ID, "", measure.CounterReady, "schedstat: run delay", rate, percentOfNs/float64(len(files))))
	s.read = func() ([]float64, bool) {
		values := make([]float64, 0, 2*len(files)+2)
		used, ready := 0.0, 0.0
		for _, file := range files {
			u, r := h.tree.schedstat(file)
			values, used, ready = append(values, u, r), used+u, ready+r
		}
		return append(values, used, ready), true
	}
	return s
}

// schedstat reads the time on a CPU and the time of waiting for one, in ns.
func (t files) schedstat(file string) (used, waited float64) {
	f := strings.Fields(t.Optional(file))
	if len(f) < 2 {
		return nothing(), nothing()
	}
	u, err1 := strconv.ParseUint(f[0], 10, 64)
	w, err2 := strconv.ParseUint(f[1], 10, 64)
	if err1 != nil || err2 != nil {
		return nothing(), nothing()
	}
	return float64(u), float64(w)
}

// memorySource reads how much of the host's memory a guest has, and how much
// of its own is swapped out.
func (h *Host) memorySource(p *process) source {
	return source{
		meters: []*meter{
			newMeter(p.ID, "", measure.CounterConsumed, "status: VmRSS, HugetlbPages", level, 1),
			newMeter(p.ID, "", measure.CounterSwapped, "status: VmSwap", level, 1),
		},
		read: func() ([]float64, bool) {
			all := h.tree.fields(proc(p.pid, "status"))
			resident, err := tree.Kilobytes(all["VmRSS"])
			huge, _ := tree.Kilobytes(all["HugetlbPages"])
			return []float64{float64(resident + huge), orNothing(tree.Kilobytes(all["VmSwap"]))}, err == nil
		},
	}
}

// orNothing returns a reading, or nothing where it failed.
func orNothing(n int64, err error) float64 {
	if err != nil {
		return nothing()
	}
	return float64(n)
}

// groupUse counts the guests in a control group, by its folder.
type groupUse map[string]int

// groupsOf counts the running guests of each group. A group of several guests
// limits each of them, but its counter belongs to none.
func (h *Host) groupsOf(running []process) groupUse {
	all := groupUse{}
	for i := range running {
		b, _ := boundsOf(&running[i], h.machine) // errors are reported where the group is watched
		for g := range b.over {
			all[g]++
		}
	}
	return all
}

// limitSources reads how long control groups have throttled virtual CPUs. The
// time of a group around all of them is the sum over its CPUs.
func (h *Host) limitSources(p *process, groups groupUse, missing *[]measure.NotChecked) (all []source) {
	miss := func(why string) {
		*missing = append(*missing, measure.NotChecked{Fact: "series." + measure.CounterLimited, Why: why})
	}
	b, err := boundsOf(p, h.machine)
	if err != nil {
		miss(err.Error())
		return nil
	}
	of := map[string][]string{} // groups by the instance of their counter
	for _, g := range slices.Sorted(maps.Keys(b.over)) {
		if groups[g] > 1 {
			miss(fmt.Sprintf("%s: %d guests share the quota of /%s", p.Name, groups[g], clean(g)))
			continue
		}
		of[""] = append(of[""], g)
		if inside := b.over[g]; len(inside) == 1 && b.vcpus > 1 {
			number := strconv.Itoa(inside[0])
			of[number] = append(of[number], g)
		}
	}
	for _, instance := range slices.Sorted(maps.Keys(of)) {
		share := 1.0
		if instance == "" {
			share = 1 / float64(b.vcpus)
		}
		all = append(all, source{
			meters: []*meter{newMeter(p.ID, instance, measure.CounterLimited, "cpu.stat: throttled time", rate, percentOfNs*share)},
			read:   func() ([]float64, bool) { return h.throttled(of[instance]) },
		})
	}
	return all
}

// throttled returns how long groups have throttled threads, in total, in ns.
func (h *Host) throttled(groups []string) ([]float64, bool) {
	sum := 0.0
	for _, g := range groups {
		q, err := h.machine.Throttled(g)
		if err != nil {
			return nil, false
		}
		sum += float64(q.ThrottledNs)
	}
	return []float64{sum}, true
}

// ioThreadSources reads the threads that move a guest's packets and disk
// blocks.
func (h *Host) ioThreadSources(p *process) (all []source) {
	names := map[string]int{}
	for _, th := range p.Threads {
		names[th.Name]++
	}
	for _, th := range p.Threads {
		if th.Role == roleCPU {
			continue
		}
		instance, file := th.Name, task(p.pid, th.TID, "schedstat")
		switch {
		case th.TID == p.pid:
			instance = "main thread" // it moves packets where vhost does not
		case names[th.Name] > 1:
			instance = fmt.Sprintf("%s:%d", th.Name, th.TID)
		}
		if !h.tree.Exists(file) { // a kernel process
			file = proc(th.TID, "schedstat")
		}
		all = append(all, source{
			meters: []*meter{newMeter(p.ID, instance, measure.CounterThread, "schedstat: time on a CPU", rate, percentOfNs)},
			read:   func() ([]float64, bool) { used, _ := h.tree.schedstat(file); return []float64{used}, true },
		})
	}
	return all
}

// Columns of host.DeviceColumns.
const (
	rxBytes, rxPackets, rxErrors, rxDropped = 0, 1, 2, 3
	txBytes, txPackets, txErrors, txDropped = 8, 9, 10, 11
)

// column is a counter of an interface and its column.
type column struct {
	counter string
	at      int
	name    string // name in /sys/class/net/NAME/statistics
	kind    kind
	scale   float64
}

// ends returns the columns of an interface that count received and sent
// traffic.
func ends() (in, out []column) {
	return []column{{measure.CounterRxBps, rxBytes, "rx_bytes", rate, 8}, {measure.CounterRxPps, rxPackets, "rx_packets", rate, 1},
			{measure.CounterRxDropped, rxDropped, "rx_dropped", rise, 1}, {measure.CounterRxErrors, rxErrors, "rx_errors", rise, 1}},
		[]column{{measure.CounterTxBps, txBytes, "tx_bytes", rate, 8}, {measure.CounterTxPps, txPackets, "tx_packets", rate, 1},
			{measure.CounterTxDropped, txDropped, "tx_dropped", rise, 1}, {measure.CounterTxErrors, txErrors, "tx_errors", rise, 1}}
}

// adapterMeters returns the meters of a guest's adapter. What the host sends
// to a tap the guest receives, so in and out are swapped. A macvtap is the
// guest's own end: what it receives the guest receives
// (drivers/net/macvtap.c).
func (h *Host) adapterMeters(guest, device string) []*meter {
	in, out := ends()
	if !h.tree.isMacvtap(device) {
		for i := range in {
			in[i].counter, out[i].counter = out[i].counter, in[i].counter
		}
	}
	return deviceMeters(guest, device, append(in, out...))
}

// isMacvtap distinguishes a macvtap from a tap, which alone has flags of its
// own (drivers/net/tun.c). An interface that /sys does not show, since it is
// in another network namespace, is a tap: only /sys shows a macvtap.
func (t files) isMacvtap(device string) bool {
	dir := path.Join("sys/class/net", device)
	return t.Exists(path.Join(dir, "ifindex")) && !t.Exists(path.Join(dir, "tun_flags"))
}

// nicMeters returns the meters of a NIC of the host.
func nicMeters(nic string) []*meter {
	in, out := ends()
	for i := range in {
		if in[i].at == rxDropped {
			in[i].name = "rx_dropped, rx_missed_errors"
		}
	}
	return deviceMeters(hostID, nic, append(in, out...))
}

func deviceMeters(of, device string, all []column) (meters []*meter) {
	for _, c := range all {
		m := newMeter(of, device, c.counter, device+": "+c.name, c.kind, c.scale)
		m.column = c.at
		meters = append(meters, m)
	}
	return meters
}

// deviceSource reads all interfaces at once.
func (h *Host) deviceSource(devices map[string][]*meter) source {
	var s source
	for _, d := range slices.Sorted(maps.Keys(devices)) {
		s.meters = append(s.meters, devices[d]...)
	}
	s.read = func() ([]float64, bool) {
		all, _ := h.machine.Devices()
		values := make([]float64, 0, len(s.meters))
		for _, m := range s.meters {
			counts, ok := all[m.Instance]
			if !ok {
				values = append(values, nothing())
				continue
			}
			values = append(values, float64(counts[m.column]))
		}
		return values, true
	}
	return s
}

// hostSources reads the CPUs, the memory and the NICs of the host; NIC
// counters of /proc/net/dev go to devices.
func (h *Host) hostSources(devices map[string][]*meter, missing *[]measure.NotChecked) []source {
	facts := h.machine.Facts()
	net := newNetwork(h.tree, &facts, h.kernel)
	all := []source{h.usageSource(), h.freeSource()}
	for i := range facts.Interfaces {
		face := &facts.Interfaces[i]
		if !net.isUplink(face.Name) || face.Up == nil || !*face.Up {
			continue
		}
		devices[face.Name] = append(devices[face.Name], nicMeters(face.Name)...)
		if face.Driver == nil || face.Kind != nil && *face.Kind == "bond" {
			continue
		}
		s, err := queueSource(h.machine.Queues(face.Name), face.Name)
		if err != nil {
			*missing = append(*missing, measure.NotChecked{Fact: "series." + measure.CounterQueueRx, Why: face.Name + ": " + err.Error()})
			continue
		}
		all = append(all, s)
	}
	return all
}

// usageSource reads the utilization of the host's CPUs.
func (h *Host) usageSource() source {
	cpus := slices.Sorted(maps.Keys(h.busy()))
	var s source
	for _, c := range cpus {
		s.meters = append(s.meters, newMeter(hostID, strconv.Itoa(c), measure.CounterUsage, "/proc/stat", rate, percentOfNs))
	}
	s.meters = append(s.meters, newMeter(hostID, "", measure.CounterUsage, "/proc/stat", rate, percentOfNs/float64(max(len(cpus), 1))))
	s.read = func() ([]float64, bool) {
		now, sum := h.busy(), 0.0
		values := make([]float64, 0, len(cpus)+1)
		for _, c := range cpus {
			v, ok := now[c]
			if !ok {
				v = nothing() // it went offline
			}
			values, sum = append(values, v), sum+v
		}
		return append(values, sum), true
	}
	return s
}

// busy returns each CPU's time since boot without idle time, in ns.
func (h *Host) busy() map[int]float64 {
	all := map[int]float64{}
	cpus, _ := h.machine.CPUs()
	for _, c := range cpus {
		all[c.Core] = float64(c.User + c.System + c.IRQ + c.SoftIRQ + c.Steal)
	}
	return all
}

// freeSource reads the available memory of the host, and its swapping.
func (h *Host) freeSource() source {
	return source{
		meters: []*meter{
			newMeter(hostID, "", measure.CounterFree, "/proc/meminfo: MemAvailable", level, 1),
			newMeter(hostID, "", measure.CounterSwapped, "/proc/meminfo: SwapTotal - SwapFree", level, 1),
			newMeter(hostID, "", measure.CounterSwapIn, "/proc/vmstat: pswpin", rate, float64(os.Getpagesize())),
		},
		read: func() ([]float64, bool) {
			all := h.tree.fields("proc/meminfo")
			free, err := tree.Kilobytes(all["MemAvailable"])
			total, err1 := tree.Kilobytes(all["SwapTotal"])
			left, err2 := tree.Kilobytes(all["SwapFree"])
			return []float64{float64(free), float64(total - left), h.tree.swapIns()}, cmp.Or(err, err1, err2) == nil
		},
	}
}

// swapIns returns the pages swapped in since boot.
func (t files) swapIns() float64 {
	all, _ := tree.Parsed(t.Read, "proc/vmstat", tree.Counts)
	if n, ok := all["pswpin"]; ok {
		return float64(n)
	}
	return nothing()
}

// queueSource reads the packets of each receive queue of a NIC.
func queueSource(r *host.QueueReader, nic string) (source, error) {
	first, err := r.Read()
	if err != nil {
		return source{}, err
	}
	var s source
	var names []string
	for _, q := range first {
		if number, ok := strings.CutPrefix(q.Queue, "rx-"); ok && len(names) < mostQueues {
			names = append(names, q.Queue)
			s.meters = append(s.meters, newMeter(hostID, nic+":"+number, measure.CounterQueueRx, "ethtool -S", rate, 1))
		}
	}
	s.read = func() ([]float64, bool) {
		now, err := r.Read()
		values := make([]float64, 0, len(names))
		for _, name := range names {
			i := slices.IndexFunc(now, func(q measure.QueueCounter) bool { return q.Queue == name })
			if i < 0 {
				values = append(values, nothing())
				continue
			}
			values = append(values, float64(now[i].Packets))
		}
		return values, err == nil
	}
	return s, nil
}
