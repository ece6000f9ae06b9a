package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"testing"

	"thru/internal/capture/frame"
	"thru/internal/capture/pcapfile"
	"thru/internal/capture/trace"
	"thru/internal/measure"
)

// rawIP is the link type of packets that begin with their IP header.
const rawIP = frame.Raw

// fileOf is a capture of a bulk transfer from 10.0.0.1 to 10.0.0.2, a segment and
// its acknowledgement each 10 ms; change may move the time of each packet.
func fileOf(t testing.TB, segments int, change func(n int, ns int64) int64) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := pcapfile.NewWriter(&out, []pcapfile.Interface{{Link: rawIP}})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	packet := func(ms int64, back bool, flags uint8, seq, ack uint32, payload int) {
		b := make([]byte, 40+payload)
		b[0], b[8], b[9] = 0x45, 64, frame.TCP
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		copy(b[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2, 40000 >> 8, 40000 & 0xff, 5201 >> 8, 5201 & 0xff})
		if back {
			copy(b[12:], []byte{10, 0, 0, 2, 10, 0, 0, 1, 5201 >> 8, 5201 & 0xff, 40000 >> 8, 40000 & 0xff})
		}
		binary.BigEndian.PutUint32(b[24:], seq)
		binary.BigEndian.PutUint32(b[28:], ack)
		b[32], b[33] = 5<<4, flags
		binary.BigEndian.PutUint16(b[34:], 5000)
		n++
		if err := w.Write(pcapfile.Record{TimeNs: change(n, 1_700_000_000e9+ms*1e6), WireBytes: len(b), Data: b}); err != nil {
			t.Fatal(err)
		}
	}
	const size = 100
	packet(0, false, frame.SYN, 1000, 0, 0)
	packet(5, true, frame.SYN|frame.ACK, 2000, 1001, 0)
	packet(6, false, frame.ACK, 1001, 2001, 0)
	for i := range segments {
		ms, seq := int64(10+10*i), uint32(1001+i*size)
		packet(ms, false, frame.ACK|frame.PSH, seq, 2001, size)
		packet(ms+5, true, frame.ACK, 2001, seq+size, 0)
	}
	return out.Bytes()
}

// explained returns the document of one file or two; nil where they are no
// captures, or do not belong together.
func explained(t *testing.T, contents ...[]byte) *measure.Document {
	t.Helper()
	var files []File
	for i, b := range contents {
		f, err := Load(context.Background(), string(rune('a'+i)), bytes.NewReader(b), trace.Options{}, nil)
		if err != nil {
			return nil
		}
		files = append(files, f)
	}
	doc, err := Document(t.Context(), files...)
	if err != nil {
		return nil
	}
	return doc
}

// checked verifies what holds for every document.
func checked(t *testing.T, doc *measure.Document) {
	t.Helper()
	for _, c := range doc.Cells {
		for _, e := range []*measure.Evidence{c.Runs[0].Flows[0].Sender, c.Runs[0].Flows[0].Receiver} {
			var sum int64
			for _, b := range e.Bins {
				if b.Span <= 0 || b.At < 0 {
					t.Fatalf("%s: a bin at %d of %d ns", e.EndPoint, b.At, b.Span)
				}
				sum += b.Bytes
			}
			if len(e.Bins) > mostBins+1 || len(e.Bins) > 0 && sum != e.Bytes {
				t.Fatalf("%s: %d bytes in %d bins, %d in all", e.EndPoint, sum, len(e.Bins), e.Bytes)
			}
		}
	}
}

func asTold(_ int, ns int64) int64 { return ns }

// damaged moves the packets from number n on, or only this one, to another
// time.
func damaged(n int, alone bool, to int64) func(int, int64) int64 {
	return func(number int, ns int64) int64 {
		if number == n || number > n && !alone {
			return to
		}
		return ns
	}
}

// TestDamagedTimes: whatever the times in a file are, its document is made,
// and has few bins.
func TestDamagedTimes(t *testing.T) {
	good := fileOf(t, 300, func(_ int, ns int64) int64 { return ns + 2e6 })
	for name, to := range map[string]int64{"the last of 63 bits": math.MaxInt64, "before 1970": math.MinInt64, "in 2096": 4e18, "in 1970": 0} {
		for _, n := range []int{1, 2, 300, 603} {
			for _, alone := range []bool{true, false} {
				bad := fileOf(t, 300, damaged(n, alone, to))
				for i, doc := range []*measure.Document{explained(t, bad), explained(t, bad, good), explained(t, good, bad)} {
					if doc == nil {
						t.Fatalf("%s, from packet %d, alone %v, %d: nothing is reported", name, n, alone, i)
					}
					checked(t, doc)
				}
			}
		}
	}
}

// FuzzDocument: whatever bytes one file or two hold, reading and comparing
// them ends, and the bins are consistent.
func FuzzDocument(f *testing.F) {
	const few = 6
	good := fileOf(f, few, asTold)
	f.Add(good, []byte{})
	f.Add(good, fileOf(f, few, func(_ int, ns int64) int64 { return ns + 2e6 }))
	f.Add(good, fileOf(f, few, damaged(few, true, math.MaxInt64)))
	f.Add(fileOf(f, few, damaged(few, false, math.MaxInt64)), good)
	f.Fuzz(func(t *testing.T, one, other []byte) {
		contents := [][]byte{one, other}
		if len(other) == 0 {
			contents = contents[:1]
		}
		if doc := explained(t, contents...); doc != nil {
			checked(t, doc)
		}
	})
}
