package compare

import (
	"slices"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// diskSubjects returns the patterns of each disk, and the same in memory as baselines. In an aborted result the
// missing patterns have no figure.
func diskSubjects(d *measure.Document) (all []*subject) {
	for i := range d.Disks {
		t := &d.Disks[i]
		for k := range t.Runs {
			all = append(all, diskSubject(d, t, &t.Runs[k]))
		}
		for k := range t.Memory {
			all = append(all, diskSubject(d, t, &t.Memory[k]))
		}
		for _, p := range measure.DiskPatterns() {
			if d.Error != nil && !slices.ContainsFunc(t.Runs, func(r measure.DiskRun) bool { return r.Pattern == p }) {
				all = append(all, diskSubject(d, t, &measure.DiskRun{Pattern: p}))
			}
		}
	}
	return all
}

// diskSubject returns one pattern: its figure is accesses per second for random, bytes per second for sequential
// access. Results with different block sizes are not compared, so each figure implies the other.
func diskSubject(d *measure.Document, t *measure.DiskTest, r *measure.DiskRun) *subject {
	s := &subject{doc: d, family: disks, from: t.Where, to: t.Where, place: t.Path, kind: disks + ";" + r.Pattern + ";" + r.Target, name: r.Pattern, baseline: r.Target != "", disk: t}
	s.settings = diskSettings(d, t, r)
	if s.baseline {
		s.name += " of " + r.Target
	}
	f := r.Bytes
	if s.key = "bytes_per_s"; strings.HasPrefix(r.Pattern, "random") {
		s.key, f = "iops", r.IOPS
	}
	if f == nil || !isRate(f.Value) {
		s.why = without(d)
		return s
	}
	s.figure, s.guarded = f, &measure.Cell{Latency: r.Latency, Streams: r.Workers}
	return s
}

// diskSettings returns those of a pattern. Two methods make the same accesses, so they are only reported; a
// different way of avoiding the page cache gives an incomparable figure.
func diskSettings(d *measure.Document, t *measure.DiskTest, r *measure.DiskRun) []setting {
	all := []setting{
		refusing("block", sizeOr(r.BlockBytes, "default"), worded(r.BlockBytes > 0, "blocks of "+unit.Size(r.BlockBytes))),
		{name: "folder", value: t.Path, distinguishes: true},
		{name: "method", value: t.Method},
		{name: "file", value: sizeOr(t.FileBytes, "")},
		{name: "measured time", value: timeText(r.ElapsedNs)},
		{name: "thru", value: d.Thru},
	}
	if r.Target == "" {
		cache, _, _ := strings.Cut(t.Cache, ":")
		cache, _, _ = strings.Cut(cache, ",")
		all = append(all, refusing("page cache", cache, ""))
	}
	return all
}

// sizeOr formats a number of bytes, or returns none.
func sizeOr(n int64, none string) string {
	if n <= 0 {
		return none
	}
	return unit.Size(n)
}

// timeText formats a requested time in whole seconds, or a measured one in tenths.
func timeText(ns int64) string {
	const tenth = 1e8
	switch {
	case ns < tenth:
		return ""
	case ns < 10*tenth:
		return spanText((ns + tenth/2) / tenth * tenth)
	}
	return spanText((ns + 5*tenth) / (10 * tenth) * (10 * tenth))
}

// diskChanges returns the changed facts of measured disks.
func diskChanges(pairs []matched) (all []measure.FactChange) {
	valuesText := map[string]bool{}
	for _, p := range pairs {
		was, is := p.before.newest().disk, p.after.newest().disk
		if was == nil || is == nil || valuesText[p.after.from+"\n"+p.after.place] {
			continue
		}
		valuesText[p.after.from+"\n"+p.after.place] = true
		before := diskFacts(was)
		for i, f := range diskFacts(is) {
			if b := before[i]; b.value != f.value && b.value != "" && f.value != "" {
				all = append(all, measure.FactChange{Of: p.after.from, Fact: "disks[" + p.after.place + "]." + f.name, Name: f.shown + " of " + p.after.place, Before: b.value, After: f.value})
			}
		}
	}
	return all
}

// diskFacts returns the facts of a disk test's device, in a fixed order.
func diskFacts(t *measure.DiskTest) []setting {
	turns := ""
	if t.Rotational != nil {
		turns = yesNo(*t.Rotational)
	}
	return []setting{
		{name: "device", value: t.Device, shown: "device"}, {name: "model", value: t.Model, shown: "model of the device"}, {name: "rotational", value: turns, shown: "rotation of the device"},
		{name: "file_system", value: t.FileSystem, shown: "file system"}, {name: "mount_options", value: t.Options, shown: "mount options"}, {name: "scheduler", value: t.Scheduler, shown: "I/O scheduler"},
	}
}
