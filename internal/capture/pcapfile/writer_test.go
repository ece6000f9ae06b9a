package pcapfile

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"thru/internal/capture/frame"
)

// TestWriter reads what was written.
func TestWriter(t *testing.T) {
	nine := int64(9)
	nics := []Interface{
		{Name: "eth0", Description: "at the sender", Link: frame.Ethernet, Snap: 100, Dropped: &nine},
		{Link: frame.Raw},
	}
	records := []Record{
		{1, atNs, 0, twoBytes, []byte(twoData)},
		{2, atNs + 1, 1, 5, []byte("12345")},
		{3, atNs - 1, 0, 200_000, []byte(strings.Repeat("x", 131))},
		{4, atNs, 1, 0, []byte{}},
	}
	var file bytes.Buffer
	w, err := NewWriter(&file, nics)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		err = errors.Join(err, w.Write(r))
	}
	if err = errors.Join(err, w.Close(nics)); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(Record{Interface: 2}); err == nil || !strings.Contains(err.Error(), "packet 5: interface 2 of 2") {
		t.Error(err)
	}
	got, r, err := all(&file)
	if err != nil {
		t.Fatal(err)
	}
	want(t, got, records)
	back := r.Interfaces()
	if len(back) != 2 || back[0].Name != "eth0" || back[0].Description != "at the sender" || back[0].Link != frame.Ethernet || back[0].Snap != 100 ||
		back[0].Dropped == nil || *back[0].Dropped != 9 || back[1] != (Interface{Link: frame.Raw}) {
		t.Errorf("interfaces %+v", back)
	}
}

// full is a disk without room.
type full struct{}

var errFull = errors.New("no room")

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestWriterError passes on the error of the underlying writer.
func TestWriterError(t *testing.T) {
	if _, err := NewWriter(full{}, nil); !errors.Is(err, errFull) {
		t.Error(err)
	}
	w, err := NewWriter(&bytes.Buffer{}, []Interface{{Dropped: new(int64)}})
	if err != nil {
		t.Fatal(err)
	}
	w.to = full{}
	if err := w.Write(Record{}); !errors.Is(err, errFull) {
		t.Error(err)
	}
	if err := w.Close([]Interface{{Dropped: new(int64)}}); !errors.Is(err, errFull) {
		t.Error(err)
	}
}
