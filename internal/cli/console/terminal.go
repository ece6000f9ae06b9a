package console

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"thru/internal/doc/text"
)

// terminalSize returns the width of w, and whether it is a terminal.
func terminalSize(w io.Writer) (width int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 40 {
		width = 80
	}
	return width, true
}

// folded breaks a line that is wider than the terminal at spaces, and indents the rest by the width of "thru: ".
func folded(line string, width int) string {
	const indent = "      "
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	return strings.Join(text.Lines(line, width, width-len(indent)), "\n"+indent)
}

// Terminal returns the width to print for, 0 without a terminal, and whether to use colour (no-color.org).
func (c *Console) Terminal() (width int, colour bool) {
	width, ok := terminalSize(c.Out)
	switch c.Color {
	case "always":
		return width, true
	case "never":
		return width, false
	}
	_, plain := os.LookupEnv("NO_COLOR")
	return width, ok && !plain && os.Getenv("TERM") != "dumb"
}

// HasTerminal reports whether this process belongs to a terminal: its hang-up is sent when that is closed.
func HasTerminal() bool {
	f, err := os.Open("/dev/tty")
	if err == nil {
		f.Close()
	}
	return err == nil
}

// IsTerminal reports whether r is a terminal.
func IsTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
