package host

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// parseOSRelease returns PRETTY_NAME of os-release(5): shell assignments with
// optional quotes.
func parseOSRelease(r io.Reader) (string, error) {
	s := bufio.NewScanner(r)
	for s.Scan() {
		value, ok := strings.CutPrefix(strings.TrimSpace(s.Text()), "PRETTY_NAME=")
		if !ok {
			continue
		}
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		if value == "" {
			break
		}
		return strings.NewReplacer(`\"`, `"`, `\$`, `$`, `\\`, `\`, "\\`", "`").Replace(value), nil
	}
	if err := s.Err(); err != nil {
		return "", err
	}
	return "", errors.New("no PRETTY_NAME")
}
