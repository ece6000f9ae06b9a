package tree

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// Lines walks over the lines of a text, without their ends.
func Lines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if !yield(strings.TrimSuffix(line, "\n")) {
				return
			}
		}
	}
}

// Fields reads lines "Name: value", as /proc/meminfo, /proc/self/status,
// /proc/net/sockstat and the files of balloons have them. Lines without a
// colon are passed over; of two lines with one name the first counts.
func Fields(text string) (map[string]string, error) {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		if _, twice := all[name]; ok && name != "" && !twice {
			all[name] = strings.TrimSpace(value)
		}
	}
	return all, UnlessEmpty(len(all), "no line with a name")
}

// Counts reads lines "name value", as cpu.stat of a control group and
// /proc/vmstat have them. What is no count is passed over.
func Counts(text string) (map[string]int64, error) {
	all := map[string]int64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, " ")
		if n, err := Count(value); err == nil && name != "" {
			all[name] = n
		}
	}
	return all, UnlessEmpty(len(all), "no counts")
}

// UnlessEmpty is the error of a parser that has found none of what it looks for.
func UnlessEmpty(found int, why string) error {
	if found == 0 {
		return errors.New(why)
	}
	return nil
}

// Count reads a number of events.
func Count(s string) (int64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%.40q is no count", s)
	}
	return int64(n), nil
}

// Kilobytes reads "  123 kB" as bytes. The kernel's kB are 1024 bytes.
func Kilobytes(s string) (int64, error) {
	digits, ok := strings.CutSuffix(strings.TrimSpace(s), " kB")
	n, err := strconv.ParseUint(digits, 10, 53)
	if !ok || err != nil {
		return 0, fmt.Errorf("%.40q is no number of kB", s)
	}
	return int64(n) << 10, nil
}
