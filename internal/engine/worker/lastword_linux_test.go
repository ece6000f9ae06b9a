package worker

import "testing"

// Each repetition of the final datagram has a number one further: several of them in one call are no loss.
func TestRepeatedLastWordIsNoLoss(t *testing.T) {
	const size = 32
	d, s := newDatagramReceiver(size, 8), &stream{}
	d.form = NumberStampHigh
	d.seq.begin(1, Early{})
	for i, number := range []int64{1, 2, 3, 4, 5, -6, -7, -8} {
		d.form.put(d.buf[i*d.room:], uint64(number), 1)
		d.msgs[i].len = size
		d.msgs[i].hdr.SetControllen(0)
		d.take(s, i, 1, true)
	}
	if !d.ended || d.seq.packets != 5 || d.seq.lost != 0 {
		t.Errorf("ended %v with %d datagrams, %d lost, of 5", d.ended, d.seq.packets, d.seq.lost)
	}
}
