package result

import "testing"

// TestTemplates: words and marks put together are the text again.
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
