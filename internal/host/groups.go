package host

import (
	"errors"
	"math"
	"path"
	"strconv"

	"thru/internal/measure"
)

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
