package iperf2

import (
	"testing"

	"thru/internal/measure"
)

// TestAfterLast: a refused datagram takes one number, not two.
func TestAfterLast(t *testing.T) {
	for _, tt := range []struct {
		name string
		sent *measure.Datagrams
		want int64
	}{
		{"nothing is known", nil, 1},
		{"nothing was sent", &measure.Datagrams{}, 1},
		{"all went", &measure.Datagrams{Packets: 100}, 101},
		{"some were refused", &measure.Datagrams{Packets: 100, SendErrors: 10}, 101},
		{"all were refused", &measure.Datagrams{Packets: 100, SendErrors: 100}, 101},
	} {
		if got := afterLast(measure.Stream{DatagramsAll: tt.sent}); got != tt.want {
			t.Errorf("%s: the first last word has number %d, not %d", tt.name, got, tt.want)
		}
	}
}
