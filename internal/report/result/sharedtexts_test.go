package result

import (
	"slices"
	"strings"
	"testing"
)

// TestTemplates: words and marks together give the text again.
func TestTemplates(t *testing.T) {
	for _, text := range []string{"a.-b 3.5. of ab -a", "", "b", "a\u00e4 1", "-", "NaN 0x1p-2", "..", "b-"} {
		words, marks := templateOf(text, "a", "b")
		back := words[0]
		for i, m := range marks {
			back += m + words[i+1]
		}
		if back != text || len(words) != len(marks)+1 {
			t.Errorf("%q: %q and %q", text, words, marks)
		}
	}
}

func TestByName(t *testing.T) {
	names := []string{"web10", "web2", "a", "web02", "web1", "web", "b1c2", "b1c10", "web2x"}
	slices.SortFunc(names, ByName)
	if got, want := strings.Join(names, " "), "a b1c2 b1c10 web web1 web02 web2 web2x web10"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
