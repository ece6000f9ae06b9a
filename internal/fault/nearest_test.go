package fault

import "testing"

func TestNearest(t *testing.T) {
	words := []string{"streams", "window", "time", "traffic"}
	for text, want := range map[string]string{"stream": "streams", "widnow": "window", "tme": "time", "elephant": "", "": "", "x": "", "TRAFFIC!": ""} {
		if got := Nearest(text, words); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"mtu", "mut", 2}} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"web1", "web1", 0}, {"web1", "web2", 1}, {"", "abc", 3}, {"kitten", "sitting", 3}} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
