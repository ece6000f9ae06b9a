package worker

import "testing"

func TestNumbering(t *testing.T) {
	const when = 1_700_000_000_123_456_000 // whole microseconds
	for _, c := range []struct {
		form   Numbering
		number uint64
		next   uint64 // what the receiver expects
		last   bool
	}{
		{OfThru, 0, 0, false}, {OfThru, 1 << 40, 3, false},
		{StampNumber32, 1, 1, false}, {StampNumber32, 1<<32 + 5, 1<<32 - 2, false}, {StampNumber32, 1<<32 - 2, 1<<32 + 5, false},
		{StampNumber64, 1 << 40, 1, false},
		{NumberStamp, 7, 1, false}, {NumberStampHigh, 1<<33 + 1, 1, false},
		{NumberStamp, ^uint64(6), 7, true}, {NumberStampHigh, ^uint64(1 << 33), 7, true},
	} {
		b := make([]byte, 16)
		c.form.put(b, c.number, when)
		number, sent, last := c.form.get(b, c.next)
		if number != c.number || sent != when || last != c.last {
			t.Errorf("form %d: %d at %d is read as %d at %d, last %v", c.form, c.number, when, number, sent, last)
		}
		for _, x := range b[c.form.size():] {
			if x != 0 {
				t.Errorf("form %d writes behind its %d bytes", c.form, c.form.size())
			}
		}
	}
	if n := near(3, 1); n != 3 {
		t.Errorf("number 3 after 1 is read as %d", n)
	}
	if n := near(0xFFFFFFFF, 1); n != 0xFFFFFFFF {
		t.Errorf("a number below the first turn is read as %d", n)
	}
}
