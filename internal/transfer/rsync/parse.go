package rsync

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// parseProgress parses the byte count of a line of --info=progress2: its
// first word, whose digits may be grouped. "1,657 100%  908.26MB/s  0:00:00
// (xfr#1, …)"
func parseProgress(line string) (int64, bool) {
	words := strings.Fields(line)
	if len(words) < 2 || !strings.HasSuffix(words[1], "%") {
		return 0, false
	}
	return parseCount(words[0])
}

func parseCount(word string) (int64, bool) {
	n, err := strconv.ParseUint(strings.NewReplacer(",", "", ".", "").Replace(word), 10, 63)
	return int64(n), err == nil
}

// whole is the option that makes the program print the size of a file that it
// has moved.
const whole = "--out-format=" + wholeWord + "%l"

// wholeWord begins that line.
const wholeWord = "whole file of "

// parseWhole returns the size of the one moved file; false where none was.
func parseWhole(out string) (int64, bool) {
	for line := range strings.Lines(out) {
		if count, ok := strings.CutPrefix(line, wholeWord); ok {
			return parseCount(strings.TrimSpace(count))
		}
	}
	return 0, false
}

// entry is one line of --list-only.
type entry struct {
	kind byte // '-' a file, 'd' a folder
	size int64
}

// parseEntry parses the single listed line: "-rw-r--r--  100000000 2026/11/22
// 21:12:54 name".
func parseEntry(out string) (entry, bool) {
	line, _, _ := strings.Cut(out, "\n")
	words := strings.Fields(line)
	if len(words) < 5 || len(words[0]) < 10 || !strings.Contains("-dlbcps", words[0][:1]) {
		return entry{}, false
	}
	n, ok := parseCount(words[1])
	if !ok {
		return entry{}, false
	}
	return entry{words[0][0], n}, true
}

// version is a program version: 3.2.7.
type version struct{ major, minor, patch int }

// parseVersion reads "rsync  version 3.2.7  protocol version 31".
func parseVersion(out string) (version, bool) {
	words := strings.Fields(out)
	if len(words) < 3 || words[0] != "rsync" || words[1] != "version" {
		return version{}, false
	}
	var v version
	n, err := fmt.Sscanf(strings.TrimPrefix(words[2], "v"), "%d.%d.%d", &v.major, &v.minor, &v.patch)
	return v, err == nil && n == 3 && v.major >= 0 && v.minor >= 0 && v.patch >= 0
}

// String returns the program's form.
func (v version) String() string { return fmt.Sprintf("%d.%d.%d", v.major, v.minor, v.patch) }

func (v version) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

// errGreeting means that another kind of server listens there.
var errGreeting = errors.New("no rsync daemon: it does not send the greeting of one")

// readGreeting reads a daemon's first line, "@RSYNCD: 31.0 sha512 …", and returns
// the version of its protocol.
func readGreeting(in io.Reader) (string, error) {
	const longest = 200
	var line []byte
	for b := [1]byte{}; len(line) < longest && !bytes.HasSuffix(line, []byte("\n")); line = append(line, b[0]) {
		if _, err := io.ReadFull(in, b[:]); err != nil {
			return "", errors.Join(errGreeting, err)
		}
	}
	words := strings.Fields(string(line))
	if len(words) < 2 || words[0] != "@RSYNCD:" || strings.Trim(words[1], "0123456789.") != "" {
		return "", errGreeting
	}
	return words[1], nil
}

// complaint returns the line of the program's output that names the cause,
// without terminal control characters.
func complaint(said string) string {
	best := ""
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(strings.Map(func(r rune) rune {
			if unicode.IsControl(r) || r == unicode.ReplacementChar {
				return -1
			}
			return r
		}, line))
		cause := !strings.HasPrefix(line, "rsync error:") && !strings.Contains(line, "read error: Connection reset by peer")
		if line != "" && (best == "" || cause && strings.HasPrefix(best, "rsync error:")) {
			best = line
		}
		if cause && strings.Contains(line, "ERROR") {
			best = line
		}
	}
	if len(best) > 300 {
		best = strings.ToValidUTF8(best[:300], "") + "…"
	}
	return best
}

// scanLines splits at line feeds, and at the carriage returns between the
// states of one line.
func scanLines(data []byte, end bool) (int, []byte, error) {
	if i := bytes.IndexAny(data, "\r\n"); i >= 0 {
		return i + 1, data[:i], nil
	}
	if end && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}
