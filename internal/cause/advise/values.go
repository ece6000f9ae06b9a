package advise

import (
	"slices"
	"strings"
)

// Pairs splits a value of alternating names and values ("rx-0 3 rx-1 3").
func Pairs(value string) (names []string, values map[string]string) {
	fields := strings.Fields(value)
	values = map[string]string{}
	for i := 0; i+1 < len(fields); i += 2 {
		if _, twice := values[fields[i]]; !twice {
			names = append(names, fields[i])
		}
		values[fields[i]] = fields[i+1]
	}
	return names, values
}

// With replaces pairs of such a value and keeps the others; it appends names that are missing.
func With(value string, change ...string) string {
	names, values := Pairs(value)
	for i := 0; i+1 < len(change); i += 2 {
		if !slices.Contains(names, change[i]) {
			names = append(names, change[i])
		}
		values[change[i]] = change[i+1]
	}
	var out []string
	for _, name := range names {
		out = append(out, name, values[name])
	}
	return strings.Join(out, " ")
}

// RoundUp rounds up to a multiple, for values that a person would choose.
func RoundUp(n, step int64) int64 { return (n + step - 1) / step * step }
