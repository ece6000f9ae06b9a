package stat

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"thru/internal/measure"
)

// The judgement of groups never panics and never makes a figure that JSON cannot encode, whatever the evidence: a
// document may come from anywhere.
func TestRandomGroups(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 3))
		wild := func() int64 {
			return []int64{0, 1, -1, 1e9, 5e9, math.MaxInt64, math.MinInt64, int64(random.Uint64())}[random.IntN(8)]
		}
		d := planned()
		for i := range 1 + random.IntN(6) {
			c := measure.Cell{From: fmt.Sprint(random.IntN(3)), To: fmt.Sprint(random.IntN(3)), Group: random.IntN(2), Rung: []string{"", "low", "high"}[random.IntN(3)], Protocol: measure.TCP}
			c.Axes = []measure.Axis{{Name: VariantAxis, Value: fmt.Sprint(random.IntN(2))}}
			if random.IntN(4) == 0 {
				c.Spec.Traffic = measure.RR
			}
			c.Spec.Duplex, c.Spec.SenderCPUs = random.IntN(4) == 0, []string{"", "0", "0-1", "x"}[random.IntN(4)]
			for k := range random.IntN(4) {
				r := part{c.From, c.To, float64(i), []float64{1, 2, 3}, 1e6}.run(k)
				switch random.IntN(6) {
				case 0:
					r.Timing = nil
				case 1:
					r.Timing = &measure.Timing{StartNs: wild(), EndNs: wild(), BoundNs: wild()}
				case 2:
					r.Flows[0].Receiver.Bins = []measure.StreamBin{{At: wild(), Span: wild(), Bytes: wild()}, {At: wild(), Span: wild(), Bytes: wild()}}
					r.Flows[0].Receiver.MeasuredNs, r.Flows[0].Receiver.Bytes = wild(), wild()
				case 3:
					r.Flows[0].Receiver, r.Partial = nil, true
				case 4:
					r.Flows, r.Error = nil, &measure.Error{Message: "cut"}
				}
				c.Runs = append(c.Runs, r)
			}
			Summarise(&c, nil, Link{RateBps: []int64{0, 10e9}[random.IntN(2)]})
			d.Cells = append(d.Cells, c)
		}
		d.EndPoints = []measure.EndPoint{{Name: "0", Labels: map[string]string{"site": "east"}}, {Name: "1", Lost: "gone"}}
		Groups(d)
		Ladder(d, nil)
		Goals(d, []Goal{{Of: OfTotal, Figure: FigureGoodput, Wanted: 1}, {Of: OfPair, Figure: FigureShare, Wanted: 95}, {Of: OfHost, Figure: FigureRTT, AtMost: true}, {Figure: FigureFairness}})
		Compare(d)
		if _, err := json.Marshal(d); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// The time to judge a plan of many pairs does not grow quadratically: this one took seconds when each flow listed
// all others again.
func BenchmarkGroups(b *testing.B) {
	var parts []part
	for i := range 500 {
		parts = append(parts, part{fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i), 0, []float64{1, 1, 1}, 1e6})
	}
	d := planned(cellsOfParts(parts...)...)
	for b.Loop() {
		Groups(d)
		Goals(d, []Goal{{Of: OfPair, Figure: FigureGoodput, Wanted: 1}})
		Compare(d)
	}
}
