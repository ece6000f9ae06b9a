package transfer

import (
	"cmp"
	"fmt"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/stat"
	"thru/internal/unit"
)

// maxDisks limits the disks of a page; the JSON document has all.
const maxDisks = 16

// byteSpan prints a range of byte rates: "3.06-3.28 GB/s".
func byteSpan(low, high float64) string {
	from, unitFrom, _ := strings.Cut(doc.ByteRate(low), " ")
	to, unitTo, _ := strings.Cut(doc.ByteRate(high), " ")
	if unitFrom != unitTo {
		from += " " + unitFrom
	}
	return from + "-" + to + " " + unitTo
}

// DiskLive returns a line about a running disk test.
func DiskLive(t measure.DiskTick) string {
	what := doc.Clean(t.Doing)
	if t.Target != "" {
		what += ", baseline in " + doc.Clean(t.Target)
	}
	if t.Workers > 0 {
		what += ", " + unit.Plural(t.Workers, "worker")
	}
	what += ": " + doc.ByteRate(t.Bytes)
	if t.Workers > 0 {
		what += ", " + doc.PerSecond(t.IOPS) + " IOPS"
	}
	return fmt.Sprintf("%s (%.0f%%)", what, t.DonePct)
}

// DiskAnswers returns a line for each disk.
func DiskAnswers(d *measure.Document) (all []string) {
	for i := range d.Disks[:min(len(d.Disks), maxDisks)] {
		all = append(all, diskAnswer(&d.Disks[i], result.IsTransfer(d)))
	}
	if n := len(all); n > 0 && d.Error != nil && !result.IsTransfer(d) {
		all[n-1] += " (partial: ended early)"
	}
	return all
}

// diskAnswer returns the rates of a disk in a sentence; inBits adds the unit of networks.
func diskAnswer(t *measure.DiskTest, inBits bool) string {
	var rates []string
	for _, r := range t.Runs {
		verb := map[string]string{
			measure.SequentialRead: "reads", measure.SequentialWrite: "writes", measure.RandomRead: "random reads", measure.RandomWrite: "random writes",
		}[r.Pattern]
		switch {
		case r.Bytes == nil || verb == "":
		case strings.HasPrefix(verb, "random") && r.IOPS != nil:
			rates = append(rates, verb+" "+doc.PerSecond(r.IOPS.Value)+" IOPS")
		case inBits:
			rates = append(rates, verb+" "+unit.Rate(8*r.Bytes.Value)+" ("+doc.ByteRate(r.Bytes.Value)+")")
		default:
			rates = append(rates, verb+" "+doc.ByteRate(r.Bytes.Value))
		}
	}
	what := cmp.Or(strings.Join(rates, ", "), "nothing was measured")
	return diskName(t) + ": " + what
}

// DiskBlocks returns tables of each disk: its rates, the baseline, and the method.
func DiskBlocks(tests []measure.DiskTest) []doc.Block {
	s := doc.Section{Title: "Disk"}
	if charts := diskCharts(tests); len(charts) > 0 {
		s.Body = append(s.Body, doc.Charts{Charts: charts})
	}
	for i := range tests[:min(len(tests), maxDisks)] {
		t := &tests[i]
		gives := doc.Pairs{Name: diskName(t)}
		for _, r := range t.Runs {
			gives.Rows = append(gives.Rows, doc.Row{Name: doc.Clean(r.Pattern), Value: diskRunText(&r)}, doc.Row{Name: "workers tried", Value: triedText(&r)})
			if r.Latency != nil {
				gives.Rows = append(gives.Rows, doc.Row{Name: "latency", Value: result.PercentilesText(r.Latency) + ", max " + doc.ShortTime(r.Latency.Max)})
			}
		}
		memory := doc.Pairs{Name: "Baseline in memory, without the disk"}
		for _, r := range t.Memory {
			memory.Rows = append(memory.Rows, doc.Row{Name: doc.Clean(r.Pattern), Value: doc.Clean(r.Target) + ": " + diskRunText(&r)})
		}
		for _, x := range []doc.Pairs{gives, memory, {Name: "Method", Rows: diskRows(t)}} {
			s.Body = append(s.Body, x)
		}
	}
	return []doc.Block{s}
}

// diskRunText returns the result of one pattern.
func diskRunText(r *measure.DiskRun) string {
	var parts []string
	if r.Bytes != nil {
		s := doc.ByteRate(r.Bytes.Value)
		if result.HasRange(r.Bytes) && doc.ByteRate(r.Bytes.Low) != doc.ByteRate(r.Bytes.High) {
			s += ", each second " + byteSpan(r.Bytes.Low, r.Bytes.High)
		}
		parts = append(parts, s)
	}
	if r.IOPS != nil {
		parts = append(parts, doc.PerSecond(r.IOPS.Value)+" IOPS")
	}
	parts = append(parts, unit.Plural(r.Workers, "worker")+" of "+unit.Size(r.BlockBytes), doc.Known("device busy %s", r.BusyPct, unit.Percent))
	if r.CPU != nil {
		parts = append(parts, "CPU "+stat.ThreeDigits(r.CPU.Cores)+" cores")
		if r.CPU.Pct >= stat.AllCPUs && r.Target == "" {
			parts = append(parts, "all CPUs busy: the disk may be faster")
		}
	}
	return doc.Join(parts...)
}

// diskRows returns the method, and the properties of the disk.
func diskRows(t *measure.DiskTest) (rows []doc.Row) {
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, doc.Row{Name: name, Value: doc.Clean(value)})
		}
	}
	add("method", t.Method)
	add("page cache", t.Cache)
	if t.FileBytes > 0 {
		add("file", fmt.Sprintf("%s; %s free before the test", unit.Size(t.FileBytes), unit.Size(t.FreeBytes)))
	}
	add("file system", doc.Join(t.FileSystem, mountText(t)))
	add("device", doc.Join(t.Device, t.Model, kindOfDisk(t)))
	add("scheduler", t.Scheduler)
	for _, m := range t.Missing {
		add("not checked", m.Fact+": "+m.Why)
	}
	return rows
}

func mountText(t *measure.DiskTest) string {
	if t.Mount == "" {
		return ""
	}
	return "at " + t.Mount + ": " + t.Options
}

func kindOfDisk(t *measure.DiskTest) string {
	switch {
	case t.Rotational == nil:
		return ""
	case *t.Rotational && isVirtual(t):
		return "reports as rotational (a virtual disk: not known)"
	case *t.Rotational:
		return "rotational"
	}
	return "not rotational"
}

// isVirtual reports whether a disk's properties come from its hypervisor: virtio and Xen by the name of the
// device, others by their model.
func isVirtual(t *measure.DiskTest) bool {
	model := strings.ToLower(t.Model)
	return strings.HasPrefix(t.Device, "vd") || strings.HasPrefix(t.Device, "xvd") || strings.Contains(model, "qemu") || strings.Contains(model, "virtual")
}
