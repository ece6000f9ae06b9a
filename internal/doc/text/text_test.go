package text

import (
	"testing"

	"thru/internal/doc"
)

// TestPrinter checks what a terminal prints of blocks, and what it omits.
func TestPrinter(t *testing.T) {
	bars := []doc.Bar{{Share: 1}, {Share: 0.5, Mark: 0.75}}
	for name, tt := range map[string]struct {
		width int
		block doc.Block
		want  string
	}{
		"a caption says what the title would": {80, doc.Titled("Disk", doc.Pairs{Name: "/srv", Rows: []doc.Row{{Name: "method", Value: "fio"}}}), "\n/srv\n  method        fio\n"},
		"a title, as nothing else says it":    {80, doc.Titled("What remains", doc.List{Lines: []string{"one"}}), "\nWhat remains\n  - one\n"},
		"for pages alone":                     {80, doc.Only{For: doc.Pages, Body: []doc.Block{doc.Para{Text: "no"}}}, ""},
		"folded":                              {80, doc.Details{Title: "more", Body: []doc.Block{doc.Para{Text: "no"}}}, ""},
		"bars, and a column for pages": {40, doc.Table{Columns: []doc.Column{{Name: "rung"}, {Bars: bars}, {Name: "carries", Right: true}, {Name: "with", Wide: true}},
			Rows: [][]string{{"a", "-", "10 Gb/s", "x"}, {"b", "-", "5 Gb/s", "y"}}},
			"\n  rung                           carries\n  a     ███████████████████████  10 Gb/s\n  b     ████████████    |         5 Gb/s\n"},
		"columns without room": {20, doc.Table{Fit: true, Columns: []doc.Column{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}, Rows: [][]string{{"1111111111", "2222222222", "3333333333", "4444444444"}}},
			"\n  a           b           c\n  1111111111  2222222222  3333333333\n  columns without room: d\n"},
		"a card": {80, doc.Card{Name: "offloads-off", Badge: "likely", Facts: []doc.Fact{{Name: "do", Lines: []string{"turn it on", "at b:"}, Code: []string{"ethtool -K eth0 gro on"}}, {Name: "rule", Lines: []string{"x"}, For: doc.Pages}}},
			"  offloads-off: likely\n    do:   turn it on\n          at b:\n          ethtool -K eth0 gro on\n"},
		"a card whose facts are for pages": {80, doc.Card{Name: "loss", Badge: "possible", Text: "a part is lost", Facts: []doc.Fact{{Name: "rule", Lines: []string{"x"}, For: doc.Pages}}},
			"  loss: possible: a part is lost\n"},
		"the same without room": {40, doc.Card{Name: "loss", Badge: "possible", Text: "a part of the segments is lost", Facts: []doc.Fact{{Name: "rule", Lines: []string{"x"}, For: doc.Pages}}},
			"  loss: possible\n    a part of the segments is lost\n"},
	} {
		p := New(Options{Width: tt.width})
		doc.Print(p, []doc.Block{tt.block})
		if got := p.String(); got != tt.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, tt.want)
		}
	}
}
