package trace

import (
	"testing"

	"thru/internal/measure"
)

// FuzzCross: whatever two captures hold, comparing them ends, and each packet
// that left has arrived, was lost, or is left out.
func FuzzCross(f *testing.F) {
	f.Add([]byte("a123456789012345678901234babcdefghijklmnopqrstuvwxyz0123456789"))
	f.Add(make([]byte, 40*(fuzzPacket+1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		records := [2]*Recorder{NewRecorder(), NewRecorder()}
		builders := [2]*Builder{New(Options{Record: records[0]}), New(Options{Record: records[1]})}
		for n := int64(1); len(data) > fuzzPacket; data, n = data[fuzzPacket+1:], n+1 {
			p, v := packetOf(data[1:], n)
			for k, b := range builders { // most packets are in both, the second one's later
				if data[0]&(1<<k) == 0 || data[0]&4 != 0 {
					b.Add(&p, v)
				}
				p.TimeNs += int64(data[0]) << 10
			}
		}
		one, other := Side{builders[0].Capture(), records[0]}, Side{builders[1].Capture(), records[1]}
		x, err := Cross(one, other)
		if err != nil {
			return
		}
		for _, c := range x.Conns {
			for _, w := range []measure.Crossed{c.Data, c.Acks} {
				if w.Arrived+w.Lost.Bytes != w.Sent || w.SuperLost.N > w.SuperSent.N || w.SingleLost.N > w.SingleSent.N || w.FullSent.N > w.SingleSent.N {
					t.Fatalf("%+v", w)
				}
			}
		}
		for i := range one.Capture.Conns {
			conn := &one.Capture.Conns[i]
			for _, back := range []bool{false, true} {
				sent, acked := records[0].Volumes(conn, back)
				for _, v := range []Volume{sent, acked} {
					middle := v.Until(v.FirstNs + (v.LastNs-v.FirstNs)/2)
					if v.Until(v.LastNs) != v.Total || middle < 0 || middle > v.Total {
						t.Fatalf("%d of %d at half the time", middle, v.Total)
					}
				}
			}
		}
	})
}
