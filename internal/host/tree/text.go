package tree

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// Lines iterates over the lines of a text, without their ends.
func Lines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if !yield(strings.TrimSuffix(line, "\n")) {
				return
			}
		}
	}
}

// Fields parses lines "Name: value", as in /proc/meminfo, /proc/self/status,
// /proc/net/sockstat and balloon files. It skips lines without a colon; of
// two lines with one name the first counts.
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

// Counts parses lines "name value", as in a control group's cpu.stat and in
// /proc/vmstat. It skips values that are no counts.
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

// UnlessEmpty returns an error where a parser has found nothing.
func UnlessEmpty(found int, why string) error {
	if found == 0 {
		return errors.New(why)
	}
	return nil
}

// Count parses a number of events.
func Count(s string) (int64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a count", s)
	}
	return int64(n), nil
}

// Kilobytes parses "  123 kB" and returns bytes. The kernel's kB are 1024
// bytes.
func Kilobytes(s string) (int64, error) {
	digits, ok := strings.CutSuffix(strings.TrimSpace(s), " kB")
	n, err := strconv.ParseUint(digits, 10, 53)
	if !ok || err != nil {
		return 0, fmt.Errorf("%.40q is not a number of kB", s)
	}
	return int64(n) << 10, nil
}
