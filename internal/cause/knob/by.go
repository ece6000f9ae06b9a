package knob

import (
	"slices"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Platforms returns the systems for which By has commands.
func (k Knob) Platforms() []string {
	return slices.DeleteFunc(Systems(), func(os string) bool {
		_, worded := wordsOf(os)[k.ID]
		return !worded && (k.Scope != OfTest || os == "esxi") // where thru itself runs
	})
}

// By words a setting for a system ("linux", "freebsd", ...). before is the value before in the same form, "" if it
// is not known; it then comes from the host's facts, which may be nil. If those lack it too, the reader has to
// fill it in, and gets the command that shows it.
func By(os string, f *measure.Facts, s measure.Setting, before string) Words {
	if before == "" {
		before = FromFacts(f, s.Knob, s.Interface)
	}
	w := &wording{os: os, facts: f, set: s, before: before}
	if k, ok := Find(s.Knob); ok {
		if k.Scope == OfTest {
			return w.option(k)
		}
		w.knob = k
		if do := wordsOf(os)[s.Knob]; do != nil {
			do(w)
		}
	}
	return w.words()
}

// wordsOf returns the wording of each knob for one system.
func wordsOf(os string) map[string]func(*wording) { return wordings()[os] }

var wordings = unit.Once(func() map[string]map[string]func(*wording) {
	return map[string]map[string]func(*wording){
		"linux": linux(), "freebsd": freebsd(), "darwin": darwin(), "windows": windows(), "solaris": sun(), "illumos": sun(), "esxi": esxi(),
	}
})
