package knob

import (
	"slices"
	"strings"

	"thru/internal/measure"
)

// Kept returns the changes that a tuning has left at a host and that still hold there: one whose facts show
// another value was changed since.
func Kept(f *measure.Facts) []measure.Changed {
	if f == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(f.Tuned), func(c measure.Changed) bool {
		now := FromFacts(f, c.Knob, c.Interface)
		return now != "" && !Same(now, c.Value) && !Same(now, brief(c.Knob, c.Value))
	})
}

// brief returns a value without the parts that it stands for: "on" for "on tx=on".
func brief(id, value string) string {
	if Offload(id) != "" {
		value, _, _ = strings.Cut(strings.TrimSpace(value), " ")
	}
	return value
}

// TakesBack reports whether a setting restores the value of a knob from before a change.
func TakesBack(c measure.Changed, s measure.Setting) bool {
	return c.Knob == s.Knob && c.Interface == s.Interface && Same(brief(c.Knob, c.Before), brief(s.Knob, s.Value)) && !Same(c.Before, c.Value)
}

// Against returns the kept changes of a host that a command of its system reverts.
func Against(os string, f *measure.Facts, command string) (kept []measure.Changed) {
	for _, c := range Kept(f) {
		back := c.Setting
		back.Value = brief(c.Knob, c.Before)
		if slices.ContainsFunc(By(os, f, back, brief(c.Knob, c.Value)).Set, func(own string) bool { return holds(command, own) }) {
			kept = append(kept, c)
		}
	}
	return kept
}

// holds reports whether a command includes another one: "ethtool -K eth0 tso on gso on" includes "ethtool -K eth0
// tso on".
func holds(command, other string) bool {
	words := strings.Fields(other)
	if command == other || len(words) < 4 {
		return command == other
	}
	head, last := strings.Join(words[:len(words)-2], " "), strings.Join(words[len(words)-2:], " ")
	return strings.HasPrefix(command, head+" ") && strings.Contains(command+" ", " "+last+" ")
}
