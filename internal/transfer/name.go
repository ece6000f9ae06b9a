package transfer

import (
	"crypto/rand"
	"path"
	"strings"

	"thru/internal/fault"
)

// Limits of a name in bytes: PATH_MAX without its terminator, and NAME_MAX
// (limits.h).
const (
	longestPath = 4095
	longestName = 255
)

// CheckName refuses a path of a URL that could name another file than it
// seems to, here or at the server, before any byte of it is sent. The error
// is ErrName.
func CheckName(name string) error {
	why := ""
	switch {
	case name == "":
		why = "it is empty"
	case len(name) > longestPath:
		why = "it is longer than 4095 bytes"
	case strings.HasPrefix(name, "/"), strings.HasPrefix(name, `\`):
		why = "it begins with a second slash"
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		why = "it holds a control character"
	}
	for element := range strings.FieldsFuncSeq(strings.ReplaceAll(name, "//", "/./"), func(r rune) bool { return r == '/' || r == '\\' }) {
		switch {
		case why != "":
		case element == "." || element == "..":
			why = "a part is empty, . or .."
		case len(element) > longestName:
			why = "a part is longer than 255 bytes"
		}
	}
	if why == "" && strings.HasSuffix(name, "/") {
		why = "it names a folder"
	}
	if why == "" {
		return nil
	}
	return fault.Usagef("name a file: folders and a name, separated by single slashes", "transfer: %.60q: %w: %s", name, ErrName, why)
}

// TempName returns a unique name in the same folder for a file that is being
// written. The name shows which file it belongs to.
func TempName(name string) string {
	return path.Join(path.Dir(name), ".thru-"+rand.Text()[:12]+".part")
}
