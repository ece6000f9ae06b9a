package host

import (
	"errors"
	"strings"
)

// parseOSRelease returns PRETTY_NAME of os-release(5): shell assignments with
// optional quotes.
func parseOSRelease(text string) (string, error) {
	for line := range strings.Lines(text) {
		value, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME=")
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
	return "", errors.New("no PRETTY_NAME")
}
