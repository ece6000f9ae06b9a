package host

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

// group is the place of a process in one control group hierarchy.
type group struct {
	controllers []string // empty: version 2
	path        string
}

// parseCgroup reads /proc/self/cgroup: "4:cpu,cpuacct:/docker/abc", and
// "0::/path" for version 2 (cgroups(7)). A path may hold colons.
func parseCgroup(text string) ([]group, error) {
	var all []group
	for line := range tree.Lines(text) {
		f := strings.SplitN(line, ":", 3)
		if len(f) != 3 || !strings.HasPrefix(f[2], "/") {
			return nil, fmt.Errorf("%s is not a control group", quoted(line))
		}
		g := group{path: f[2]}
		if f[1] != "" {
			g.controllers = strings.Split(f[1], ",")
		}
		all = append(all, g)
	}
	return all, tree.UnlessEmpty(len(all), "no control groups")
}

// levels holds the folders of a group and of its parents, the group itself
// first.
type levels struct {
	version int
	path    string   // the kernel's name of the group
	dirs    []string // below the root of the file tree
}

// cgroup reads the limits that the control groups around this process set.
func (f FS) cgroup(n *notes) *measure.Cgroup {
	groups, mounts, err := f.groupsOf("self")
	var cpu levels
	if err == nil {
		cpu, err = f.levelsOf(groups, mounts, "cpu")
	}
	if err != nil {
		n.add("cgroup", err.Error())
		return nil
	}
	c := &measure.Cgroup{Version: cpu.version, Path: cpu.path, Container: f.container(groups, mounts)}
	quota := keeper[quota](n, "cgroup.quota_cpus")(f.quota(cpu))
	if quota != nil && quota.dir != "" {
		c.QuotaCPUs = &quota.cpus
		if t := keeper[measure.QuotaSpan](n, "cgroup.throttled_periods")(f.throttling(*quota)); t != nil {
			c.Periods, c.Throttled, c.ThrottledNs = &t.Periods, &t.Throttled, &t.ThrottledNs
		}
	}
	if quota != nil && quota.dir == "" && f.hiddenAbove(cpu) {
		n.add("cgroup.quota_cpus", "none in the control groups of this container; parent groups are hidden")
	}
	memory, err := f.levelsOf(groups, mounts, "memory")
	limit := keeper[int64](n, "cgroup.memory_max_bytes")(f.memoryMax(memory, err))
	if limit != nil && *limit < math.MaxInt64 {
		c.MemoryMax = limit
	} else if limit != nil && f.hiddenAbove(memory) {
		n.add("cgroup.memory_max_bytes", "none in the control groups of this container; parent groups are hidden")
	}
	set, err := f.levelsOf(groups, mounts, "cpuset")
	c.CPUs = orNote[[]int](n, "cgroup.cpus")(f.cpuset(set, err))
	return c
}

// groupsOf reads the groups of a process or a thread, and the mounts that
// show groups.
func (f FS) groupsOf(task string) ([]group, []mount, error) {
	groups, err := tree.Parsed(f.Read, path.Join("proc", task, "cgroup"), parseCgroup)
	if err != nil {
		return nil, nil, err
	}
	mounts, err := f.mounts()
	return groups, mounts, err
}

// levelsOf finds the folders of this process's group for one controller. In a
// container the mount shows only a part of the hierarchy, so levelsOf cuts
// off the part of the path above it. Where no mount shows the group, only its
// path is known.
func (f FS) levelsOf(groups []group, mounts []mount, controller string) (levels, error) {
	version := 1
	i := slices.IndexFunc(groups, func(g group) bool { return slices.Contains(g.controllers, controller) })
	if i < 0 {
		version = 2
		i = slices.IndexFunc(groups, func(g group) bool { return g.controllers == nil })
	}
	if i < 0 {
		return levels{}, fmt.Errorf("no control group hierarchy has the controller %s", controller)
	}
	at := groups[i].path
	for _, m := range mounts {
		fits := m.kind == "cgroup2" && version == 2 ||
			m.kind == "cgroup" && version == 1 && slices.Contains(strings.Split(m.options, ","), controller)
		rest, inside := relativeTo(at, m.root)
		if !fits || !inside || !f.Exists(m.point) {
			continue
		}
		l := levels{version: version, path: at}
		for dir := path.Clean("/" + rest); ; dir = path.Dir(dir) {
			l.dirs = append(l.dirs, strings.TrimPrefix(path.Join(m.point, dir), "/"))
			if dir == "/" {
				return l, nil
			}
		}
	}
	return levels{version: version, path: at}, fmt.Errorf("no mounted file system shows the control group %s (%s)", at, controller)
}

// relativeTo returns the part of a path after root.
func relativeTo(at, root string) (rest string, ok bool) {
	if root == "/" {
		return at, !strings.HasPrefix(at, "/..") // outside of this namespace's root
	}
	rest, ok = strings.CutPrefix(at, root)
	if ok && (rest == "" || rest[0] == '/') {
		return rest, true
	}
	// A container without a cgroup namespace has its own group mounted as the
	// root; its path may then lie outside of root.
	return "", at == "/"
}

// hiddenAbove reports whether the host has groups above the highest one
// shown. Only the host's root group has no cgroup.type (version 2), and only
// it has release_agent (version 1) (cgroups(7)).
func (f FS) hiddenAbove(l levels) bool {
	if len(l.dirs) == 0 {
		return false
	}
	top := l.dirs[len(l.dirs)-1]
	if l.version == 2 {
		return f.Exists(path.Join(top, "cgroup.type"))
	}
	return !f.Exists(path.Join(top, "release_agent"))
}

// quota is a CPU time limit and the folder of the group that sets it; ""
// where there is none.
type quota struct {
	cpus float64
	dir  string
}

// quota returns the lowest quota of all levels.
func (f FS) quota(l levels) (quota, error) {
	var least quota
	for _, dir := range l.dirs {
		cpus, err := f.quotaOf(l.version, dir)
		if err != nil {
			return quota{}, err
		}
		if cpus > 0 && (least.dir == "" || cpus < least.cpus) {
			least = quota{cpus, dir}
		}
	}
	return least, nil
}

// QuotaOf returns the lowest quota of the groups around a process, with its
// present counters; nil where there is none.
func (h *Host) QuotaOf(pid int) (*measure.QuotaSpan, error) {
	q, err := h.fs.quotaAround(strconv.Itoa(pid))
	if err != nil || q.dir == "" {
		return nil, err
	}
	t, err := h.fs.throttling(q)
	if err != nil {
		return nil, err
	}
	return &t, nil
}

// quotaAround returns the lowest quota of the groups around a process, given
// by its number or "self". There is none on a kernel without control groups
// and in the root group.
func (f FS) quotaAround(process string) (quota, error) {
	l, err := f.groupsAround(process, "cpu")
	if err != nil {
		return quota{}, unlessAbsent(err)
	}
	return f.quota(l)
}

// quotaOf reads the quota of one group in CPUs; 0 means none. The root group
// has no such file.
func (f FS) quotaOf(version int, dir string) (float64, error) {
	var words []string
	if version == 2 {
		s, err := f.Text(path.Join(dir, "cpu.max")) // "20000 100000", "max 100000"
		if err != nil {
			return 0, unlessAbsent(err)
		}
		words = strings.Fields(s)
	} else {
		s, err := f.Text(path.Join(dir, "cpu.cfs_quota_us"))
		if err != nil {
			return 0, unlessAbsent(err)
		}
		period, err := f.Text(path.Join(dir, "cpu.cfs_period_us"))
		if err != nil {
			return 0, err
		}
		words = []string{s, period}
	}
	if len(words) == 2 && (words[0] == "max" || words[0] == "-1") {
		return 0, nil
	}
	if len(words) == 2 {
		most, err1 := strconv.ParseUint(words[0], 10, 63)
		period, err2 := strconv.ParseUint(words[1], 10, 63)
		if err1 == nil && err2 == nil && most > 0 && period > 0 {
			return float64(most) / float64(period), nil
		}
	}
	return 0, fmt.Errorf("/%s: %s is not a quota", dir, quoted(strings.Join(words, " ")))
}

// throttling reads cpu.stat of the group that sets a quota. Version 2 counts
// microseconds, version 1 nanoseconds
// (Documentation/scheduler/sched-bwc.rst).
func (f FS) throttling(q quota) (measure.QuotaSpan, error) {
	file := path.Join(q.dir, "cpu.stat")
	all, err := tree.Parsed(f.Read, file, tree.Counts)
	if err != nil {
		return measure.QuotaSpan{}, err
	}
	t := measure.QuotaSpan{CPUs: q.cpus, Periods: all["nr_periods"], Throttled: all["nr_throttled"], ThrottledNs: all["throttled_time"]}
	if _, ok := all["nr_throttled"]; !ok {
		return t, fmt.Errorf("/%s has no count of periods", file)
	}
	if usec, ok := all["throttled_usec"]; ok {
		t.ThrottledNs = min(usec, math.MaxInt64/1000) * 1000
	}
	return t, nil
}

// memoryMax returns the lowest limit of all levels in bytes; MaxInt64 means
// no limit. Version 1 writes "no limit" as the greatest number of whole
// pages.
func (f FS) memoryMax(l levels, err error) (int64, error) {
	least := int64(math.MaxInt64)
	for _, dir := range l.dirs {
		name := path.Join(dir, "memory.max")
		if l.version == 1 {
			name = path.Join(dir, "memory.limit_in_bytes")
		}
		s, err := f.Text(name)
		if err != nil && unlessAbsent(err) != nil {
			return 0, err
		}
		if err != nil || s == "max" {
			continue
		}
		most, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/%s: %s is not a limit", name, quoted(s))
		}
		const none = 1 << 60
		if most < none {
			least = min(least, int64(most))
		}
	}
	return least, err
}

// cpuset reads the CPUs of the lowest level that lists them.
func (f FS) cpuset(l levels, err error) ([]int, error) {
	for _, dir := range l.dirs {
		for _, name := range []string{"cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"} {
			cpus, e := f.cpuList(path.Join(dir, name))
			if e == nil {
				return cpus, nil
			}
			err = cmp.Or(err, e)
		}
	}
	return nil, cmp.Or(err, errors.New("no parent control group reports it"))
}

// container returns the kind of container that this process runs in, or "".
// Group paths name it where there is no cgroup namespace; otherwise the
// runtime's mounts or files do.
func (f FS) container(groups []group, mounts []mount) string {
	var signs []string
	for _, g := range groups {
		signs = append(signs, g.path)
	}
	for _, m := range mounts {
		switch {
		case m.kind == "cgroup" || m.point == "/etc/hostname" || m.point == "/etc/hosts" || m.point == "/etc/resolv.conf":
			signs = append(signs, m.root) // the runtime's folder
		case m.point == "/":
			signs = append(signs, m.options) // layers of the root file system
		}
	}
	all := strings.Join(signs, "\n")
	for _, s := range [][2]string{
		{"/kubepods", "kubernetes"}, {"/kubelet/pods/", "kubernetes"}, {"/libpod", "podman"}, {"/containers/storage/", "podman"},
		{"/overlay-containers/", "podman"}, {"/docker/", "docker"}, {"/docker-", "docker"}, {"/lxc/", "lxc"}, {"/lxc.payload", "lxc"},
		{"/crio-", "cri-o"}, {"/io.containerd.", "containerd"},
	} {
		if strings.Contains(all, s[0]) {
			return s[1]
		}
	}
	if name := f.Optional("run/systemd/container"); name != "" {
		return name // systemd(1) as the first process of a container
	}
	switch {
	case f.seesAll() == nil:
		return "" // a machine built from a container image has these files too
	case f.Exists("run/.containerenv"):
		return "podman"
	case f.Exists(".dockerenv"):
		return "docker"
	}
	return ""
}

// GroupQuota is a CPU time limit of one control group, with its present
// counters.
type GroupQuota struct {
	Group string // the group's folder
	measure.QuotaSpan
}

// QuotasOf returns the quotas of all groups around a process or a thread, the
// innermost group first; none where there is no limit.
func (h *Host) QuotasOf(task int) ([]GroupQuota, error) {
	l, err := h.fs.groupsAround(strconv.Itoa(task), "cpu")
	if err != nil {
		return nil, err
	}
	var all []GroupQuota
	for _, dir := range l.dirs {
		cpus, err := h.fs.quotaOf(l.version, dir)
		if err != nil {
			return nil, err
		}
		if cpus <= 0 {
			continue
		}
		t, err := h.fs.throttling(quota{cpus, dir})
		if err != nil {
			return nil, err
		}
		all = append(all, GroupQuota{dir, t})
	}
	return all, nil
}

// Throttled reads the counters of a group that QuotasOf returned.
func (h *Host) Throttled(group string) (measure.QuotaSpan, error) {
	return h.fs.throttling(quota{dir: group})
}

// MemoryMaxOf returns the lowest memory limit of the groups around a process,
// in bytes; nil means no limit.
func (h *Host) MemoryMaxOf(pid int) (*int64, error) {
	l, err := h.fs.groupsAround(strconv.Itoa(pid), "memory")
	if err != nil {
		return nil, err
	}
	most, err := h.fs.memoryMax(l, nil)
	if err != nil || most == math.MaxInt64 {
		return nil, err
	}
	return &most, nil
}

// CPUWeightOf returns the CPU weight of a process's innermost group, which
// counts where CPUs are short: the default is 100 in version 2 and 1024 in
// version 1 (cpu.weight, cpu.shares).
func (h *Host) CPUWeightOf(pid int) (int64, error) {
	l, err := h.fs.groupsAround(strconv.Itoa(pid), "cpu")
	if err == nil && len(l.dirs) == 0 {
		err = errors.New("the root of all groups has none")
	}
	if err != nil {
		return 0, err
	}
	file := "cpu.weight"
	if l.version == 1 {
		file = "cpu.shares"
	}
	return h.fs.Number64(path.Join(l.dirs[0], file))
}

// groupsAround returns the groups of a process or a thread for one
// controller.
func (f FS) groupsAround(task, controller string) (levels, error) {
	groups, mounts, err := f.groupsOf(task)
	if err != nil {
		return levels{}, err
	}
	l, err := f.levelsOf(groups, mounts, controller)
	if err != nil && l.path == "/" && f.seesAll() == nil {
		return levels{}, nil // the /sys of a network namespace shows no groups (ip-netns(8)); the root group limits nothing
	}
	return l, err
}
