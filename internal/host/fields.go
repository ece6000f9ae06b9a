package host

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// parseFields reads lines "Name: value", as /proc/meminfo, /proc/self/status,
// /proc/net/sockstat and the files of balloons have them. Lines without a
// colon are passed over; of two lines with one name the first counts.
func parseFields(r io.Reader) (map[string]string, error) {
	all := map[string]string{}
	s := bufio.NewScanner(r)
	for s.Scan() {
		name, value, ok := strings.Cut(s.Text(), ":")
		name = strings.TrimSpace(name)
		if _, twice := all[name]; ok && name != "" && !twice {
			all[name] = strings.TrimSpace(value)
		}
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("no line with a name")
	}
	return all, nil
}

// parseCounts reads lines "name value", as cpu.stat of a control group and
// /proc/vmstat have them. What is no count is passed over.
func parseCounts(r io.Reader) (map[string]int64, error) {
	all := map[string]int64{}
	s := bufio.NewScanner(r)
	for s.Scan() {
		name, value, _ := strings.Cut(s.Text(), " ")
		if n, err := count(value); err == nil && name != "" {
			all[name] = n
		}
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("no counts")
	}
	return all, nil
}

// chosen returns the word in brackets of "always [madvise] never"; a single
// word without brackets is the choice itself.
func chosen(s string) (string, error) {
	if _, rest, ok := strings.Cut(s, "["); ok {
		if word, _, ok := strings.Cut(rest, "]"); ok && word != "" {
			return word, nil
		}
	}
	if words := strings.Fields(s); len(words) == 1 && !strings.ContainsAny(s, "[]") {
		return s, nil
	}
	return "", errors.New("no choice is marked in " + quoted(s))
}

// quoted shortens foreign text for an error.
func quoted(s string) string {
	if len(s) > 60 {
		s = s[:60] + "..."
	}
	return `"` + strings.ToValidUTF8(s, "?") + `"`
}
