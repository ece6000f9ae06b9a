package transfer

import (
	"fmt"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Brief returns the short form of a transfer: what each layer carries, and what went wrong.
func (m *View) Brief() []doc.Block {
	t := m.Layers()
	t.Caption = ""
	return []doc.Block{t, doc.Pairs{Rows: doc.BriefRows(m.Rows)}}
}

// BriefDisks returns the short form of disk tests: a line for each pattern, with what limits it, and the method. It
// also returns the number of facts that are not known.
func BriefDisks(tests []measure.DiskTest) (all []doc.Block, missing int) {
	for i := range tests[:min(len(tests), maxDisks)] {
		t := &tests[i]
		g := doc.Table{Columns: append(doc.FigureColumns("pattern", "rate", "p50", "p99", "device busy"), doc.Column{Name: "limited by", Least: 12})}
		for j := range t.Runs {
			g.Rows = append(g.Rows, briefRun(t, &t.Runs[j]))
		}
		how := doc.Join(t.Method, doc.Prefixed("page cache: ", t.Cache))
		all = append(all, g.WithoutEmpty(), doc.Pairs{Rows: []doc.Row{{Name: "measured with", Value: doc.Clean(how)}}})
		missing += len(t.Missing)
	}
	return all, missing
}

func briefRun(t *measure.DiskTest, r *measure.DiskRun) []string {
	row := []string{doc.Clean(r.Pattern), "-", "-", "-", "-", diskLimit(t, r)}
	switch {
	case strings.HasPrefix(r.Pattern, "random") && r.IOPS != nil:
		row[1] = doc.PerSecond(r.IOPS.Value) + " IOPS"
	case r.Bytes != nil:
		row[1] = doc.ByteRate(r.Bytes.Value)
	}
	if l := r.Latency; l != nil {
		row[2], row[3] = doc.ShortTime(l.P50), doc.ShortTime(l.P99)
	}
	if r.BusyPct != nil {
		row[4] = unit.Percent(*r.BusyPct)
	}
	return row
}

// diskLimit words what limits a pattern.
func diskLimit(t *measure.DiskTest, r *measure.DiskRun) string {
	if r.Bytes == nil {
		return "-"
	}
	switch stat.DiskLimitOf(t, r) {
	case stat.DiskWorkers:
		return fmt.Sprintf("too few workers (%d)", r.Workers)
	case stat.DiskCPU:
		return "all CPUs are busy"
	case stat.DiskMemory:
		return "memory of the machine"
	case stat.DiskDevice:
		return "the device"
	}
	return "not known"
}
