package iperfdoc

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// streamed returns a recorded test line by line.
func streamed(t *testing.T, document string) string {
	t.Helper()
	r := FromDocument(one(t, recorded(t, document)[document]))
	var out bytes.Buffer
	s := NewStream(&out)
	if err := s.Start(r.Test); err != nil {
		t.Fatal(err)
	}
	for _, i := range r.Intervals {
		if err := s.Interval(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.End(r.End); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestStream compares the lines with those of iperf3 3.21: the same events with the same keys in the same order.
func TestStream(t *testing.T) {
	for _, name := range []string{"3.21-stream-tcp.json", "3.21-stream-udp.json", "3.21-stream-bidir.json", "3.21-stream-reverse.json", "3.21-stream-sout.json"} {
		t.Run(name, func(t *testing.T) {
			got, want := strings.Split(streamed(t, name), "\n"), strings.Split(string(recorded(t, name)[name]), "\n")
			if len(got) != len(want) {
				t.Fatalf("%d lines, want %d", len(got), len(want))
			}
			for i := range want[:len(want)-1] {
				event := func(s string) string { return s[:strings.Index(s, `,"data"`)] }
				if event(got[i]) != event(want[i]) {
					t.Errorf("line %d: %s, want %s", i, event(got[i]), event(want[i]))
				}
				if g, w := keyPaths(t, []byte(got[i])), keyPaths(t, []byte(want[i])); !slices.Equal(g, w) {
					t.Errorf("line %d\n got %q\nwant %q", i, g, w)
				}
			}
		})
	}
}

// TestStreamFails: the error, and an empty end for which readers wait.
func TestStreamFails(t *testing.T) {
	var out strings.Builder
	s := NewStream(&out)
	s.Fail("the server is busy")
	if want := "{\"event\":\"error\",\"data\":\"the server is busy\"}\n{\"event\":\"end\",\"data\":{}}\n"; out.String() != want {
		t.Errorf("got %s", out.String())
	}
	if err := NewStream(broken{}).Fail("x"); err == nil || !strings.Contains(err.Error(), "iperfdoc") {
		t.Errorf("a writer that fails: %v", err)
	}
	if err := NewLayout(broken{}, LayoutOptions{}).Listening(1, 1); err == nil {
		t.Error("the error of a failing writer is lost")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
