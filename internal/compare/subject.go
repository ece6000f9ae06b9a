package compare

import (
	"strings"

	"thru/internal/measure"
)

// subject is a figure of a result that can be measured again: a flow (flow.go), a
// pattern of a disk (disk.go), or a layer of a transfer (transfer.go).
type subject struct {
	doc      *measure.Document
	family   string // of flows, disks or transfers
	from, to string // end points; of a disk twice the same
	place    string // folder of a disk
	kind     string // what no other is ever held against
	name     string // what was measured: "TCP", "random read"
	baseline bool   // it decides nothing
	settings []setting
	varied   string // what a plan varied beside the settings, in words

	key    string          // of the figure in the result
	figure *measure.Figure // nil: it has none
	values []float64       // of its runs; of none its figure
	why    string          // it has no figure

	guarded *measure.Cell    // what guardrails read; nil: nothing stands beside the figure
	finding *measure.Finding // what held it back; nil: nothing was found
	flow    *measure.Cell    // nil of what is no flow
	disk    *measure.DiskTest
}

// Families of subjects.
const (
	flows     = "flow"
	disks     = "disk"
	transfers = "transfer"
)

// subjectsOf are those of a result. Of a transfer they are its layers, which hold
// the figures of its network and of its disks too.
func subjectsOf(d *measure.Document) []*subject {
	switch {
	case d.Transfer != nil:
		return layerSubjects(d)
	case len(d.Disks) > 0:
		return diskSubjects(d)
	}
	return flowSubjects(d)
}

// setting is one thing that was asked of a measurement, or by which it was made.
type setting struct {
	name          string
	value         string
	shown         string // with its noun, where it belongs to what people call it
	refuses       bool   // figures under two values of it are of different things
	distinguishes bool   // it tells two of one result apart, and refuses nothing
}

// refusing is a setting under two values of which figures are of different things.
func refusing(name, value, shown string) setting {
	return setting{name: name, value: value, shown: shown, refuses: true}
}

// identity names all settings by which subjects of one kind are told apart.
func (s *subject) identity() string {
	var words []string
	for _, x := range s.settings {
		if x.refuses || x.distinguishes {
			words = append(words, x.name+"="+x.value)
		}
	}
	return strings.Join(words, ";")
}

// what is the subject in words: "TCP, 4 streams".
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

// differing are the settings that are not the same on both sides; of a range
// those of its newest result.
func differing(a, b *subject) (all []measure.SettingDiff) {
	with := map[string]string{}
	for _, s := range b.settings {
		with[s.name] = s.value
	}
	for _, s := range a.settings {
		if is := with[s.name]; is != s.value && (s.refuses || s.value != "" && is != "") {
			all = append(all, measure.SettingDiff{Name: s.name, Before: s.value, After: is, Refuses: s.refuses})
		}
	}
	return all
}

// nounOf is what the subjects of both sides are called together.
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

// directionText is between whom: "local -> peer", or the one host.
func directionText(from, to string) string {
	if from == to {
		return from
	}
	return measure.PairName(from, to)
}

// ranged is a rate with no doubt but the range of its seconds; nil of none.
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

// without is why a result has no figure of something: how it ended.
func without(d *measure.Document) string {
	if d.Error != nil && d.Error.Message != "" {
		return d.Error.Message
	}
	return "it has no figure"
}
