package report

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"thru/internal/doc"
	"thru/internal/measure"
)

// saying is what is said of several flows in the same words, but for numbers and
// for the names of the hosts.
type saying struct {
	mark   string     // tells it from what reads the same
	words  []string   // what all have in common; "" where a number or a name stands
	places [][]string // what stood there in each, once
	each   [][]string // what stood there, of the first three
	pairs  []string   // whose it is
}

// sayings are what is said of several pairs, each once.
type sayings struct {
	list  []*saying
	byKey map[string]*saying
}

// add takes in what is said of a pair. What has another mark is another thing.
func (s *sayings) add(mark, text string, c *measure.Cell) {
	s.of(mark, text, pathName(c), c.From, c.To)
}

// of takes in what is said of something, in which those two names may stand.
func (s *sayings) of(mark, text, what, from, to string) {
	words, marks := templateOf(text, from, to)
	key := mark + "\x00" + strings.Join(words, "\x00")
	x := s.byKey[key]
	if x == nil {
		x = &saying{mark: mark, words: words, places: make([][]string, len(marks))}
		if s.byKey == nil {
			s.byKey = map[string]*saying{}
		}
		s.byKey[key], s.list = x, append(s.list, x)
	}
	x.add(marks, what)
}

// joined are all of them; those that read the same are one, for a host may be
// called as a word is.
func (s *sayings) joined() []*saying {
	var out []*saying
	for _, x := range s.list {
		text := x.text()
		at := slices.IndexFunc(out, func(y *saying) bool { return y.mark == x.mark && y.text() == text })
		if at >= 0 {
			out[at].pairs = append(out[at].pairs, x.pairs...)
			continue
		}
		out = append(out, x)
	}
	return out
}

// templateOf splits a text at numbers and at the names of its two hosts: there
// are as many words as marks and one more.
func templateOf(text, from, to string) (words, marks []string) {
	word := ""
	for text != "" {
		token := tokenOf(text)
		for _, name := range []string{from, to} { // which may have a port
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

// tokenOf is the name or number that a text begins with, if any.
func tokenOf(text string) string {
	return strings.TrimRight(text[:len(text)-len(strings.TrimLeftFunc(text, inName))], ".-")
}

// inName tells whether a name of a host or a number may have that character.
func inName(r rune) bool {
	return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.", r))
}

func (w *saying) add(marks []string, pair string) {
	for i, m := range marks {
		if !slices.Contains(w.places[i], m) && len(w.places[i]) < maxHostRows {
			w.places[i] = append(w.places[i], m)
		}
	}
	if len(w.each) < 3 {
		w.each = append(w.each, marks)
	}
	w.pairs = append(w.pairs, pair)
}

// sides is what is said of two pairs with other numbers, with those of each: a range would
// not tell which is whose. It is "" of one, of more, and where names differ.
func (w *saying) sides() string {
	if len(w.pairs) != 2 || len(w.each) != 2 || w.pairs[0] == w.pairs[1] || slices.Equal(w.each[0], w.each[1]) {
		return ""
	}
	var b strings.Builder
	b.WriteString(w.pairs[0] + " / " + w.pairs[1] + ": ")
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

func (w *saying) text() string {
	var b strings.Builder
	for i, s := range w.words {
		b.WriteString(s)
		if i < len(w.places) {
			b.WriteString(variedText(w.places[i]))
		}
	}
	return b.String()
}

// variedText is a number, the range of several, or names.
func variedText(marks []string) string {
	if len(marks) == 1 {
		return marks[0]
	}
	low, high := marks[0], marks[0]
	for _, m := range marks {
		v, err := strconv.ParseFloat(m, 64)
		if err != nil {
			slices.SortFunc(marks, byName)
			return doc.Gap{Facts: marks}.Text(gapFacts)
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
