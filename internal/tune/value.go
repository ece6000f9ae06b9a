package tune

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/cause/knob"
	"thru/internal/unit"
)

// maxText limits a value in bytes: an interface may have a thousand queues.
const maxText = 64 << 10

// pair is an element of a value with many: a queue and its CPUs, a field and
// its number.
type pair struct{ name, value string }

// pairs splits a value into its elements. Each name occurs once.
func pairs(value string) ([]pair, error) {
	words := strings.Fields(value)
	if len(words) == 0 || len(words)%2 != 0 || len(value) > maxText {
		return nil, fmt.Errorf("%.80q is not a list of names and values", value)
	}
	list := make([]pair, 0, len(words)/2)
	seen := map[string]bool{}
	for i := 0; i < len(words); i += 2 {
		if seen[words[i]] {
			return nil, fmt.Errorf("%.80q is given twice", words[i])
		}
		seen[words[i]] = true
		list = append(list, pair{words[i], words[i+1]})
	}
	return list, nil
}

// joined returns the text of pairs.
func joined(list []pair) string {
	words := make([]string, 0, 2*len(list))
	for _, p := range list {
		words = append(words, p.name, p.value)
	}
	return strings.Join(words, " ")
}

// inForce reports whether a value that was read has what was requested. Of
// many elements only the requested ones count. Both values are in the knob's
// form.
func inForce(id, asked, found string) bool {
	if asked == found {
		return true
	}
	switch id {
	case knob.Channels, knob.Coalescing, knob.RSSHash, knob.RPS, knob.XPS, knob.IRQAffinity, knob.Pause, knob.Governor:
	default:
		return false
	}
	want, err := pairs(asked)
	if err != nil {
		return false
	}
	if have, err := pairs(found); err == nil {
		return len(differing(have, want)) == 0
	}
	return !slices.ContainsFunc(want, func(p pair) bool { return p.value != found }) // one word for all
}

// differing returns the elements of want that differ in have.
func differing(have, want []pair) []pair {
	return unit.Filtered(want, func(p pair) bool { return !slices.Contains(have, p) })
}

// each sets the elements of a value that differ from the present ones.
func each(before, value string, set func(pair) error) error {
	have, err := pairs(before)
	if err != nil {
		return err
	}
	want, err := pairs(value)
	if err != nil {
		return err
	}
	for _, p := range want {
		if !slices.ContainsFunc(have, func(h pair) bool { return h.name == p.name }) {
			return fmt.Errorf("there is no %q", p.name)
		}
	}
	for _, p := range differing(have, want) {
		if err := set(p); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// pairsOf returns a form function for values whose elements all have the same
// form.
func pairsOf(form func(string) (string, error)) func(string) (string, error) {
	return namedPairs(func(_, value string) (string, error) { return form(value) })
}

// namedPairs is pairsOf for a form that depends on the name.
func namedPairs(form func(name, value string) (string, error)) func(string) (string, error) {
	return func(value string) (string, error) {
		list, err := pairs(value)
		if err != nil {
			return "", err
		}
		for i, p := range list {
			if list[i].value, err = form(p.name, p.value); err != nil {
				return "", fmt.Errorf("%.80q: %w", p.name, err)
			}
		}
		return joined(list), nil
	}
}

// numbers returns the form of n whole numbers.
func numbers(n int) func(string) (string, error) {
	return func(value string) (string, error) {
		words := strings.Fields(value)
		if len(words) != n {
			return "", fmt.Errorf("%.80q does not consist of %d number%s", value, n, map[bool]string{false: "s"}[n == 1])
		}
		for i, w := range words {
			v, err := strconv.ParseInt(w, 10, 64)
			if err != nil {
				return "", fmt.Errorf("%.80q is not a number", w)
			}
			words[i] = strconv.FormatInt(v, 10)
		}
		return strings.Join(words, " "), nil
	}
}

// amounts returns the form of n whole numbers that are not negative.
func amounts(n int) func(string) (string, error) {
	form := numbers(n)
	return func(value string) (string, error) {
		text, err := form(value)
		if err == nil && strings.Contains(text, "-") {
			return "", fmt.Errorf("%.80q is negative", text)
		}
		return text, err
	}
}

// word checks a name: of a congestion control, a discipline, a governor.
func word(value string) (string, error) {
	value = strings.TrimSpace(value)
	if value == "" || len(value) > 32 || strings.Trim(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != "" {
		return "", fmt.Errorf("%.80q is not a name", value)
	}
	return value, nil
}

// onOff checks a value of "on" or "off".
func onOff(value string) (string, error) {
	if value != "on" && value != "off" {
		return "", fmt.Errorf(`%.80q is neither "on" nor "off"`, value)
	}
	return value, nil
}

// mask returns a CPU mask in the form of /sys, without leading zeros:
// hexadecimal, in groups of 8 digits, the highest first (lib/vsprintf.c,
// bitmap_string).
func mask(value string) (string, error) {
	var digits strings.Builder
	for group := range strings.SplitSeq(strings.TrimSpace(value), ",") {
		if group == "" || len(group) > 8 || strings.Trim(group, "0123456789abcdefABCDEF") != "" || digits.Len() > unit.MaxCPU/4 {
			return "", fmt.Errorf("%.80q is not a CPU mask", value)
		}
		digits.WriteString(strings.Repeat("0", 8-len(group)) + strings.ToLower(group))
	}
	all := strings.TrimLeft(digits.String(), "0")
	if all == "" {
		return "0", nil
	}
	var groups []string
	for ; len(all) > 8; all = all[:len(all)-8] {
		groups = append(groups, all[len(all)-8:])
	}
	groups = append(groups, all)
	slices.Reverse(groups)
	return strings.Join(groups, ","), nil
}

// cpus returns a list of CPUs in its canonical form: "0-3,8".
func cpus(value string) (string, error) {
	list, err := unit.ParseList(value, unit.MaxCPU)
	return unit.List(list), err
}

// queueTable returns an indirection table in its canonical form: a queue for
// each entry.
func queueTable(value string) (string, error) {
	if n := len(strings.Fields(value)); n == 0 || len(value) > maxText {
		return "", errors.New("not a table of queues")
	}
	words := strings.Fields(value)
	for i, w := range words {
		q, err := strconv.ParseUint(w, 10, 16)
		if err != nil {
			return "", fmt.Errorf("%.80q is not a queue", w)
		}
		words[i] = strconv.FormatUint(q, 10)
	}
	return strings.Join(words, " "), nil
}
