package trace

import (
	"bytes"
	"testing"

	"thru/internal/capture/frame"
	"thru/internal/capture/pcapfile"
)

// TestSnap: the snap length comes from the packets that were cut, whatever
// the file's header has.
func TestSnap(t *testing.T) {
	for _, test := range []struct{ header, kept, want int }{
		{100, 68, 68}, {0, 68, 68}, {100, 100, 100}, {100, 1000, 0}, {0, 1000, 0}, {65535, 1000, 0},
	} {
		var file bytes.Buffer
		w, err := pcapfile.NewWriter(&file, []pcapfile.Interface{{Link: frame.Ethernet, Snap: test.header}})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{40, 1000} {
			if err := w.Write(pcapfile.Record{TimeNs: 1e18, WireBytes: n, Data: make([]byte, min(n, test.kept))}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(nil); err != nil {
			t.Fatal(err)
		}
		r, err := pcapfile.NewReader(&file)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := Read(r, Options{}, nil); err != nil || c.Snap != test.want {
			t.Errorf("%+v: %d, %v", test, c.Snap, err)
		}
	}
}
