package compare

import (
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// layerSubjects returns the layers of a transfer. The transfers themselves decide; the layers below them, measured
// for comparison, are baselines.
func layerSubjects(d *measure.Document) (all []*subject) {
	t := d.Transfer
	var last *subject
	for i := range t.Layers {
		l := &t.Layers[i]
		s := newLayer(d, l.Name, runOf(t, l.Name))
		if s.figure == nil {
			s.figure = ranged(l.Bps, l.Low, l.High)
		}
		if s.baseline && s.figure == nil { // not every transfer measures each of them
			continue
		}
		if s.baseline && strings.HasPrefix(l.Name, "disk") {
			s.settings = append(s.settings, setting{name: "how the disk was measured", value: l.How})
		}
		all = append(all, s)
	}
	for _, name := range []string{measure.LayerMemory, measure.LayerWhole} {
		of := func(s *subject) bool { return s.name == layerName(t, name) }
		if !slices.ContainsFunc(all, of) && (runOf(t, name) != nil || d.Error != nil) {
			all = append(all, newLayer(d, name, runOf(t, name)))
		}
	}
	if t.Small != nil {
		s := newLayer(d, "small files", t.Small)
		s.settings = append(s.settings, refusing("small files", strconv.Itoa(t.Small.Files), unit.Plural(t.Small.Files, "file")))
		all = append(all, s)
	}
	for _, s := range all {
		if !s.baseline && s.figure != nil {
			last = s
		}
	}
	if last != nil { // the limit of the whole is reported once
		last.finding = firstFinding(d.Findings)
	}
	return all
}

// layerName words what was measured: "sftp download, protocol over disk".
func layerName(t *measure.Transfer, layer string) string {
	return t.Protocol + " " + t.Direction + ", " + layer
}

// runOf returns the transfer of a layer; nil if it has none.
func runOf(t *measure.Transfer, layer string) *measure.TransferRun {
	for i := range t.Runs {
		if t.Runs[i].Layer == layer {
			return &t.Runs[i]
		}
	}
	return nil
}

// newLayer returns a layer with the figure of its run, if it has one.
func newLayer(d *measure.Document, layer string, run *measure.TransferRun) *subject {
	t := d.Transfer
	s := &subject{doc: d, family: transfers, kind: transfers + ";" + t.Direction + ";" + layer, name: layerName(t, layer), key: "goodput_bps", why: without(d)}
	s.from, s.to = t.Ends()
	s.baseline = !slices.Contains([]string{measure.LayerMemory, measure.LayerWhole, "small files"}, layer)
	s.settings = transferSettings(d, run, s.baseline)
	switch {
	case run == nil:
	case run.Error != nil:
		s.why = run.Error.Message
	case run.Bps != nil && isRate(run.Bps.Value):
		s.figure = run.Bps
	}
	return s
}

// transferSettings returns those of a transfer. The amount transferred is only reported: it is chosen by what the
// path carries.
func transferSettings(d *measure.Document, run *measure.TransferRun, below bool) []setting {
	t := d.Transfer
	a := &t.Asked
	all := []setting{
		refusing("clients", strconv.Itoa(max(a.Clients, 1)), worded(a.Clients > 1, unit.Plural(a.Clients, "client"))),
		{name: "file", value: t.URL, distinguishes: true},
		{name: "thru", value: d.Thru},
	}
	if below {
		return all
	}
	all = append([]setting{
		refusing("protocol", t.Protocol, ""),
		refusing("block", sizeOr(a.BlockBytes, "default"), worded(a.BlockBytes > 0, "blocks of "+unit.Size(a.BlockBytes))),
		refusing("socket buffers", sizeOr(a.BufferBytes, "default"), worded(a.BufferBytes > 0, "socket buffers of "+unit.Size(a.BufferBytes))),
	}, all...)
	all = append(all,
		setting{name: "size", value: sizeOr(a.Bytes, "")},
		setting{name: "data from", value: a.From},
		setting{name: "client", value: t.Client},
		setting{name: "server", value: t.Server},
		setting{name: "certificate or host key", value: t.Identity},
		setting{name: "agreed with the server", value: strings.Join(t.Agreed, "; ")},
	)
	if run != nil && run.Error == nil {
		all = append(all, setting{name: "checksum", value: yesNo(run.CRC32C != "" || run.SHA256 != "" || run.Checked != nil)})
	}
	return all
}
