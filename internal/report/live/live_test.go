package live

import (
	"testing"
	"unicode/utf8"
)

func example() State {
	return State{Phase: "measure", AtNs: 3e9, Flows: []Flow{{Bytes: 6_150_000_000, SpanNs: 1e9}}, Retransmits: new(int64(0)),
		Ends:      []CPU{{"local", new(51.2), new(98.4)}, {"peer", new(45.0), new(97.0)}},
		ElapsedNs: 4_500_000_000, TotalNs: 11_000_000_000}
}

func TestLine(t *testing.T) {
	ramp := example()
	ramp.Phase, ramp.AtNs, ramp.Retransmits, ramp.ElapsedNs = "ramp", -500e6, nil, 500e6
	both := example()
	both.Flows = append([]Flow{{Name: "out", Bytes: 1_176_250_000, SpanNs: 1e9}}, Flow{Name: "back", Bytes: 1_108_750_000, SpanNs: 1e9})
	unknown := State{AtNs: 1e9, Flows: []Flow{{}}, Ends: []CPU{{Name: "peer\x1b"}}}
	udp := example()
	udp.Retransmits, udp.Flows = nil, []Flow{{Bytes: 112_700_000, SpanNs: 1e9, Packets: new(int64(76_562)), Lost: new(int64(1640))}}
	clean := example()
	clean.Retransmits, clean.Flows = nil, []Flow{{Bytes: 112_700_000, SpanNs: 1e9, Packets: new(int64(76_562)), Lost: new(int64(0))}}
	asked := example()
	asked.Retransmits, asked.Flows = nil, []Flow{{SpanNs: 1e9, Requests: new(int64(204_123))}}
	over := example()
	over.ElapsedNs = 99e9
	tests := []struct {
		name  string
		live  State
		width int
		want  string
	}{
		{"all", example(), 0, "  3 s   49.2 Gb/s   retr 0      CPU local  51% (max  98%) | peer  45% (max  97%)   [####------] 7 s left"},
		{"no room for the bar", example(), 100, "  3 s   49.2 Gb/s   retr 0      CPU local  51% (max  98%) | peer  45% (max  97%)   7 s left"},
		{"80 columns", example(), 80, "  3 s   49.2 Gb/s   retr 0      CPU local  51/ 98% | peer  45/ 97%   7 s left"},
		{"narrow", example(), 40, "  3 s   49.2 Gb/s   retr 0      7 s left"},
		{"ramp", ramp, 80, " ramp   49.2 Gb/s   retr -      CPU local  51/ 98% | peer  45/ 97%   11 s left"},
		{"both ways", both, 100, "  3 s   9.41 Gb/s out   8.87 Gb/s back   retr 0      CPU local  51/ 98% | peer  45/ 97%   7 s left"},
		{"datagrams", udp, 100, "  3 s    902 Mb/s    76 600/s   lost 2.1%     CPU local  51/ 98% | peer  45/ 97%   7 s left"},
		{"datagrams, 80 columns", udp, 80, "  3 s    902 Mb/s    76 600/s   lost 2.1%     CPU local  51/ 98% | peer  45/ 97%"},
		{"datagrams, none lost", clean, 60, "  3 s    902 Mb/s    76 600/s   lost 0%       7 s left"},
		{"requests", asked, 80, "  3 s   204 000 requests/s   CPU local  51/ 98% | peer  45/ 97%   7 s left"},
		{"nothing known", unknown, 0, "  1 s           -   retr -      CPU peer?   -% (max   -%)"},
		{"longer than planned", over, 0, "  3 s   49.2 Gb/s   retr 0      CPU local  51% (max  98%) | peer  45% (max  97%)   [##########] 0 s left"},
	}
	for _, tt := range tests {
		got := Line(tt.live, tt.width)
		if got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
		if n := utf8.RuneCountInString(got); tt.width > 0 && n > tt.width {
			t.Errorf("%s: %d columns of %d", tt.name, n, tt.width)
		}
	}
}
