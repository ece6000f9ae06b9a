package console

import (
	"io"
	"os"

	"golang.org/x/term"
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

// Terminal is the width to print for, 0 where there is none, and whether colour is wanted (no-color.org).
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

// IsTerminal tells whether a person types there.
func IsTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
