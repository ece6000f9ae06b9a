package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
)

// Tables of the signed-rank test (Wilcoxon 1945; Hollander, Wolfe and Chicken,
// table A.4), and an exact tie.
func TestSignedRank(t *testing.T) {
	for name, tt := range map[string]struct {
		xs   []float64
		want float64
	}{
		"none":           {nil, 1},
		"zeros":          {[]float64{0, 0}, 1},
		"six, one side":  {[]float64{1, 2, 3, 4, 5, 6}, 2.0 / 64},
		"five, one side": {[]float64{-1, -2, -3, -4, -5}, 2.0 / 32},
		"least against":  {[]float64{-1, 2, 3, 4, 5, 6}, 4.0 / 64},
		"three against":  {[]float64{1, 2, -3, 4, 5, 6, 7, 8}, 10.0 / 256}, // sums 0 to 3: 1+1+1+2 of 256
		"ties":           {[]float64{1, 1, 1}, 2.0 / 8},
		"ties, even":     {[]float64{1, -1}, 1},
	} {
		if got := SignedRank(tt.xs); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%s: %g, want %g", name, got, tt.want)
		}
	}
	many := make([]float64, 150) // beyond the exact computation
	for i := range many {
		many[i] = float64(i+1) * []float64{1, -1}[i%2]
	}
	exact := tailOf(doubledRanks(many), 2*5600)
	if normal := normalTail(doubledRanks(many), 2*5600); math.Abs(exact-normal) > 0.002 {
		t.Errorf("normal %g, exact %g", normal, exact)
	}
}

// The example of Hollander, Wolfe and Chicken 3.1 (depression scale before and
// after therapy): estimate -0.46, interval of 96% from -0.786 to -0.010.
func TestHodgesLehmann(t *testing.T) {
	before := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	after := []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	var differences []float64
	for i := range before {
		differences = append(differences, after[i]-before[i])
	}
	estimate, low, high, found := HodgesLehmann(differences, 0.95)
	if !found || math.Abs(estimate+0.46) > 1e-9 || math.Abs(low+0.786) > 1e-9 || math.Abs(high+0.010) > 1e-9 {
		t.Errorf("%g [%g, %g] %v", estimate, low, high, found)
	}
	if p := SignedRank(differences); math.Abs(p-0.0390625) > 1e-9 {
		t.Errorf("p %g", p)
	}
	for n, want := range map[int]bool{0: false, 1: false, 5: false, 6: true, 7: true, 200: true} {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = float64(i)
		}
		_, low, high, found := HodgesLehmann(xs, 0.95)
		if found != want || found && !(low <= high) {
			t.Errorf("%d differences: %v [%g, %g]", n, found, low, high)
		}
	}
	if LeastPairs(0.95) != 6 || LeastPairs(0.975) != 7 {
		t.Errorf("least pairs %d, %d", LeastPairs(0.95), LeastPairs(0.975))
	}
}

// variants is a document with a step for each variant of a pair, and the rates of its runs in Gb/s.
func variants(runs map[string][]float64) *measure.Document {
	d := planned()
	var names []string
	for name := range runs {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		c := measure.Cell{From: "a", To: "b", Group: i, Protocol: measure.TCP, Axes: []measure.Axis{{Name: VariantAxis, Value: name}, {Name: "streams", Value: "4"}}}
		for n, g := range runs[name] {
			c.Runs = append(c.Runs, part{"a", "b", 0, []float64{g, g}, 0}.run(n))
		}
		Summarise(&c, nil, Link{})
		d.Cells = append(d.Cells, c)
	}
	Groups(d)
	return d
}

// around returns runs about a rate, with a scatter in percent that depends on the seed.
func around(gbps, pct float64, n int, seed uint64) []float64 {
	random := rand.New(rand.NewPCG(seed, 1))
	var xs []float64
	for range n {
		xs = append(xs, gbps*(1+pct/100*random.NormFloat64()))
	}
	return xs
}

func TestCompare(t *testing.T) {
	for name, tt := range map[string]struct {
		runs map[string][]float64
		want []string // of each variant but the first
		why  string   // part of the first one's reason
	}{
		"faster":        {map[string][]float64{"a": around(5, 0.3, 8, 1), "b": around(5.5, 0.3, 8, 2)}, []string{measure.Improved}, "b against a: +10.2%"},
		"slower":        {map[string][]float64{"a": around(5, 0.3, 8, 1), "b": around(4.5, 0.3, 8, 2)}, []string{measure.Worse}, "beyond 2%"},
		"the same":      {map[string][]float64{"a": around(5, 0.3, 8, 1), "b": around(5.01, 0.3, 8, 2)}, []string{measure.Equivalent}, "within 2%"},
		"noise":         {map[string][]float64{"a": around(5, 5, 8, 1), "b": around(5.1, 5, 8, 2)}, []string{measure.Undecided}, "pairs of runs"},
		"too few pairs": {map[string][]float64{"a": around(5, 0.3, 5, 1), "b": around(6, 0.3, 5, 2)}, []string{measure.Undecided}, "pairs of runs: 5; an interval at 95% needs 6"},
		"two variants share the doubt": {map[string][]float64{"a": around(5, 0.3, 6, 1), "b": around(6, 0.3, 6, 2), "c": around(6, 0.3, 6, 3)},
			[]string{measure.Undecided, measure.Undecided}, "pairs of runs: 6; an interval at 97.5% needs 7"},
		"the clear one frees the other": {map[string][]float64{"a": around(5, 0.3, 7, 1), "b": around(6, 0.3, 7, 2), "c": around(5.1, 1.5, 7, 3)},
			[]string{measure.Improved, measure.Undecided}, ""},
		"a run is missing": {map[string][]float64{"a": around(5, 0.3, 8, 1), "b": around(5.5, 0.3, 7, 2)}, []string{measure.Improved}, ""},
		"one variant":      {map[string][]float64{"a": around(5, 0.3, 8, 1)}, nil, ""},
	} {
		d := variants(tt.runs)
		Compare(d)
		var got []string
		for _, c := range d.Comparisons {
			got = append(got, c.Outcome)
		}
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%s: %q, want %q: %+v", name, got, tt.want, d.Comparisons)
			continue
		}
		if len(got) == 0 {
			continue
		}
		c := d.Comparisons[0]
		if !strings.Contains(c.Reason, tt.why) || c.What != "a -> b, streams 4" || c.Base != "a" || c.Variant != "b" {
			t.Errorf("%s: %+v", name, c)
		}
		if c.Pairs != min(len(tt.runs["a"]), len(tt.runs["b"])) || len(c.Guardrails) != 4 {
			t.Errorf("%s: %d pairs, guardrails %+v", name, c.Pairs, c.Guardrails)
		}
	}
}

// An outcome that is clear at the stricter level of two leaves the other one the usual level.
func TestSettleHolm(t *testing.T) {
	clear := &versus{logs: []float64{0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}}
	near := &versus{logs: []float64{0.05, 0.05, 0.05, 0.01, 0.05, 0.05, 0.05}} // its least mean is within 2%
	same := &versus{logs: near.logs}
	for _, v := range []*versus{clear, near, same} {
		v.Pairs, v.p = len(v.logs), SignedRank(v.logs)
	}
	settleHolm([]*versus{clear, near})
	if clear.Outcome != measure.Improved || near.Outcome != measure.Improved || *near.LevelPct != 95 {
		t.Errorf("%+v, %+v", clear.Comparison, near.Comparison)
	}
	settleHolm([]*versus{near, same}) // neither is clear
	if near.Outcome != measure.Undecided || same.Outcome != measure.Undecided || *near.LevelPct != 97.5 {
		t.Errorf("%+v, %+v", near.Comparison, same.Comparison)
	}
	p := []*versus{{p: 0.01}, {p: 0.04}, {p: 0.03}}
	for _, v := range p {
		v.Pairs = 6
	}
	holmP(p) // the worked example of Holm's procedure: 0.01*3, 0.03*2, and no less than that
	for i, want := range []float64{0.03, 0.06, 0.06} {
		if !isAbout(p[i].P, want) {
			t.Errorf("%d: p %g, want %g", i, *p[i].P, want)
		}
	}
}

// A drift of the path affects both variants of a block, and is no difference.
func TestCompareDrift(t *testing.T) {
	a, b := around(5, 0.2, 10, 1), around(5, 0.2, 10, 2)
	for i := range a {
		a[i] *= 1 + float64(i)/10
		b[i] *= 1 + float64(i)/10
	}
	d := variants(map[string][]float64{"a": a, "b": b})
	if Compare(d); d.Comparisons[0].Outcome != measure.Equivalent {
		t.Errorf("%+v", d.Comparisons[0])
	}
}

func TestGuardrails(t *testing.T) {
	d := variants(map[string][]float64{"a": around(5, 0.3, 8, 1), "b": around(5.5, 0.3, 8, 2)})
	for i := range d.Cells {
		d.Cells[i].RTTLoaded = new([]int64{2e6, 40e6}[i])
		d.Cells[i].RFC6349 = &measure.RFC6349{EfficiencyPct: new([]float64{99.99, 99.95}[i])}
		for k := range d.Cells[i].Runs {
			d.Cells[i].Runs[k].Flows[0].Sender.Host = hostSpan([]float64{40, 90}[i], 20)
		}
	}
	Compare(d)
	worse := map[string]bool{}
	for _, g := range d.Comparisons[0].Guardrails {
		worse[g.Name] = g.Worse
		if (g.Base == nil || g.Variant == nil) != (g.NotJudged != "") {
			t.Errorf("%+v", g)
		}
	}
	want := map[string]bool{"CPU per Gb/s": true, "loss": false, "RTT under load": true, "fairness": false}
	if fmt.Sprint(worse) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", worse, want)
	}
}

// Of 60 comparisons without a real difference at most 2 may show one (methods.md), whatever the noise, the drift
// and the number of runs.
func TestCompareTheSame(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 7))
		wrong := 0
		for range 60 {
			n, scatter, drift := 6+random.IntN(10), 0.2+5*random.Float64(), random.NormFloat64()/50
			variant := func() (xs []float64) {
				for i := range n {
					noise := scatter / 100 * random.NormFloat64()
					if random.IntN(10) == 0 { // now and then a bad one
						noise -= 0.1 * random.Float64()
					}
					xs = append(xs, 5*(1+drift*float64(i))*(1+noise))
				}
				return xs
			}
			d := variants(map[string][]float64{"a": variant(), "b": variant()})
			if Compare(d); d.Comparisons[0].Outcome != measure.Equivalent && d.Comparisons[0].Outcome != measure.Undecided {
				wrong++
			}
		}
		if wrong > 2 {
			t.Errorf("seed %d: %d of 60 are said to differ", seed, wrong)
		}
	}
}

// The setting that distinguishes two variants must have been in force, and their figures be comparable; otherwise
// they are not compared.
func TestNotCompared(t *testing.T) {
	type side struct {
		spec measure.Spec
		used string // congestion control
		io   string
		cut  int64 // the kernel granted this window instead
	}
	cubic, bbr := measure.Spec{Congestion: "cubic"}, measure.Spec{Congestion: "bbr"}
	for name, tt := range map[string]struct {
		a, b side
		want string // part of the reason; "": they are compared
	}{
		"in force":          {side{spec: cubic, used: "cubic"}, side{spec: bbr, used: "bbr"}, ""},
		"not told":          {side{spec: cubic}, side{spec: bbr}, ""},
		"the route's":       {side{spec: cubic, used: "cubic"}, side{spec: bbr, used: "cubic"}, "b requested bbr, but the kernel of a used cubic"},
		"base not in force": {side{spec: bbr, used: "reno"}, side{spec: cubic, used: "cubic"}, "a requested bbr, but the kernel of a used reno"},
		"the default is it": {side{used: "cubic"}, side{spec: cubic, used: "cubic"}, "both used cubic"},
		"and more streams":  {side{used: "cubic"}, side{spec: measure.Spec{Congestion: "cubic", Streams: 4}, used: "cubic"}, ""},
		"data path":         {side{spec: measure.Spec{IO: "copy"}, io: "copy"}, side{spec: measure.Spec{IO: "sendfile"}, io: "copy"}, "both used the data path copy"},
		"windows cut":       {side{spec: measure.Spec{Window: measure.Pair{Send: 8 << 20}}, cut: 4 << 20}, side{spec: measure.Spec{Window: measure.Pair{Send: 16 << 20}}, cut: 4 << 20}, "cut the windows of both to 4 MiB"},
		"one window cut":    {side{spec: measure.Spec{Window: measure.Pair{Send: 1 << 20}}}, side{spec: measure.Spec{Window: measure.Pair{Send: 16 << 20}}, cut: 4 << 20}, ""},
		"the same twice":    {side{spec: cubic, used: "cubic"}, side{spec: cubic, used: "cubic"}, ""},
		"other rate":        {side{spec: measure.Spec{Rate: 1e9}}, side{spec: measure.Spec{Rate: 2e9}}, "they request different rates"},
		"other protocol":    {side{spec: measure.Spec{Protocol: measure.TCP}}, side{spec: measure.Spec{Protocol: measure.UDP}}, "different kinds of traffic"},
	} {
		d := variants(map[string][]float64{"a": around(5, 0.3, 8, 1), "b": around(5.5, 0.3, 8, 2)})
		for i, x := range []side{tt.a, tt.b} {
			c := &d.Cells[i]
			c.Spec = x.spec
			for k := range c.Runs {
				for _, e := range []*measure.Evidence{c.Runs[k].Flows[0].Sender, c.Runs[k].Flows[0].Receiver} {
					e.IO, e.Streams = x.io, []measure.Stream{{Congestion: x.used, Window: measure.Buffer{Usable: x.cut, Cut: x.cut > 0}}}
				}
			}
		}
		Compare(d)
		c := d.Comparisons[0]
		if tt.want == "" {
			if c.Outcome != measure.Improved {
				t.Errorf("%s: %+v", name, c)
			}
			continue
		}
		if c.Outcome != measure.NotCompared || !strings.Contains(c.Reason, tt.want) || c.ChangePct != nil || c.P != nil || c.Guardrails != nil || c.Pairs != 8 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
