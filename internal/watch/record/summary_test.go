package record_test

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"thru/internal/watch/record"
)

// TestSpread checks that quantiles are within 1% of a measured value, and that merged parts equal the whole.
func TestSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(1e-6, 1e12)), 1, 200).Draw(t, "values")
		cut := rapid.IntRange(0, len(values)).Draw(t, "cut")
		var all, left, right record.Summary
		for i, v := range values {
			all.Add(record.RTTMedian, v)
			if i < cut {
				left.Add(record.RTTMedian, v)
			} else {
				right.Add(record.RTTMedian, v)
			}
		}
		merged := record.Merge(left, right)
		if diff := cmp.Diff(all.Values, merged.Values); diff != "" {
			t.Fatalf("merged parts differ from the whole (-whole +merged):\n%s", diff)
		}
		p := rapid.Float64Range(0, 1).Draw(t, "p")
		slices.Sort(values)
		exact := values[max(0, int(math.Ceil(p*float64(len(values))))-1)]
		if got := all.Values[0].Quantile(p); math.Abs(got-exact) > 0.0101*exact {
			t.Errorf("quantile %g of %v = %g, want %g", p, values, got, exact)
		}
	})
}

func TestMerge(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 11, n, 0, 0, 0, 0, time.UTC) }
	pair := record.Pair{From: "a", To: "b"}
	goal := record.Goal{Pair: pair, Objective: "goodput >= 9G, 99% of days", Metric: record.Goodput, Limit: 9e9, AtLeast: true, SharePct: 99, Per: record.PerDay}
	days := make([]record.Summary, 30)
	for i := range days {
		goal.Kept, goal.Of = 1, 1
		if i == 7 {
			goal.Kept = 0
		}
		days[i] = record.Summary{Pair: pair, Begin: day(i + 1), End: day(i + 2), Goals: []record.Goal{goal}, SentPackets: 1000, LostPackets: 1}
		days[i].States.Add(record.Up, 23*time.Hour)
		days[i].States.Add(record.Refused, time.Hour)
	}
	lasting := record.Outage{Pair: pair, Begin: day(3).Add(-time.Minute), Reason: record.NoAnswer}
	days[1].AddOutage(lasting)
	lasting.End = day(3).Add(time.Minute)
	days[2].AddOutage(lasting)
	days[1].States.Add(record.Down, time.Minute)
	days[2].States.Add(record.Down, time.Minute)

	month := record.Merge(days...)
	if !month.Begin.Equal(day(1)) || !month.End.Equal(day(31)) {
		t.Errorf("the month is from %v to %v", month.Begin, month.End)
	}
	if diff := cmp.Diff([]record.Outage{lasting}, month.Outages); diff != "" {
		t.Errorf("an outage over midnight is one outage (-want +got):\n%s", diff)
	}
	if got, known := month.Availability(); !known || math.Abs(got-(1-2.0/(30*23*60+2))) > 1e-12 {
		t.Errorf("availability %v, %v", got, known)
	}
	if g := month.Goals[0]; g.Kept != 29 || g.Of != 30 || math.Abs(g.UsedPct-100/0.3) > 1e-6 {
		t.Errorf("objective: %+v", g)
	}
	if got, known := month.LossRatio(); !known || got != 0.001 {
		t.Errorf("loss %v, %v", got, known)
	}
	if _, known := new(record.Summary).Availability(); known {
		t.Error("availability of no judged time is known")
	}
}

func TestTimesJSON(t *testing.T) {
	var times record.Times
	times.Add(record.Down, time.Second)
	times.Add(record.NotMeasured, 3)
	data, err := json.Marshal(times)
	if err != nil || string(data) != `{"down":1000000000,"not-measured":3}` {
		t.Errorf("%s, %v", data, err)
	}
	var back record.Times
	if err := json.Unmarshal(data, &back); err != nil || !maps.Equal(back, times) {
		t.Errorf("%v, %v", back, err)
	}
	if err := json.Unmarshal([]byte(`{"down":"long"}`), &back); err == nil {
		t.Error("words for times are accepted")
	}
}

func TestWindow(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no time zones on this machine: ", err)
	}
	at := func(day, hour, minute int) time.Time { return time.Date(2026, 10, day, hour, minute, 0, 0, berlin) }
	once := record.MaintenanceWindow{Begin: at(20, 2, 0), End: at(20, 4, 0)}
	weekly := record.MaintenanceWindow{Begin: at(4, 2, 0), End: at(4, 4, 0), EveryDays: 7} // Sundays; summer time ends on the 25th
	nightly := record.MaintenanceWindow{Begin: at(1, 23, 0), End: at(2, 1, 0), EveryDays: 1}
	for _, c := range []struct {
		name   string
		window record.MaintenanceWindow
		at     time.Time
		in     bool
		edge   time.Time
	}{
		{"before", once, at(20, 1, 59), false, at(20, 2, 0)},
		{"begin", once, at(20, 2, 0), true, at(20, 4, 0)},
		{"end", once, at(20, 4, 0), false, time.Time{}},
		{"first week", weekly, at(4, 3, 0), true, at(4, 4, 0)},
		{"between weeks", weekly, at(6, 3, 0), false, at(11, 2, 0)},
		{"longer day", weekly, at(25, 3, 59), true, at(25, 4, 0)},
		{"after the longer day", weekly, at(31, 3, 0), false, time.Date(2026, 11, 1, 2, 0, 0, 0, berlin)},
		{"over midnight", nightly, at(26, 0, 30), true, at(26, 1, 0)},
		{"long before", weekly, at(1, 0, 0), false, at(4, 2, 0)},
	} {
		if in, edge := c.window.At(c.at); in != c.in || !edge.Equal(c.edge) {
			t.Errorf("%s: %v until %v, want %v until %v", c.name, in, edge, c.in, c.edge)
		}
	}
	pair := record.Pair{From: "a", To: "b"}
	for _, c := range []struct {
		window record.MaintenanceWindow
		want   bool
	}{
		{record.MaintenanceWindow{}, true},
		{record.MaintenanceWindow{Hosts: []string{"b"}}, true},
		{record.MaintenanceWindow{Hosts: []string{"c"}}, false},
		{record.MaintenanceWindow{Segments: []string{"wan"}}, true},
		{record.MaintenanceWindow{Segments: []string{"lan"}}, false},
	} {
		if got := c.window.Covers(pair, []string{"wan"}); got != c.want {
			t.Errorf("%+v covers %v: %v", c.window, pair, got)
		}
	}
}
