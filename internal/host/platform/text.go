package platform

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"thru/internal/measure"
	"unicode"
)

// Clean makes foreign output safe to show: valid UTF-8, "\n" at line ends,
// and no control characters, which could control a terminal.
func Clean(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\r':
			return -1
		case c == '\n' || c == '\t':
			return c
		case unicode.IsControl(c):
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// Plain reports whether a name may be an argument unchanged: interface names
// come from the host, and must not become options.
func Plain(name string) bool {
	ok := func(c rune) bool {
		return unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("._-:@/", c)
	}
	return name != "" && len(name) <= 64 && name[0] != '-' && strings.IndexFunc(name, func(c rune) bool { return !ok(c) }) < 0
}

// quoteOdd quotes a word for a shell where it needs that.
func quoteOdd(word string) string {
	if strings.IndexFunc(word, func(c rune) bool {
		return c < unicode.MaxASCII && !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("._-:@/=,%+", c)
	}) < 0 && word != "" {
		return word
	}
	return quote(word)
}

// quote makes one shell word of any text, for sh (POSIX, 2.2.2) and for csh,
// which interprets "!" even within quotes.
func quote(word string) string {
	word = strings.ReplaceAll(word, `'`, `'\''`)
	return `'` + strings.ReplaceAll(word, `!`, `'\!'`) + `'`
}

// errNothing means an output without a line.
var errNothing = errors.New("it printed nothing")

// lines returns the lines of an output. It drops a last line without a line
// end: it may be cut, and half a number is a wrong one.
func lines(in string) ([]string, error) {
	whole := strings.LastIndexByte(in, '\n')
	if whole <= 0 {
		return nil, errNothing
	}
	return strings.Split(in[:whole], "\n"), nil
}

// inLines, inBlock and inPairs parse an output of their form and pass it to
// read.
func inLines(read func([]string, *reading) error) func(string, *reading) error {
	return in(lines, read)
}

func inBlock(read func(Row, *reading) error) func(string, *reading) error { return in(block, read) }

func inPairs(read func(map[string]string, *reading) error) func(string, *reading) error {
	return in(pairs, read)
}

func in[T any](parse func(string) (T, error), read func(T, *reading) error) func(string, *reading) error {
	return func(text string, r *reading) error {
		v, err := parse(text)
		if err != nil {
			return err
		}
		return read(v, r)
	}
}

// eachRow passes on the rows of an output one by one, as far as they can be
// parsed.
func eachRow(parse func(string) ([]Row, error), read func(Row, *reading)) func(string, *reading) error {
	return func(text string, r *reading) error {
		rows, err := parse(text)
		for _, w := range rows {
			read(w, r)
		}
		return err
	}
}

// ofPort passes on a row about a known interface, whose name is under key.
func ofPort(key string, read func(*measure.Interface, Row, *reading)) func(Row, *reading) {
	return func(w Row, r *reading) {
		if i := r.known(w[key]); i != nil {
			read(i, w, r)
		}
	}
}

// normal returns a heading without the case, spaces and punctuation that
// differ between versions.
func normal(s string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return -1
		}
		return unicode.ToLower(c)
	}, s)
}

// Row is a line of a table, or a block of "key: value" lines, by headings
// without spaces, punctuation and case: "portid" for "Port ID". The title of
// a block is under "".
type Row map[string]string

// number returns a value as a number; false where it is none, or negative.
func (w Row) number(key string) (int64, bool) { return number(w[key]) }

// flag returns a value that means yes or no in one of the usual words.
func (w Row) flag(key string) (on, ok bool) { return Flag(w[key]) }

// number parses a whole number that is not negative.
func number(s string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	return n, err == nil && n >= 0
}

// Flag parses yes or no.
func Flag(s string) (on, ok bool) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true", "on", "yes", "up", "enabled", "1":
		return true, true
	case "false", "off", "no", "down", "disabled", "0":
		return false, true
	}
	return false, false
}

// text returns a pointer to a value, or nil for an empty or placeholder
// value.
func text(s string) *string {
	s = strings.TrimSpace(s)
	switch strings.ToLower(s) {
	case "", "n/a", "unknown", "none", "not specified", "to be filled by o.e.m.", "--", "?":
		return nil
	}
	return &s
}

// Count returns a pointer to a parsed number, or nil.
func Count(s string) *int {
	if n, ok := number(s); ok && n < 1<<31 {
		return new(int(n))
	}
	return nil
}

// Many returns a pointer to a large number times a unit, or nil.
func Many(s string, unit int64) *int64 {
	if n, ok := number(s); ok && n <= 1<<62/unit {
		return new(n * unit)
	}
	return nil
}

// Truth returns a pointer to a parsed yes or no, or nil.
func Truth(s string) *bool {
	if on, ok := Flag(s); ok {
		return &on
	}
	return nil
}

// Table parses a table as ESXi prints it: headings, a line of dashes as wide
// as each column, and rows.
func Table(in string) ([]Row, error) {
	all, err := lines(in)
	if err != nil {
		return nil, err
	}
	for n, line := range all[1:] {
		columns := dashes(line)
		if columns == nil {
			continue
		}
		heads := columns.cut(all[n])
		var rows []Row
		for _, l := range all[n+2:] {
			if strings.TrimSpace(l) == "" {
				continue
			}
			w := Row{}
			for i, v := range columns.cut(l) {
				w[normal(heads[i])] = v
			}
			rows = append(rows, w)
		}
		return rows, nil
	}
	return nil, fmt.Errorf("no table in %.40q", all[0])
}

// columns holds the offsets of a table's columns.
type columns []int

// dashes returns the columns of a line of dashes; nil for any other line.
func dashes(line string) columns {
	if strings.Trim(line, "- ") != "" || !strings.Contains(line, "--") {
		return nil
	}
	var at columns
	for i := range len(line) {
		if line[i] == '-' && (i == 0 || line[i-1] == ' ') {
			at = append(at, i)
		}
	}
	return at
}

// cut cuts a line into its columns, by characters.
func (c columns) cut(line string) []string {
	all := []rune(line)
	var parts []string
	for i, from := range c {
		to := len(all)
		if i+1 < len(c) {
			to = min(c[i+1], len(all))
		}
		parts = append(parts, strings.TrimSpace(string(all[min(from, to):to])))
	}
	return parts
}

// Blocks parses "key: value" lines. A line that is not indented begins a new
// block and is its title; an empty line also begins one. Keys below a heading
// belong to the block.
func Blocks(in string) ([]Row, error) {
	all, err := lines(in)
	if err != nil {
		return nil, err
	}
	var list []Row
	fresh := true
	for _, line := range all {
		if strings.TrimSpace(line) == "" {
			fresh = true
			continue
		}
		indented := line[0] == ' ' || line[0] == '\t'
		if !indented || fresh {
			list = append(list, Row{"": ""})
		}
		fresh = false
		w := list[len(list)-1]
		if !indented {
			w[""] = strings.TrimSpace(line)
		} else if key, value, ok := strings.Cut(line, ":"); ok {
			w[normal(key)] = strings.TrimSpace(value)
		}
	}
	if len(list) == 0 {
		return nil, errNothing
	}
	return list, nil
}

// block parses an output of one block, with or without a title.
func block(in string) (Row, error) {
	list, err := Blocks(in)
	if err != nil {
		return nil, err
	}
	if len(list[0]) < 2 {
		return nil, fmt.Errorf("no values in %.40q", list[0][""])
	}
	return list[0], nil
}

// pairs parses "name=value" lines of sysctl -e and kenv, without the quotes
// around a value. Of a value of several lines it keeps only the first.
func pairs(in string) (map[string]string, error) {
	all, err := lines(in)
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, line := range all {
		name, value, ok := strings.Cut(line, "=")
		if ok && !strings.ContainsAny(name, " \t") && name != "" {
			values[name] = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("no values in %.40q", all[0])
	}
	return values, nil
}

// columnsOf returns a parser of fields separated by colons, in which a
// backslash escapes a colon (the parsable output of dladm(8) and ipadm(8)).
// list holds the column names, separated by commas.
func columnsOf(list string) func(string) ([]Row, error) {
	names := strings.Split(list, ",")
	return func(in string) ([]Row, error) {
		all, err := lines(in)
		var rows []Row
		for _, line := range all {
			parts := unescaped(line)
			if len(parts) != len(names) {
				return rows, fmt.Errorf("%.60q has %d fields, not %d", line, len(parts), len(names))
			}
			w := Row{}
			for i, n := range names {
				w[n] = parts[i]
			}
			rows = append(rows, w)
		}
		return rows, err
	}
}

// unescaped splits a line at its unescaped colons.
func unescaped(line string) []string {
	var parts []string
	var part strings.Builder
	kept := false
	for _, c := range line {
		switch {
		case !kept && c == '\\':
			kept = true
			continue
		case !kept && c == ':':
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteRune(c)
		}
		kept = false
	}
	return append(parts, part.String())
}
