package compare

import (
	"strings"

	"thru/internal/measure"
)

// subject is a figure of a result that can be measured again: a flow (flow.go), a pattern of a disk (disk.go), or
// a layer of a transfer (transfer.go).
type subject struct {
	doc      *measure.Document
	family   string // flows, disks or transfers
	from, to string // end points; for a disk both are the same
	place    string // folder of a disk
	kind     string // only subjects of the same kind are compared
	name     string // what was measured: "TCP", "random read"
	baseline bool   // it does not count for the outcome
	settings []setting
	varied   string // what a plan varied besides the settings, in words

	key    string          // of the figure in the result
	figure *measure.Figure // nil: it has none
	values []float64       // of its runs; without runs its figure
	why    string          // why it has no figure

	guarded *measure.Cell    // source of the guardrails; nil: none
	finding *measure.Finding // what limited it; nil: nothing was found
	flow    *measure.Cell    // nil if it is no flow
	disk    *measure.DiskTest
}

// Families of subjects.
const (
	flows     = "flow"
	disks     = "disk"
	transfers = "transfer"
)

// subjectsOf returns those of a result. For a transfer these are its layers, which include the figures of its
// network and of its disks.
func subjectsOf(d *measure.Document) []*subject {
	switch {
	case d.Transfer != nil:
		return layerSubjects(d)
	case len(d.Disks) > 0:
		return diskSubjects(d)
	}
	return flowSubjects(d)
}

// setting is one requested option of a measurement, or how it was made.
type setting struct {
	name          string
	value         string
	shown         string // with its noun, if it is part of the name
	refuses       bool   // figures under two values of it are not comparable
	distinguishes bool   // it distinguishes two of one result, and prevents no comparison
	affects       bool   // the user chooses it, and it affects the figure
}

// refusing returns a setting that makes figures under two values incomparable.
func refusing(name, value, shown string) setting {
	return setting{name: name, value: value, shown: shown, refuses: true}
}

// identity returns all settings that distinguish subjects of one kind.
func (s *subject) identity() string {
	var words []string
	for _, x := range s.settings {
		if x.refuses || x.distinguishes {
			words = append(words, x.name+"="+x.value)
		}
	}
	return strings.Join(words, ";")
}

// what words the subject: "TCP, 4 streams".
func (s *subject) what() string {
	words := []string{s.name}
	for _, x := range s.settings {
		if x.refuses && x.shown != "" {
			words = append(words, x.shown)
		}
	}
	if s.varied != "" {
		words = append(words, s.varied)
	}
	return strings.Join(words, ", ")
}

// differing returns the settings that differ between the sides; for a range those of its newest result.
func differing(a, b *subject) (all []measure.SettingDiff) {
	with := map[string]string{}
	for _, s := range b.settings {
		with[s.name] = s.value
	}
	for _, s := range a.settings {
		if is := with[s.name]; is != s.value && (s.refuses || s.value != "" && is != "") {
			all = append(all, measure.SettingDiff{Name: s.name, Before: s.value, After: is, Refuses: s.refuses, Affects: s.affects})
		}
	}
	return all
}

// nounOf returns the common noun for the subjects of both sides.
func nounOf(sides ...*side) string {
	for _, s := range sides {
		for _, d := range s.docs {
			if d.Transfer != nil || len(d.Disks) > 0 {
				return "figure"
			}
		}
	}
	return flows
}

// directionText words the ends: "local -> peer", or the one host.
func directionText(from, to string) string {
	if from == to {
		return from
	}
	return measure.PairName(from, to)
}

// ranged returns a rate whose only uncertainty is the range of its seconds; nil for none.
func ranged(value, low, high *float64) *measure.Figure {
	if value == nil || !isRate(*value) {
		return nil
	}
	f := &measure.Figure{Value: *value, Low: *value, High: *value, Runs: 1}
	if low != nil && high != nil && isRate(*low) && isRate(*high) && *low <= *high {
		f.Low, f.High = *low, *high
	}
	return f
}

// without returns why a result lacks a figure: how it ended.
func without(d *measure.Document) string {
	if d.Error != nil && d.Error.Message != "" {
		return d.Error.Message
	}
	return "it has no figure"
}
