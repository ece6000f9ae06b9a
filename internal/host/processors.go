package host

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"thru/internal/measure"
)

// cpuDir is the kernel's folder of processors
// (Documentation/ABI/testing/sysfs-devices-system-cpu).
const cpuDir = "sys/devices/system/cpu"

// processors reads the topology, clocks and idle states of the CPUs. model is
// that of the first one.
func (h *Host) processors(n *notes, model *string) *measure.Processors {
	f := h.fs
	online, err := f.cpuList(path.Join(cpuDir, "online"))
	if err != nil {
		n.add("cpu", err.Error())
		return nil
	}
	p := &measure.Processors{Threads: new(len(online))}
	p.Possible = keeper[int](n, "cpu.threads_possible")(lengthOf(f.cpuList(path.Join(cpuDir, "present"))))
	p.Usable = keeper[int](n, "cpu.usable_cpus")(lengthOf(f.usable()))
	p.Sockets = keeper[int](n, "cpu.sockets")(f.groups(online, "package_cpus_list", "core_siblings_list"))
	p.SMT, p.Cores = f.smt(n, online)
	f.frequency(n, p, online, model)
	h.idle(n, p, online[0])
	for _, file := range []string{"isolated", "nohz_full"} {
		if cpus, err := f.cpuList(path.Join(cpuDir, file)); err == nil {
			p.Isolated = append(p.Isolated, cpus...)
		}
	}
	slices.Sort(p.Isolated)
	p.Isolated = slices.Compact(p.Isolated)
	return p
}

// lengthOf returns the length of a list that was read.
func lengthOf(list []int, err error) (int, error) { return len(list), err }

// usable lists the CPUs that this process may use: its affinity within its
// cpuset (proc_pid_status(5)).
func (f FS) usable() ([]int, error) {
	all, err := f.Fields("proc/self/status")
	if err != nil {
		return nil, err
	}
	return parseCPUList(all["Cpus_allowed_list"])
}

// groups counts sockets or cores by asking one CPU of each for the others:
// this reads one file for each socket or core, not for each CPU. It uses the
// first file name that the kernel has; since 5.3 there are clearer ones.
func (f FS) groups(online []int, names ...string) (int, error) {
	seen := map[int]bool{}
	found := 0
	for _, cpu := range online {
		if seen[cpu] {
			continue
		}
		var set []int
		var err error
		for _, name := range names {
			if set, err = f.cpuList(path.Join(cpuDir, fmt.Sprint("cpu", cpu), "topology", name)); err == nil {
				break
			}
		}
		if err != nil {
			return 0, err
		}
		found++
		seen[cpu] = true
		for _, other := range set {
			seen[other] = true
		}
	}
	return found, nil
}

// smt reports whether cores have several threads, and counts the cores. The
// kernel reports it since 4.19; before, SMT is on where there are fewer cores
// than threads.
func (f FS) smt(n *notes, online []int) (active *bool, cores *int) {
	s := f.Optional(path.Join(cpuDir, "smt/active"))
	if s == "0" {
		return new(false), new(len(online))
	}
	found, err := f.groups(online, "core_cpus_list", "thread_siblings_list")
	cores = keeper[int](n, "cpu.physical_cores")(found, err)
	switch {
	case s == "1":
		active = new(true)
	case err != nil:
		n.add("cpu.smt_active", err.Error())
	default:
		active = new(found < len(online))
	}
	return active, cores
}

// policies lists the folders of the frequency driver: one for each group of
// CPUs that share a clock, or before Linux 4.3 one for each CPU
// (Documentation/admin-guide/pm/cpufreq.rst).
func (f FS) policies(online []int) []string {
	var all []string
	if numbers, err := f.Numbered(path.Join(cpuDir, "cpufreq"), "policy"); err == nil {
		for _, number := range numbers {
			all = append(all, path.Join(cpuDir, "cpufreq", fmt.Sprint("policy", number)))
		}
	}
	if len(all) > 0 || !f.Exists(path.Join(cpuDir, fmt.Sprintf("cpu%d", online[0]), "cpufreq")) {
		return all
	}
	for _, cpu := range online {
		all = append(all, path.Join(cpuDir, fmt.Sprint("cpu", cpu), "cpufreq"))
	}
	return all
}

// frequency reads clocks, governors and turbo. A guest mostly has none of
// them: then one note covers all.
func (f FS) frequency(n *notes, p *measure.Processors, online []int, model *string) {
	all := f.policies(online)
	p.BaseHz = f.baseClock(all, model)
	if len(all) == 0 {
		n.add("cpu.governors", "no frequency driver: /"+cpuDir+"/cpufreq has no policy")
		if p.BaseHz == nil {
			n.add("cpu.base_hz", "neither a frequency driver nor the model name shows it")
		}
		return
	}
	if p.BaseHz == nil {
		n.add("cpu.base_hz", "neither the frequency driver nor the model name shows it")
	}
	p.Driver = keeper[string](n, "cpu.frequency_driver")(f.Text(path.Join(all[0], "scaling_driver")))
	governors, preferences := map[string]bool{}, map[string]bool{}
	for _, policy := range all {
		if s := f.Optional(path.Join(policy, "scaling_governor")); s != "" {
			governors[s] = true
		}
		if s := f.Optional(path.Join(policy, "energy_performance_preference")); s != "" {
			preferences[s] = true
		}
		if hz, err := f.kiloHertz(path.Join(policy, "scaling_max_freq")); err == nil && (p.MaxHz == nil || hz > *p.MaxHz) {
			p.MaxHz = &hz
		}
	}
	p.Governors = slices.Sorted(maps.Keys(governors))
	if len(p.Governors) == 0 {
		n.add("cpu.governors", "no policy of the frequency driver shows its governor")
	}
	if p.MaxHz == nil {
		n.add("cpu.max_hz", "no policy of the frequency driver shows it")
	}
	p.Available = strings.Fields(f.Optional(path.Join(all[0], "scaling_available_governors")))
	if len(preferences) > 0 { // only some drivers have it
		p.Preference = new(strings.Join(slices.Sorted(maps.Keys(preferences)), ", "))
	}
	p.Boost = keeper[bool](n, "cpu.boost")(f.boost(all[0]))
	p.CurrentHz = keeper[int64](n, "cpu.current_hz")(f.currentClock(all))
}

// kiloHertz reads a clock in kHz and returns Hz.
func (f FS) kiloHertz(name string) (int64, error) {
	khz, err := f.Number64(name)
	if err == nil && (khz <= 0 || khz > math.MaxInt64/1000) {
		err = fmt.Errorf("/%s: %d is not a clock rate", name, khz)
	}
	return khz * 1000, err
}

// currentClock returns the fastest of the present clocks. Some kernels wait
// 10 ms for each clock (arch/x86/kernel/cpu/aperfmperf.c before 5.18);
// currentClock stops reading after one that does.
func (f FS) currentClock(policies []string) (fastest int64, err error) {
	began := time.Now()
	for _, policy := range policies {
		hz, e := f.kiloHertz(path.Join(policy, "scaling_cur_freq"))
		if e != nil && err == nil {
			err = e
		}
		fastest = max(fastest, hz)
		if time.Since(began) > 5*time.Millisecond {
			break
		}
	}
	if fastest > 0 {
		return fastest, nil
	}
	return 0, err
}

// boost reports whether turbo is allowed: intel_pstate has an inverted flag,
// others one flag for all CPUs, amd-pstate one for each policy.
func (f FS) boost(policy string) (bool, error) {
	s, err := f.Text(path.Join(cpuDir, "intel_pstate/no_turbo"))
	if err == nil {
		return s == "0", nil
	}
	for _, name := range []string{path.Join(cpuDir, "cpufreq/boost"), path.Join(policy, "boost")} {
		if s, err = f.Text(name); err == nil {
			return s == "1", nil
		}
	}
	return false, errors.New("the frequency driver does not report it")
}

// baseClock returns the guaranteed clock by the driver (kHz), by ACPI (MHz),
// or by the model name: "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz".
func (f FS) baseClock(policies []string, model *string) *int64 {
	if len(policies) > 0 {
		if hz, err := f.kiloHertz(path.Join(policies[0], "base_frequency")); err == nil {
			return &hz
		}
	}
	if mhz, err := f.Number64(path.Join(cpuDir, "cpu0/acpi_cppc/nominal_freq")); err == nil && mhz > 0 && mhz < 1<<20 {
		return new(mhz * 1_000_000)
	}
	if model == nil {
		return nil
	}
	m := regexp.MustCompile(`@ *([0-9]{1,4}(?:\.[0-9]{1,4})?) *([GM])Hz`).FindStringSubmatch(*model)
	if m == nil {
		return nil
	}
	clock, err := strconv.ParseFloat(m[1], 64)
	if err != nil || clock == 0 {
		return nil
	}
	unit := 1e9
	if m[2] == "M" {
		unit = 1e6
	}
	return new(int64(math.Round(clock * unit)))
}

// idle reads the deepest idle state that the first CPU may enter
// (Documentation/admin-guide/pm/cpuidle.rst): one that is not disabled and
// whose exit latency is within the limit that programs such as tuned set (PM
// QoS).
func (h *Host) idle(n *notes, p *measure.Processors, cpu int) {
	f := h.fs
	p.IdleDriver = keeper[string](n, "cpu.idle_driver")(f.Text(path.Join(cpuDir, "cpuidle/current_driver")))
	dir := path.Join(cpuDir, fmt.Sprint("cpu", cpu), "cpuidle")
	states, err := f.Numbered(dir, "state")
	if err != nil || len(states) == 0 {
		n.add("cpu.deepest_idle", "the kernel has no idle states, or leaves them to the hypervisor")
		return
	}
	limit := int64(math.MaxInt64)
	if h.system != nil {
		if usec, err := h.system.latencyLimit(); err == nil {
			limit = int64(usec)
		} else {
			n.add("cpu.idle_limit", err.Error())
		}
	}
	for _, number := range slices.Backward(states) {
		state := path.Join(dir, fmt.Sprint("state", number))
		usec, err := f.Number64(path.Join(state, "latency"))
		name := f.Optional(path.Join(state, "name"))
		off := f.Optional(path.Join(state, "disable"))
		if err != nil || name == "" || usec < 0 || usec > math.MaxInt64/1000 {
			n.add("cpu.deepest_idle", "/"+state+" has no name or no latency")
			return
		}
		if off != "" && off != "0" || usec > limit {
			continue
		}
		p.IdleState, p.IdleExit = &name, new(usec*1000)
		return
	}
	n.add("cpu.deepest_idle", "all idle states are disabled")
}
