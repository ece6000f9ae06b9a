package unit

import "testing"

func TestLine(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 5, ""},
		{"12345", 5, "12345"},
		{"übergroß", 5, "überg..."},
		{"a\nb\x1b[31m", 20, "a?b?[31m"},
	} {
		if got := Line(c.text, c.most); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}
