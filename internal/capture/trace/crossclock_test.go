package trace

import (
	"testing"
)

// TestCrossClock verifies that a clock that is faster by 100 ppm, over a path
// of 200 us, neither swaps the capture points nor makes delays negative.
func TestCrossClock(t *testing.T) {
	x := &tapes{}
	x.open()
	for i := range 60 {
		x.bulk(i*10*testMSS, 10, int64(i)*1000*ms+20*ms)
	}
	for i := range x.right {
		p := &x.right[i]
		since := p.TimeNs - ahead - epoch
		if p.Source == hostA {
			since -= oneWay - ms/10
		} else {
			since -= oneWay - ms/10 // it leaves as soon as the data has come
		}
		p.TimeNs = epoch + ahead + since + since/10_000
	}
	for i := range x.left {
		if p := &x.left[i]; p.Source == hostB {
			p.TimeNs -= 2 * (oneWay - ms/10)
		}
	}
	crossing, conn := crossed(t, x)
	if d := conn.Data.Delay; d == nil || d.Min < 0 || d.Max > ms/4 {
		t.Errorf("delay %+v", d)
	}
	if crossing.BoundNs > ms/5 || conn.Data.Lost.N != 0 {
		t.Errorf("%+v", crossing)
	}
}

// TestCrossDrift verifies the offset of clocks that drift apart by 20 ppm for
// ten minutes, over a path of constant delay: its error limit is at least
// that delay.
func TestCrossDrift(t *testing.T) {
	for name, ppm := range map[string]int64{"slower": -20, "equal": 0, "faster": 20} {
		t.Run(name, func(t *testing.T) {
			x := &tapes{}
			x.open()
			for i := range 120 {
				x.bulk(i*5*testMSS, 5, int64(i)*5000*ms+20*ms)
			}
			for i := range x.right {
				p := &x.right[i]
				p.TimeNs += (p.TimeNs - epoch - ahead) * ppm / 1_000_000
			}
			c, conn := crossed(t, x)
			const near = ms / 10
			if off := c.OffsetNs - ahead; max(off, -off) > near || c.BoundNs < oneWay-near || c.BoundNs > oneWay+near {
				t.Errorf("offset %d within %d", c.OffsetNs-ahead, c.BoundNs)
			}
			if d := conn.Data.Delay; d.Min < oneWay-near || d.Max > oneWay+near {
				t.Errorf("delay %+v", d)
			}
		})
	}
}

// TestCrossTick verifies that no delay is below the resolution of the clocks.
func TestCrossTick(t *testing.T) {
	for name, tick := range map[string]int64{"microseconds": 1000, "milliseconds": ms} {
		t.Run(name, func(t *testing.T) {
			x := &tapes{}
			x.open()
			x.bulk(0, 20, 20*ms)
			for i := range x.right {
				if x.right[i].TimeNs -= ahead; x.right[i].Source == hostA {
					x.right[i].TimeNs -= oneWay // data comes at once
				}
			}
			for i := range x.left {
				if x.left[i].Source == hostB {
					x.left[i].TimeNs += tick - oneWay
				}
			}
			c, err := Cross(side(x.left), side(x.right))
			if err != nil {
				t.Fatal(err)
			}
			if d := c.Conns[0].Data.Delay; c.BoundNs < tick || d == nil || d.Min < tick {
				t.Errorf("within %d ns, delay %+v", c.BoundNs, d)
			}
		})
	}
}
