package report

import (
	"fmt"
	"strings"

	"thru/internal/measure"
)

// Columns of the matrix: the streams, then for each window value, range and CPU.
const (
	streamsWidth = 7
	valueWidth   = 8
	rangeWidth   = 13
	cpuWidth     = 11
	groupWidth   = valueWidth + rangeWidth + cpuWidth + 3
)

// ladders prints each ladder as a matrix of streams by window.
func (p *printer) ladders(all []ladder) {
	for i := range all {
		l := &all[i]
		if len(all) > 1 {
			p.WriteByte('\n')
			p.Broken(bold, 0, l.Path)
		}
		// Windows that do not fit beside each other follow below.
		most := max(1, (p.Width-streamsWidth)/groupWidth)
		for first := 0; first < len(l.Windows); first += most {
			p.matrix(l, l.Windows[first:min(first+most, len(l.Windows))])
		}
		if l.Best != nil {
			legend := "  * most"
			for _, r := range l.Rungs {
				if r.Level {
					legend += "   ~ may be as much: its runs do not tell it from *"
					break
				}
			}
			fmt.Fprintln(p, legend)
		}
		for _, note := range l.Notes {
			p.Wrap("", 3, "  -", note)
		}
	}
}

func (p *printer) matrix(l *ladder, windows []measure.Pair) {
	p.WriteByte('\n')
	head, names := strings.Repeat(" ", streamsWidth), fmt.Sprintf("%*s", streamsWidth, "streams")
	for _, w := range windows {
		head += "   " + pad(windowName(w)+" window", groupWidth-3)
		names += fmt.Sprintf("%*s  %-*s%-*s", valueWidth+1, l.Unit.name, rangeWidth, "range", cpuWidth, "CPU snd/rcv")
	}
	fmt.Fprintln(p, p.Paint(bold, strings.TrimRight(head, " ")))
	fmt.Fprintln(p, strings.TrimRight(names, " "))
	for _, n := range l.Streams {
		line := fmt.Sprintf("%*d", streamsWidth, n)
		for _, w := range windows {
			line += p.rung(l.at(n, w))
		}
		fmt.Fprintln(p, strings.TrimRight(line, " "))
	}
}

func (p *printer) rung(r *rung) string {
	if r == nil {
		r = &rung{Value: "-"}
	}
	value := fmt.Sprintf("%*s", valueWidth+1, r.Value)
	if r.Best {
		value = p.Paint(bold, value)
	}
	return value + pad(r.Mark(), 2) + pad(r.Range, rangeWidth) + pad(r.CPU, cpuWidth)
}
