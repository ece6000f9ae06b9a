package truth

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"thru/internal/stat/change"
	"thru/internal/unit"
)

// days is how long a watch is simulated.
const days = 90

// turns draws the values of turns of a watch about 1, one after the other.
type turns func(r *rand.Rand) func(at time.Time) float64

// noise has a standard deviation of 3%; each turn depends on the one before by rho.
func noise(rho float64) turns {
	return func(r *rand.Rand) func(time.Time) float64 {
		last := r.NormFloat64()
		return func(time.Time) float64 {
			last = rho*last + math.Sqrt(1-rho*rho)*r.NormFloat64()
			return 1 + 0.03*last
		}
	}
}

// daily has a cycle of a day besides: 10% less in the afternoon than at night, on weekends only part of it.
func daily(rho, weekend float64) turns {
	return func(r *rand.Rand) func(time.Time) float64 {
		draw := noise(rho)(r)
		return func(at time.Time) float64 {
			depth := 0.05
			if d := at.Weekday(); d == time.Saturday || d == time.Sunday {
				depth *= weekend
			}
			return draw(at) - depth*(1-math.Cos(2*math.Pi*(float64(at.Hour())-3)/24))
		}
	}
}

// backup is 30% less from 2 to 4 in some nights: each, or those to Sunday.
func backup(each bool) turns {
	return func(r *rand.Rand) func(time.Time) float64 {
		draw := noise(0)(r)
		return func(at time.Time) float64 {
			x := draw(at)
			if h := at.Hour(); h >= 2 && h < 4 && (each || at.Weekday() == time.Sunday) {
				x *= 0.7
			}
			return x
		}
	}
}

// paths has two levels, 25% apart, with a scatter of 1%: that of some share of the turns at random, or each for some turns in a row.
func paths(share float64, inRow float64) turns {
	return func(r *rand.Rand) func(time.Time) float64 {
		low := r.Float64() < share
		return func(time.Time) float64 {
			if r.Float64() < 1/inRow {
				low = r.Float64() < share
			}
			x := 1 + 0.01*r.NormFloat64()
			if low {
				x *= 0.75
			}
			return x
		}
	}
}

// alternating has two levels in turns.
func alternating(r *rand.Rand) func(time.Time) float64 {
	n := 0
	return func(time.Time) float64 {
		n++
		return (1 - 0.25*float64(n%2)) * (1 + 0.01*r.NormFloat64())
	}
}

// heavy has Student's t with three degrees of freedom.
func heavy(r *rand.Rand) func(time.Time) float64 {
	return func(time.Time) float64 {
		sum := 0.0
		for range 3 {
			x := r.NormFloat64()
			sum += x * x
		}
		return 1 + 0.02*r.NormFloat64()/math.Sqrt(sum/3)
	}
}

// spikes are delays: a skewed distribution, and one in 30 many times as long.
func spikes(r *rand.Rand) func(time.Time) float64 {
	return func(time.Time) float64 {
		x := 1 + 0.1*r.ExpFloat64()
		if r.IntN(30) == 0 {
			x += 5 * r.ExpFloat64()
		}
		return x
	}
}

// losses are lost packets of an hour of probes, of which most lose none.
func losses(r *rand.Rand) func(time.Time) float64 {
	return func(time.Time) float64 {
		lost := 0
		for r.Float64() < 0.1 {
			lost++
		}
		return float64(lost) / 3600
	}
}

// watch is a simulated watch.
type watch struct {
	name    string
	perDay  int     // turns; 0: 24
	missing float64 // share of the turns
	gaps    bool    // of five and of three days
	turns   turns
	options change.Options
}

// run gives the turns of some days to a detector, each as alter returns it, and calls found with each change.
func (w watch) run(r *rand.Rand, days float64, alter func(day float64, at time.Time, x float64) float64, found func(change.Change)) {
	d, draw := change.New(w.options), w.turns(r)
	begin := time.Date(2026, 3, 2+r.IntN(7), r.IntN(24), 0, 0, 0, time.UTC)
	perDay := cmp.Or(w.perDay, 24)
	every := 24 * time.Hour / time.Duration(perDay)
	gaps := [2]float64{r.Float64() * days, r.Float64() * days}
	for i := range int(days * float64(perDay)) {
		day := float64(i) / float64(perDay)
		at := begin.Add(time.Duration(i)*every + time.Duration(r.Int64N(int64(every/4))))
		x := draw(at)
		if r.Float64() < w.missing || w.gaps && (day > gaps[0] && day < gaps[0]+5 || day > gaps[1] && day < gaps[1]+3) {
			continue
		}
		if c, ok := d.Add(at, alter(day, at, x)); ok {
			found(c)
		}
	}
}

// same changes nothing.
func same(_ float64, _ time.Time, x float64) float64 { return x }

// watches are the simulated watches in which nothing changes.
func watches() []watch {
	return []watch{
		{name: "independent", turns: noise(0)},
		{name: "independent, 6 turns a day", perDay: 6, turns: noise(0)},
		{name: "rho 0.3", turns: noise(0.3)},
		{name: "rho 0.6", turns: noise(0.6)},
		{name: "rho 0.9", turns: noise(0.9)},
		{name: "rho 0.9, 144 turns a day", perDay: 144, turns: noise(0.9)},
		{name: "rho 0.3, a third missing, gaps of days", missing: 0.3, gaps: true, turns: noise(0.3)},
		{name: "daily cycle", turns: daily(0, 1)},
		{name: "daily cycle, flat weekends, rho 0.3", turns: daily(0.3, 0.2)},
		{name: "the same, means of 6 turns an hour", perDay: 144, turns: daily(0.3, 0.2), options: change.Options{Every: time.Hour}},
		{name: "30% less for 2 hours each night", turns: backup(true)},
		{name: "30% less for 2 hours each Sunday", turns: backup(false)},
		{name: "two levels at random, half and half", turns: paths(0.5, 1)},
		{name: "two levels at random, one in ten", turns: paths(0.1, 1)},
		{name: "two levels, some turns each", turns: paths(0.5, 4)},
		{name: switching, turns: paths(0.5, 24)},
		{name: "two levels in turns", turns: alternating},
		{name: "heavy tails", turns: heavy},
		{name: "skew and spikes", turns: spikes},
		{name: "losses, most zero", turns: losses},
	}
}

// switching has no limit: each switch is a change, until some have shown that they are its nature.
const switching = "two levels, two days each"

// series returns the number of series of so many: far fewer in the tests, since each is long.
func series(n int, scale float64) int { return max(4, int(float64(n)*scale*scale)) }

// unchanged returns how often a watch raises false alarms.
func unchanged(scale float64) table {
	t := table{
		title: "watch: change points where nothing changes",
		about: "How many series of 90 days have a change point although nothing changes, and how many have several. " +
			"A series has the values of one metric of a pair, 24 a day.",
		head: []string{"series", "false alarm", "several"},
	}
	for i, w := range watches() {
		several := rate{}
		any := countOf(series(500, scale), uint64(i), func(r *rand.Rand) bool {
			n := 0
			w.run(r, days, same, func(c change.Change) { n += unit.Bit(c.Over.IsZero()) })
			several.came += unit.Bit(n > 1)
			return n > 0
		})
		several.trials = any.trials
		if w.name != switching {
			any = any.most(0.1)
		}
		t.add(w.name, any, several)
	}
	return t
}

// fall is a simulated fall of the values of a watch.
type fall struct {
	watch
	pct    float64
	after  float64 // days
	within int     // turns
	least  float64 // limit of how often it is found; 0: none
}

// fallsFound returns how often a fall is found soon, and how right its figures are.
func fallsFound(scale float64) table {
	t := table{
		title: "watch: change points where the level falls",
		about: "How often a fall, after so many days, is found within so many turns. Of the falls that were found: how often the 95% intervals of size " +
			"and moment are right, and how often the fall was over within 36 hours after the level had come back.\n\n" + otava,
		head: []string{"series", "fall", "after", "turns", "found", "size", "moment", "over"},
	}
	for i, f := range falls() {
		t.rows = append(t.rows, f.simulate(uint64(i), scale))
	}
	return t
}

// otava has the figures of another program on the same series.
const otava = "apache-otava 0.8.0 (29 November 2026; its defaults: windows of 50, p 0.001) on 200 of these series, 24 turns a day. " +
	"In 100 series of 34 days nothing changes: otava, asked after every 8th or 24th turn, reported change points in 88, and of at least 5% in 81; " +
	"thru, asked after each turn, in none. Otava has no model of dependence, cycles, heavy tails and levels by nature, but of the 15 independent series " +
	"it reported changes in 10, too. In 100 series the level falls by 10% after 30 days (half of them independent, a quarter rho 0.3, a quarter heavy tails): " +
	"otava found 97 within 3 turns, 99 within 5, 100 within 8; thru 41, 92 and 99, and all within 24."

func falls() []fall {
	independent := watch{name: "independent", turns: noise(0)}
	return []fall{
		{independent, 10, 4, 5, 0},
		{independent, 10, 7, 5, 0},
		{independent, 10, 14, 5, 0.95},
		{independent, 10, 30, 5, 0.95},
		{independent, 10, 60, 5, 0.95},
		{independent, 5, 30, 24, 0.95},
		{independent, 3, 30, 72, 0.95},
		{watch{name: "independent, 6 turns a day", perDay: 6, turns: noise(0)}, 10, 30, 5, 0.95},
		{watch{name: "rho 0.3", turns: noise(0.3)}, 10, 30, 5, 0},
		{watch{name: "rho 0.3", turns: noise(0.3)}, 10, 30, 8, 0.95},
		{watch{name: "rho 0.6", turns: noise(0.6)}, 10, 30, 24, 0.95},
		{watch{name: "rho 0.9", turns: noise(0.9)}, 10, 30, 72, 0},
		{watch{name: "rho 0.3, a third missing, gaps of days", missing: 0.3, gaps: true, turns: noise(0.3)}, 10, 30, 8, 0},
		{watch{name: "daily cycle", turns: daily(0, 1)}, 10, 30, 8, 0.95},
		{watch{name: "daily cycle, flat weekends, rho 0.3", turns: daily(0.3, 0.2)}, 10, 30, 12, 0.95},
		{watch{name: "two levels at random, half and half", turns: paths(0.5, 1)}, 10, 30, 24, 0.95},
		{watch{name: "heavy tails", turns: heavy}, 10, 30, 8, 0.95},
	}
}

// simulate returns the rates of a fall that lasts five days.
func (f fall) simulate(seed uint64, scale float64) row {
	var size, moment, over rate
	found := countOf(series(500, scale), seed, func(r *rand.Rand) bool {
		s := fallen{fall: f}
		f.run(r, f.after+6.5, s.alter, s.found)
		if s.took == 0 {
			return false
		}
		size.trials, moment.trials, over.trials = size.trials+1, moment.trials+1, over.trials+1
		_, low, high := s.first.Percent()
		size.came += unit.Bit(low <= -f.pct && -f.pct <= high)
		moment.came += unit.Bit(s.first.Earliest.Before(s.begin) && !s.first.Latest.Before(s.begin))
		over.came += unit.Bit(s.over)
		return s.took <= f.within
	})
	names := []string{f.name, fmt.Sprintf("%g%%", f.pct), fmt.Sprintf("%g days", f.after), fmt.Sprint(f.within)}
	return row{names, []rate{found.least(f.least), size, moment, over}}
}

// fallen is one series with a fall.
type fallen struct {
	fall
	turns int       // since the fall
	begin time.Time // the first of them
	first change.Change
	took  int // turns until it was found; 0: it was not
	over  bool
}

// alter lowers the turns of five days.
func (s *fallen) alter(day float64, at time.Time, x float64) float64 {
	if day < s.after || day >= s.after+5 {
		return x
	}
	if s.turns++; s.turns == 1 {
		s.begin = at
	}
	return x * (1 - s.pct/100)
}

func (s *fallen) found(c change.Change) {
	switch {
	case s.turns > 0 && s.took == 0 && c.Over.IsZero():
		s.first, s.took = c, s.turns
	case s.took > 0 && c.Over.Equal(s.first.Since):
		s.over = true
	}
}
