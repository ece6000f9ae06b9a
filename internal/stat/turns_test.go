package stat

import "testing"

func TestInTurns(t *testing.T) {
	for name, x := range map[string]struct {
		base, trial []float64
		sure, open  bool
	}{
		"nothing":                            {nil, []float64{1}, false, false},
		"the same":                           {[]float64{100}, []float64{110}, false, false},
		"one of each is never sure":          {[]float64{100}, []float64{5000}, false, true},
		"the base was an exception":          {[]float64{50, 100}, []float64{100}, false, true},
		"and then it is no more":             {[]float64{50, 100, 100, 100}, []float64{100, 100, 100}, false, false},
		"twice, and the base again":          {[]float64{100, 98}, []float64{200}, true, false},
		"half more takes runs":               {[]float64{100, 101}, []float64{150}, false, true},
		"half more":                          {[]float64{100, 101, 99, 100}, []float64{150, 151, 149, 150}, true, false},
		"a fifth more is never told":         {[]float64{100, 100, 100, 100, 100}, []float64{125, 125, 125, 125, 125}, false, false},
		"what scatters by itself says less":  {[]float64{100, 300, 90, 280, 100}, []float64{300, 280, 500, 600, 500}, false, false},
		"less":                               {[]float64{100, 100}, []float64{10}, false, false},
		"the path has changed in between":    {[]float64{100, 300}, []float64{300}, false, true},
		"no run that carried nothing counts": {[]float64{0, 100}, []float64{1000}, false, false},
	} {
		if got := InTurns(x.base, x.trial); got.Sure != x.sure || got.Open() != x.open {
			t.Errorf("%s: %+v, open %v", name, got, got.Open())
		}
	}
}
