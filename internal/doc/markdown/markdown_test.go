package markdown

import (
	"testing"
)

// TestEscape: no text becomes markup or begins a list.
func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"SO_SNDBUF 4 KiB": "SO_SNDBUF 4 KiB", "_a_b_": `\_a_b\_`, "__x__": `\_\_x\_\_`, "a*b": `a\*b`, "<b>": "&lt;b>", "a|b": `a\|b`, "[x](y)": `\[x\](y)`,
		"a -> b": "a -> b", "http://x": "http:&#8203;//x", "`": "\\`", "a\nb": "a b",
	} {
		if got := Escape(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"- x": `\- x`, "> x": `\> x`, "# x": `\# x`, "1. x": `1\. x`, "9.41 Gb/s": "9.41 Gb/s", "12) x": `12\) x`, "x - y": "x - y"} {
		if got := lineStart(in); got != want {
			t.Errorf("a line of %q is %q, want %q", in, got, want)
		}
	}
}
