package result

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"thru/internal/doc"
	"thru/internal/measure"
)

// ByName orders names, with numbers in them by value: "web2" before "web10".
func ByName(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		nx, ny := leadingDigits(x), leadingDigits(y)
		if nx != "" && ny != "" {
			if vx, vy := strings.TrimLeft(nx, "0"), strings.TrimLeft(ny, "0"); vx != vy {
				if len(vx) != len(vy) {
					return len(vx) - len(vy)
				}
				return strings.Compare(vx, vy)
			}
			x, y = x[len(nx):], y[len(ny):]
			continue
		}
		if x[0] != y[0] {
			return int(x[0]) - int(y[0])
		}
		x, y = x[1:], y[1:]
	}
	if x == "" && y == "" {
		return strings.Compare(a, b)
	}
	return len(x) - len(y)
}

func leadingDigits(s string) string {
	return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
}

// SharedText is a text about several flows that is the same except for numbers and host names.
type SharedText struct {
	Mark   string     // distinguishes it from other texts with the same words
	words  []string   // the common words; a number or a name stands between two
	places [][]string // the distinct values at each gap
	each   [][]string // the values for each of the first three pairs
	Pairs  []string   // the pairs that the text is about
}

// SharedTexts collects texts about several pairs, each once.
type SharedTexts struct {
	list  []*SharedText
	byKey map[string]*SharedText
}

// Add adds a text about a pair. Another mark makes another text.
func (s *SharedTexts) Add(mark, text string, c *measure.Cell) {
	s.Of(mark, text, PathName(c), c.From, c.To)
}

// Of adds a text about something, which may contain the names from and to.
func (s *SharedTexts) Of(mark, text, what, from, to string) {
	words, marks := templateOf(text, from, to)
	key := mark + "\x00" + strings.Join(words, "\x00")
	x := s.byKey[key]
	if x == nil {
		x = &SharedText{Mark: mark, words: words, places: make([][]string, len(marks))}
		if s.byKey == nil {
			s.byKey = map[string]*SharedText{}
		}
		s.byKey[key], s.list = x, append(s.list, x)
	}
	x.add(marks, what)
}

// Joined returns all texts and merges equal ones, since a host may have the name of a word.
func (s *SharedTexts) Joined() []*SharedText {
	var out []*SharedText
	for _, x := range s.list {
		text := x.Text()
		at := slices.IndexFunc(out, func(y *SharedText) bool { return y.Mark == x.Mark && y.Text() == text })
		if at >= 0 {
			out[at].Pairs = append(out[at].Pairs, x.Pairs...)
			continue
		}
		out = append(out, x)
	}
	return out
}

// templateOf splits a text at numbers and at the names of its two hosts: it returns one word more than marks.
func templateOf(text, from, to string) (words, marks []string) {
	word := ""
	for text != "" {
		token := tokenOf(text)
		for _, name := range []string{from, to} { // a port may follow it
			if rest, ok := strings.CutPrefix(text, name); ok && name != "" && tokenOf(rest) == "" {
				token = name
			}
		}
		_, err := strconv.ParseFloat(token, 64)
		switch {
		case token == "":
			_, n := utf8.DecodeRuneInString(text)
			token, word = text[:n], word+text[:n]
		case err == nil || token == from || token == to:
			words, marks, word = append(words, word), append(marks, token), ""
		default:
			word += token
		}
		text = text[len(token):]
	}
	return append(words, word), marks
}

// tokenOf returns the name or number at the start of a text, if any.
func tokenOf(text string) string {
	return strings.TrimRight(text[:len(text)-len(strings.TrimLeftFunc(text, inName))], ".-")
}

// inName reports whether a host name or a number may contain a character.
func inName(r rune) bool {
	return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.", r))
}

func (w *SharedText) add(marks []string, pair string) {
	for i, m := range marks {
		if !slices.Contains(w.places[i], m) && len(w.places[i]) < MaxHostRows {
			w.places[i] = append(w.places[i], m)
		}
	}
	if len(w.each) < 3 {
		w.each = append(w.each, marks)
	}
	w.Pairs = append(w.Pairs, pair)
}

// Sides returns the text about two pairs with the numbers of each, since a range would hide which number
// belongs to which. It is "" for one pair, for more than two, and if names differ.
func (w *SharedText) Sides() string {
	if len(w.Pairs) != 2 || len(w.each) != 2 || w.Pairs[0] == w.Pairs[1] || slices.Equal(w.each[0], w.each[1]) {
		return ""
	}
	var b strings.Builder
	b.WriteString(w.Pairs[0] + " / " + w.Pairs[1] + ": ")
	for i, s := range w.words {
		b.WriteString(s)
		if i == len(w.places) {
			break
		}
		one, other := w.each[0][i], w.each[1][i]
		if one != other {
			if _, err := strconv.ParseFloat(one, 64); err != nil {
				return ""
			}
			one += " / " + other
		}
		b.WriteString(one)
	}
	return b.String()
}

// Text returns the text about all of them.
func (w *SharedText) Text() string {
	var b strings.Builder
	for i, s := range w.words {
		b.WriteString(s)
		if i < len(w.places) {
			b.WriteString(variedText(w.places[i]))
		}
	}
	return b.String()
}

// variedText returns a number, the range of several, or names.
func variedText(marks []string) string {
	if len(marks) == 1 {
		return marks[0]
	}
	low, high := marks[0], marks[0]
	for _, m := range marks {
		v, err := strconv.ParseFloat(m, 64)
		if err != nil {
			slices.SortFunc(marks, ByName)
			return doc.Gap{Facts: marks}.Text(GapFacts)
		}
		if l, _ := strconv.ParseFloat(low, 64); v < l {
			low = m
		}
		if h, _ := strconv.ParseFloat(high, 64); v > h {
			high = m
		}
	}
	return low + "-" + high
}
