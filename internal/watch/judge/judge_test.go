package judge_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thru/internal/watch/judge"
	"thru/internal/watch/record"
)

// start is a Sunday at noon.
func start() time.Time { return time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC) }

// ab is the pair of most tests.
func ab() record.Pair { return record.Pair{From: "a", To: "b"} }

// world drives a judge by a clock of its own, and keeps the events as lines.
type world struct {
	t      testing.TB
	config judge.Config
	judge  *judge.Judge
	now    time.Time
	lines  []string
	events []record.Event
}

func newWorld(t testing.TB, c judge.Config) *world {
	return &world{t: t, config: c, judge: judge.New(c), now: start()}
}

// keep notes events.
func (w *world) keep(events []record.Event) {
	for _, e := range events {
		w.events = append(w.events, e)
		w.lines = append(w.lines, line(e))
	}
}

// line words an event, with its time since the start.
func line(e record.Event) string {
	at := e.At.Sub(start()).String()
	switch e.Kind {
	case record.StateChanged:
		return strings.TrimSpace(fmt.Sprintf("%s %s>%s %s %s", at, e.Pair.From, e.Pair.To, e.State, e.Reason))
	case record.OutageBegan:
		return fmt.Sprintf("%s outage", at)
	case record.OutageEnded:
		return fmt.Sprintf("%s outage of %s", at, e.Outage.End.Sub(e.Outage.Begin))
	case record.DayOver:
		return fmt.Sprintf("%s day", at)
	}
	place := strings.TrimSpace(e.Alarm.Segment + " " + e.Alarm.Host + " " + string(e.Alarm.Side))
	words := []string{at, string(e.Kind), string(e.Alarm.Kind)}
	if place != "" {
		words = append(words, "of "+place)
	}
	words = append(words, fmt.Sprintf("%d pairs", len(e.Alarm.Pairs)))
	if e.Alarm.Flapping {
		words = append(words, "flapping")
	}
	return strings.Join(words, " ")
}

// said returns the lines since the last call.
func (w *world) said() []string {
	lines := w.lines
	w.lines = nil
	return lines
}

// expect compares the lines since the last call.
func (w *world) expect(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.said(), cmp.Transformer("none", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
		w.t.Errorf("events (-want +got):\n%s", diff)
	}
}

// sample is a good probe sample of the minute that begins now.
func (w *world) sample(p record.Pair) record.Sample {
	return record.Sample{Pair: p, Layer: record.Probe, Begin: w.now, Seconds: 60, ID: p.From + p.To + w.now.String(), State: record.Up,
		Values: map[record.Metric]float64{record.Sent: 60, record.LossRatio: 0, record.RTTMedian: 1e6}}
}

// minute lets a minute go by, with a sample of it.
func (w *world) minute(s record.Sample) {
	w.now = w.now.Add(time.Minute)
	w.keep(w.judge.Take(s))
	w.keep(w.judge.Tick(w.now))
}

// minutes lets minutes go by, with good samples of ab.
func (w *world) minutes(n int) {
	for range n {
		w.minute(w.sample(ab()))
	}
}

// gap is a run of lost packets, by seconds since the start; end 0 is open.
func gap(begin, end float64, lost int) record.Gap {
	at := func(s float64) time.Time { return start().Add(time.Duration(s * float64(time.Second))) }
	g := record.Gap{Begin: at(begin), Lost: lost}
	if end > 0 {
		g.End = at(end)
	}
	return g
}

// TestOutages checks the exact begin and end of outages.
func TestOutages(t *testing.T) {
	for _, c := range []struct {
		name  string
		turns [][]record.Gap // of the minutes after the first
		want  []string
	}{
		{"two packets are no outage", [][]record.Gap{{gap(70, 72, 2)}}, nil},
		{"within a turn", [][]record.Gap{{gap(70, 75, 5)}}, []string{"1m10s outage", "1m10s a>b down no-answer", "1m15s outage of 5s", "1m15s a>b up"}},
		{"two in a turn", [][]record.Gap{{gap(70, 75, 5), gap(80, 83, 3)}}, []string{
			"1m10s outage", "1m10s a>b down no-answer", "1m15s outage of 5s", "1m15s a>b up",
			"1m20s outage", "1m20s a>b down no-answer", "1m23s outage of 3s", "1m23s a>b up"}},
		{"over turns", [][]record.Gap{{gap(110, 0, 10)}, {gap(110, 0, 70)}, {gap(110, 190.5, 80)}}, []string{
			"1m50s outage", "1m50s a>b down no-answer", "3m10.5s outage of 1m20.5s", "3m10.5s a>b up"}},
		{"found one turn late", [][]record.Gap{{gap(118, 0, 2)}, {gap(118, 121, 3)}}, []string{
			"1m58s outage", "1m58s a>b down no-answer", "2m1s outage of 3s", "2m1s a>b up"}},
		{"nothing after two lost at the end", [][]record.Gap{{gap(118, 0, 2)}, {gap(118, 120, 2)}}, nil},
		{"a prober that restarts in an outage", [][]record.Gap{{gap(110, 0, 10)}, {gap(120, 122, 2)}}, []string{
			"1m50s outage", "1m50s a>b down no-answer", "2m2s outage of 12s", "2m2s a>b up"}},
		{"ends with the turn", [][]record.Gap{{gap(110, 0, 10)}, nil}, []string{
			"1m50s outage", "1m50s a>b down no-answer", "2m0s outage of 10s", "2m0s a>b up"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, judge.Config{Gather: time.Hour})
			w.minutes(1)
			w.expect("0s a>b up")
			for _, gaps := range c.turns {
				s := w.sample(ab())
				s.Gaps = gaps
				w.minute(s)
			}
			w.minutes(1)
			w.expect(c.want...)
			w.sums(ab())
		})
	}
}

// days returns the summaries of a pair that are not final, until an instant: those of a copy of the judge that forgets the pair.
func days(t interface{ Fatal(...any) }, j *judge.Judge, c judge.Config, p record.Pair, until time.Time) (all []record.Summary) {
	data, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := judge.Restore(c, data)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range copied.Forget(p, until) {
		if e.Kind == record.DayOver {
			all = append(all, *e.Day)
		}
	}
	if len(all) == 0 {
		t.Fatal("no day of ", p)
	}
	return all
}

// sums checks that the states of a pair have all of its time, and returns its summary.
func (w *world) sums(p record.Pair) record.Summary {
	w.t.Helper()
	rest := days(w.t, w.judge, w.config, p, w.now)
	var final []record.Summary
	for _, e := range w.events {
		if e.Kind == record.DayOver && *e.Pair == p {
			final = append(final, *e.Day)
		}
	}
	all := record.Merge(append(final, rest...)...)
	if got, want := all.States.All()+all.Maintenance.All(), w.now.Sub(all.Begin); got != want || !all.End.Equal(w.now) {
		w.t.Errorf("%v: states have %v of %v until %v: %+v", p, got, want, all.End, all.States)
	}
	return all
}

// TestNotDown checks that a turn that does not judge the path is neither down nor up.
func TestNotDown(t *testing.T) {
	for _, c := range []struct {
		state  record.State
		reason record.Reason
	}{
		{record.Refused, record.NotPermitted},
		{record.Deferred, record.Load},
		{record.NotMeasured, record.AgentAway},
		{record.NotMeasured, record.Slept},
	} {
		w := newWorld(t, judge.Config{})
		w.minutes(1)
		s := w.sample(ab())
		s.State, s.Reason, s.Values, s.Gaps = c.state, c.reason, nil, []record.Gap{gap(60, 0, 60)}
		w.minute(s)
		w.minutes(1)
		w.expect("0s a>b up", fmt.Sprintf("1m0s a>b %s %s", c.state, c.reason), "2m0s a>b up")
		all := w.sums(ab())
		if all.States.In(c.state) != time.Minute || all.States.In(record.Up) != 2*time.Minute || len(all.Outages) > 0 || all.Turns != 2 {
			t.Errorf("%s: %+v", c.reason, all)
		}
		if got, known := all.Availability(); got != 1 || !known {
			t.Errorf("%s: availability %v", c.reason, got)
		}
	}
}

// TestSilence checks that time without samples is not measured, and no part of an outage.
func TestSilence(t *testing.T) {
	w := newWorld(t, judge.Config{Gather: 24 * time.Hour})
	w.minutes(1)
	s := w.sample(ab())
	s.Gaps = []record.Gap{gap(90, 0, 30)}
	w.minute(s)
	w.now = w.now.Add(time.Hour)
	w.keep(w.judge.Tick(w.now))
	w.minutes(1)
	w.expect("0s a>b up", "1m30s outage", "1m30s a>b down no-answer", "3m30s a>b not-measured no-sample", "1h2m0s outage of 1h0m30s", "1h2m0s a>b up")
	all := w.sums(ab())
	if got := all.States.In(record.Down); got != 2*time.Minute {
		t.Errorf("down for %v", got)
	}
	if o := all.Outages[0]; time.Duration(o.UnseenNs) != 58*time.Minute+30*time.Second {
		t.Errorf("the outage is unseen for %v", time.Duration(o.UnseenNs))
	}
}

// TestSpool checks that samples of an agent that was cut off replace "not measured", in their exact times, and count once.
func TestSpool(t *testing.T) {
	w := newWorld(t, judge.Config{})
	w.minutes(1)
	cut := w.now
	var spool []record.Sample
	for i := range 3 * 24 * 60 {
		s := w.sample(ab())
		if i == 100 {
			s.Gaps = []record.Gap{{Begin: w.now.Add(10 * time.Second), End: w.now.Add(20 * time.Second), Lost: 10}}
		}
		spool = append(spool, s)
		away := record.Sample{Pair: ab(), Layer: record.Probe, Begin: w.now, Seconds: 60, State: record.NotMeasured, Reason: record.AgentAway}
		w.minute(away)
	}
	if all := w.sums(ab()); all.States.In(record.NotMeasured) != 3*24*time.Hour {
		t.Errorf("before the spool: %+v", all.States)
	}
	w.expect("0s a>b up", "1m0s a>b not-measured agent-away")
	for _, s := range append(spool, spool...) {
		w.keep(w.judge.Take(s))
	}
	w.minutes(1)
	want := []string{cut.Add(100*time.Minute+10*time.Second).Sub(start()).String() + " outage"}
	want = append(want, cut.Add(100*time.Minute+20*time.Second).Sub(start()).String()+" outage of 10s", "12h0m0s day", "36h0m0s day", "60h0m0s day")
	w.expect(append(want, "72h0m0s a>b up")...)
	all := w.sums(ab())
	if all.States.In(record.Up) != w.now.Sub(start())-10*time.Second || all.Turns != 3*24*60+2 {
		t.Errorf("after the spool: %+v, %d turns", all.States, all.Turns)
	}
}

// TestPartOfSpool checks that what did not arrive stays not measured, at once, and with its reason.
func TestPartOfSpool(t *testing.T) {
	w := newWorld(t, judge.Config{})
	w.minutes(1)
	var spool []record.Sample
	for range 10 {
		spool = append(spool, w.sample(ab()))
		w.minute(record.Sample{Pair: ab(), Layer: record.Probe, Begin: w.now, Seconds: 60, State: record.NotMeasured, Reason: record.AgentAway})
	}
	for _, s := range spool[3:5] {
		w.keep(w.judge.Take(s))
	}
	if all := w.sums(ab()); all.States.In(record.Up) != 3*time.Minute || all.States.In(record.NotMeasured) != 8*time.Minute {
		t.Errorf("%+v", all.States)
	}
	if s := w.judge.Standings()[0]; s.State != record.NotMeasured || s.Reason != record.AgentAway {
		t.Errorf("%+v", s)
	}
}

// TestTooLate checks that time without samples becomes final in the end, so that days end while an agent is away for good.
func TestTooLate(t *testing.T) {
	w := newWorld(t, judge.Config{})
	w.minutes(1)
	w.now = w.now.AddDate(0, 0, 10)
	w.keep(w.judge.Tick(w.now))
	w.expect("0s a>b up", "2m30s a>b not-measured no-sample", "12h0m0s day", "36h0m0s day")
	if all := w.sums(ab()); all.States.In(record.Up) != 150*time.Second {
		t.Errorf("%+v", all.States)
	}
}

// TestLayers checks which layer tells the state.
func TestLayers(t *testing.T) {
	tcp := func(w *world, s record.State, r record.Reason) record.Sample {
		return record.Sample{Pair: ab(), Layer: record.TCP, Begin: w.now.Add(30 * time.Second), Seconds: 5, State: s, Reason: r}
	}
	for _, c := range []struct {
		name       string
		probe, tcp record.State
		want       record.State
	}{
		{"deferred tcp", record.Up, record.Deferred, record.Up},
		{"refused probes", record.Refused, record.Up, record.Up},
		{"both refuse", record.Refused, record.Refused, record.Refused},
		{"tcp alone is down", record.Up, record.Down, record.Degraded},
		{"down", record.Down, record.Up, record.Down},
		{"tcp not measured", record.Up, record.NotMeasured, record.Up},
	} {
		w := newWorld(t, judge.Config{})
		for range 5 {
			s := w.sample(ab())
			s.State = c.probe
			w.keep(w.judge.Take(tcp(w, c.tcp, "")))
			w.minute(s)
		}
		if got := w.judge.Standings()[0].State; got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		told := slices.ContainsFunc(w.events[1:], func(e record.Event) bool { return e.State == record.NotMeasured })
		if told {
			t.Errorf("%s: %q", c.name, w.lines)
		}
		w.sums(ab())
	}
}

// TestClock checks that a sample of the future, by a wrong clock, does not move the time line.
func TestClock(t *testing.T) {
	w := newWorld(t, judge.Config{})
	w.minutes(1)
	s := w.sample(ab())
	s.Begin = s.Begin.AddDate(1, 0, 0)
	w.minute(s)
	w.minutes(2)
	w.expect("0s a>b up", "1m0s a>b not-measured clock-jump", "2m0s a>b up")
	if all := w.sums(ab()); all.States.In(record.Up) != 3*time.Minute {
		t.Errorf("%+v", all.States)
	}
}

// TestRestoreRefuses checks that a state that is no JSON is an error.
func TestRestoreRefuses(t *testing.T) {
	if _, err := judge.Restore(judge.Config{}, []byte("{")); err == nil {
		t.Error("half a document is accepted")
	}
}

// TestForget checks that a pair that left the plan leaves no alarm and no time behind.
func TestForget(t *testing.T) {
	w := newWorld(t, judge.Config{})
	for range 5 {
		s := w.sample(ab())
		s.State = record.Down
		w.minute(s)
	}
	w.said()
	w.keep(w.judge.Forget(ab(), w.now))
	w.keep(w.judge.Tick(w.now))
	w.expect("5m0s day", "5m0s alarm-over outage 1 pairs")
	data, err := json.Marshal(w.judge)
	if err != nil || strings.Contains(string(data), `"a"`) {
		t.Errorf("the state still has the pair: %s, %v", data, err)
	}
}
