package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
)

// spec returns a short flow of bulk data.
func spec(from, to string) measure.Spec {
	return measure.Spec{From: from, To: to, DialFrom: true, Engine: measure.Native, Protocol: measure.TCP, Streams: 1, Duration: int64(time.Second), NoRamp: true, Interval: int64(time.Second)}
}

// atOnce returns a plan of pairs that are measured at the same time.
func atOnce(specs ...measure.Spec) plan.Plan {
	return plan.Plan{Command: "run", Name: "test", Order: plan.OrderSimultaneous, Steps: []plan.Step{{Label: "all", Independent: true, Specs: specs}}}
}

// ring returns n agents, each of which sends to the next.
func ring(t *testing.T, n int, change func(*fleetAgent)) (*fakeFleet, []string, []measure.Spec) {
	y := newFakeFleet(t)
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("h%03d", i))
		y.add(names[i], change)
	}
	var specs []measure.Spec
	for i := range n {
		specs = append(specs, spec(names[i], names[(i+1)%n]))
	}
	return y, names, specs
}

// Fifty agents with clocks far apart: one dies, one floods, one never answers, one does
// not even answer for its facts, and one fails. Their pairs fail, and all others are measured.
func TestManyPairsAtOnce(t *testing.T) {
	y, names, specs := ring(t, 50, func(a *fleetAgent) {
		switch a.name {
		case "h010":
			a.dies = true
		case "h020":
			a.floods = true
		case "h030":
			a.mute = true
		case "h040":
			a.broken = "worker: stream 1: broken"
		case "h047":
			a.deaf = true
		}
	})
	q := &quiet{}
	r := Runner{Ends: y.connect(names...), Watch: q}
	doc, err := r.Run(t.Context(), atOnce(specs...))
	if err == nil || fault.Code(err) != fault.Failed || !strings.Contains(err.Error(), "8 of 50 pairs failed") {
		t.Errorf("error %v", err)
	}
	want := []string{"h009 h010", "h010 h011", "h029 h030", "h030 h031", "h039 h040", "h040 h041", "h046 h047", "h047 h048"}
	if slices.Sort(q.failed); !slices.Equal(q.failed, want) {
		t.Errorf("the observer heard of %q", q.failed)
	}
	for i, c := range doc.Cells {
		bad := slices.Contains(want, c.From+" "+c.To)
		if (c.Error != nil) != bad || !bad && (c.Runs[0].Timing == nil || c.Goodput == nil) {
			t.Errorf("cell %d, %s to %s: error %+v, goodput %+v", i, c.From, c.To, c.Error, c.Goodput)
		}
	}
	if e := endOf(doc, "h010"); !strings.Contains(e.Lost, "h010 is lost: it fell silent") {
		t.Errorf("h010 was lost: %q", e.Lost)
	}
	if e := endOf(doc, "h009"); e.Lost != "" || e.ClockNs == nil {
		t.Errorf("h009: %+v", e)
	}
	for _, n := range names {
		if a := y.all[n]; n != "h010" && n != "h047" && a.asked("release") == 0 {
			t.Errorf("%s was not released", n)
		}
	}
}

func endOf(doc *measure.Document, name string) measure.EndPoint {
	i := slices.IndexFunc(doc.EndPoints, func(e measure.EndPoint) bool { return e.Name == name })
	if i < 0 {
		return measure.EndPoint{}
	}
	return doc.EndPoints[i]
}

// The start times of pairs in the document are right within their error bound, whatever
// the agents' clocks show.
func TestTimingIsWithinItsBound(t *testing.T) {
	y, names, specs := ring(t, 12, nil)
	r := Runner{Ends: y.connect(names...), Watch: &quiet{}}
	doc, err := r.Run(t.Context(), atOnce(specs...))
	if err != nil {
		t.Fatal(err)
	}
	first := y.all[specs[0].To]
	for i, c := range doc.Cells {
		began, zero := y.all[c.To].received, first.received
		a, b := doc.Cells[0].Runs[0].Timing, c.Runs[0].Timing
		if a == nil || b == nil {
			t.Fatalf("cell %d has no timing", i)
		}
		if off := time.Duration(b.StartNs-a.StartNs) - began.Sub(zero); off.Abs() > time.Duration(a.BoundNs+b.BoundNs) {
			t.Errorf("cell %d is off by %v, and the bounds are %v", i, off, time.Duration(a.BoundNs+b.BoundNs))
		}
		if b.EndNs-b.StartNs != 1e9 {
			t.Errorf("cell %d lasted %d", i, b.EndNs-b.StartNs)
		}
	}
	if len(doc.Warnings) != 1 || !strings.Contains(doc.Warnings[0], "h011 is 5 min 28 s ahead of") || !strings.Contains(doc.Warnings[0], "and 8 more") {
		t.Errorf("of the wall clocks it warns %q", doc.Warnings)
	}
}

// An agent lost in one step is skipped in the next, and the pairs of the others go on.
func TestLostAgentIsSkipped(t *testing.T) {
	y, names, specs := ring(t, 4, func(a *fleetAgent) { a.dies = a.name == "h001" })
	p := atOnce(specs...)
	p.Repeat = plan.Repeat{Min: 3, Max: 3}
	doc, err := (&Runner{Ends: y.connect(names...), Watch: &quiet{}}).Run(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "2 of 4 pairs failed: h000 -> h001, h001 -> h002: h001 is lost: it fell silent") {
		t.Errorf("error %v", err)
	}
	if n := y.all["h001"].opened; n != 2 {
		t.Errorf("the lost agent was asked to open %d sessions", n)
	}
	if c := doc.Cells[2]; len(c.Runs) != 3 || c.Goodput == nil || c.Goodput.Runs != 3 || c.Error != nil {
		t.Errorf("a pair without it: %+v", c.Goodput)
	}
	if c := doc.Cells[0]; len(c.Runs) != 3 || !strings.Contains(c.Error.Message, "h001 is lost") {
		t.Errorf("a pair with it: %+v", c.Error)
	}
}

// An agent lost between the end of the traffic and its evidence leaves live figures,
// which do not make a complete run.
func TestEvidenceIsLost(t *testing.T) {
	y, names, specs := ring(t, 4, func(a *fleetAgent) { a.leaves = a.name == "h001" })
	q := &quiet{}
	doc, err := (&Runner{Ends: y.connect(names...), Watch: q}).Run(t.Context(), atOnce(specs...))
	if err == nil || !strings.Contains(err.Error(), "2 of 4 pairs failed") || len(q.failed) != 2 {
		t.Errorf("error %v, the observer heard of %q", err, q.failed)
	}
	for i, c := range doc.Cells {
		if x := c.Runs[0]; x.Partial != (i < 2) || x.Flows[0].Receiver == nil || x.Flows[0].Receiver.Bytes != 1000 {
			t.Errorf("%s to %s: %+v", c.From, c.To, x)
		}
	}
}

// The steps of a plan file go on after a failed one, also where each measures one pair,
// and after one whose end point could not be connected.
func TestSequentialPlanGoesOn(t *testing.T) {
	y, names, specs := ring(t, 3, func(a *fleetAgent) {
		if a.name == "h001" {
			a.broken = "worker: broken"
		}
	})
	p := plan.Plan{Command: "run", Name: "test", Order: plan.OrderSequential}
	for _, s := range append(specs, spec("h000", "absent")) {
		p.Steps = append(p.Steps, plan.Step{Label: s.To, Specs: []measure.Spec{s}})
	}
	ends := y.connect(names...)
	ends["absent"] = &EndPoint{Name: "absent", Down: errors.New("bus: connection refused")}
	q := &quiet{}
	saved := 0
	doc, err := (&Runner{Ends: ends, Watch: q, Saved: func(*measure.Document) { saved++ }}).Run(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "3 of 4 pairs failed") {
		t.Errorf("error %v", err)
	}
	if want := []string{"h000 h001", "h001 h002", "h000 absent"}; !slices.Equal(q.failed, want) {
		t.Errorf("the observer heard of %q", q.failed)
	}
	if c := doc.Cells[2]; c.Goodput == nil || c.Runs[0].Timing != nil {
		t.Errorf("the pair in between: %+v", c)
	}
	if doc.Plan == nil || doc.Plan.Done != 4 || doc.Plan.Steps != 4 || saved != 4 || endOf(doc, "absent").Lost == "" {
		t.Errorf("%+v, saved %d times", doc.Plan, saved)
	}
}

// Where the plan leaves open which end dials, the other end tries too; what worked is
// tried first the next time.
func TestEitherEndDials(t *testing.T) {
	for name, c := range map[string]struct {
		refuse []string
		opened int // at the receiver, in two runs
		err    string
	}{
		"the first way":  {nil, 2, ""},
		"the other way":  {[]string{"a"}, 3, ""},
		"neither":        {[]string{"a", "b"}, 2, "a to b: no data connection: at-b:5202: refused; and from the other end: connecting b to a"},
		"not for itself": {[]string{"local"}, 0, "connecting local to b"},
	} {
		y := newFakeFleet(t)
		for _, n := range []string{"a", "b", Local} {
			y.add(n, func(x *fleetAgent) {
				if slices.Contains(c.refuse, n) {
					x.refuses = "at-"
				}
			})
		}
		s := spec("a", "b")
		if name == "not for itself" {
			s.From = Local
		}
		s.Either = true
		p := atOnce(s)
		p.Repeat = plan.Repeat{Min: 2, Max: 2}
		doc, err := (&Runner{Ends: y.connect("a", "b", Local), Watch: &quiet{}}).Run(t.Context(), p)
		if (err == nil) != (c.err == "") || err != nil && (!strings.Contains(err.Error(), c.err) || fault.Hint(err) != "open the ports") {
			t.Errorf("%s: error %v, hint %q", name, err, fault.Hint(err))
		}
		if c.err == "" && doc.Cells[0].Goodput.Runs != 2 {
			t.Errorf("%s: %+v", name, doc.Cells[0].Goodput)
		}
		if n := y.all["b"].opened; c.err == "" && n != c.opened {
			t.Errorf("%s: the receiver opened %d sessions", name, n)
		}
		if n := y.all["b"].asked("release b 1"); name == "the other way" && n != 1 {
			t.Errorf("the session of the way that failed was released %d times", n)
		}
	}
}

// An interrupted run resumes: complete steps are not repeated, an incomplete one is, as
// a whole.
func TestResume(t *testing.T) {
	y, names, specs := ring(t, 3, nil)
	p := atOnce(specs...)
	p.Repeat = plan.Repeat{Min: 3, Max: 3}
	var half *measure.Document
	ctx, cancel := context.WithCancel(t.Context())
	q := &quiet{step: func(n int) {
		if n == 3 {
			cancel()
		}
	}}
	half, err := (&Runner{Ends: y.connect(names...), Watch: q}).Run(ctx, p)
	if err == nil || half.Plan.Done != 2 || len(half.Cells[0].Runs) != 3 || !half.Cells[0].Runs[2].Partial {
		t.Fatalf("%v, %+v", err, half.Plan)
	}
	q = &quiet{}
	doc, err := (&Runner{Ends: y.connect(names...), Watch: q, Before: half}).Run(t.Context(), p)
	if err != nil || q.steps != 1 || doc.Plan.Done != 3 || len(doc.Plan.Began) != 2 || !doc.StartedAt.Equal(half.StartedAt) {
		t.Errorf("%v, %d steps, %+v", err, q.steps, doc.Plan)
	}
	for _, c := range doc.Cells {
		if len(c.Runs) != 3 || c.Goodput == nil || c.Goodput.Runs != 3 || c.Error != nil {
			t.Errorf("cell %+v", c.Goodput)
		}
	}
	other := atOnce(specs[:2]...)
	if _, err := (&Runner{Ends: y.connect(names...), Watch: q, Before: half}).Run(t.Context(), other); fault.Code(err) != fault.Usage {
		t.Errorf("another plan: %v", err)
	}
}

// Steps that the precision makes unnecessary are counted once and not saved separately,
// also in a resumed run.
func TestStepsAreCountedOnce(t *testing.T) {
	y, names, specs := ring(t, 3, nil)
	p := plan.Plan{Command: "run", Name: "test", Repeat: plan.Repeat{Min: 2, Max: 6, PrecisionPct: 50}}
	for _, s := range specs[:2] {
		p.Steps = append(p.Steps, plan.Step{Label: s.From, Independent: true, Specs: []measure.Spec{s}})
	}
	ctx, cancel := context.WithCancel(t.Context())
	q := &quiet{step: func(n int) {
		if n == 4 {
			cancel()
		}
	}}
	half, err := (&Runner{Ends: y.connect(names...), Watch: q}).Run(ctx, p)
	if err == nil || half.Plan.Done != 3 {
		t.Fatalf("%v, %+v", err, half.Plan)
	}
	saves := 0
	doc, err := (&Runner{Ends: y.connect(names...), Watch: &quiet{}, Before: half, Saved: func(*measure.Document) { saves++ }}).Run(t.Context(), p)
	if err != nil || doc.Plan.Done != doc.Plan.Steps || doc.Plan.Steps != 12 || saves != 1 {
		t.Errorf("%v, %+v, written %d times", err, doc.Plan, saves)
	}
}

// When all hosts of a controller fall silent together, the error does not blame one of
// them.
func TestSilence(t *testing.T) {
	long := time.Now().Add(-time.Minute)
	a, b, direct := &EndPoint{Name: "f/a", Via: "f", Client: &slowClock{}}, &EndPoint{Name: "f/b", Via: "f", Client: &slowClock{}}, &EndPoint{Name: "c", Client: &slowClock{}}
	for _, tt := range []struct {
		name     string
		from, to *EndPoint
		heard    time.Time // of the other end
		want     string
	}{
		{"all of a fleet", a, b, long, "control: the controller f does not answer: no report of any of its 2 hosts"},
		{"one of a fleet", a, b, time.Now(), "control: f/a: no report"},
		{"the only one", a, direct, time.Now(), "control: f/a: no report"},
		{"without one", direct, a, long, "control: c: no report"},
	} {
		f := &flow{sender: side{end: tt.from, heard: long}, receiver: side{end: tt.to, heard: tt.heard}}
		f.sender.flow, f.receiver.flow = f, f
		err := silence(&f.sender, []*flow{f})
		if !strings.HasPrefix(err.Error(), tt.want) || tt.from.Via != "" && !strings.Contains(fault.Hint(err), "thru hosts f") {
			t.Errorf("%s: %v, hint %s", tt.name, err, fault.Hint(err))
		}
	}
}

// Events that an end point sent before it was lost count.
func TestLastWords(t *testing.T) {
	for range 50 {
		y := newFakeFleet(t)
		y.add("a", nil)
		e := y.connect("a")["a"]
		c := e.Client.(*fleetClient)
		for range 3 {
			c.Pushed <- bus.Event{Kind: bus.EventDone}
		}
		c.Lose()
		events, gone, quit := make(chan heard), make(chan *EndPoint, 1), make(chan struct{})
		go forward(e, events, gone, quit)
		n := 0
		for over := false; !over; {
			select {
			case <-events:
				n++
			case <-gone:
				over = true
			}
		}
		if close(quit); n != 3 {
			t.Fatalf("%d of 3 events were heard", n)
		}
	}
}

// An interrupt at any time ends the plan at that step, gives every turn back, and does
// not count as a failure of the pairs.
func TestInterruptedPairs(t *testing.T) {
	for _, after := range []time.Duration{0, 5 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond} {
		y, names, specs := ring(t, 6, nil)
		p := atOnce(specs...)
		p.Repeat = plan.Repeat{Min: 100, Max: 100}
		ctx, cancel := context.WithCancel(t.Context())
		q := &quiet{step: func(n int) {
			if n == 1 {
				time.AfterFunc(after, cancel)
			}
		}}
		doc, err := (&Runner{Ends: y.connect(names...), Watch: q}).Run(ctx, p)
		if err == nil || err.Error() != fmt.Sprintf("interrupted after %d of 100 steps: %s", doc.Plan.Done, kept(doc)) || doc.Error == nil || len(q.failed) != 0 || q.steps > 3 {
			t.Errorf("after %v: %v, %d steps, failed %q", after, err, q.steps, q.failed)
		}
		for _, g := range doc.Groups {
			if len(g.Failed) > 0 {
				t.Errorf("after %v: %+v", after, g.Failed)
			}
		}
		for _, c := range doc.Cells {
			if c.Error != nil {
				t.Errorf("after %v: %s: %+v", after, c.To, c.Error)
			}
		}
		for _, n := range names {
			if a := y.all[n]; len(a.queue) != 0 {
				t.Errorf("after %v: %s still has a turn given away", after, n)
			}
		}
	}
}

// Streams of many flows at one host are numbered on, for their CPU placement.
func TestStreamsAreNumbered(t *testing.T) {
	y, names, _ := ring(t, 3, nil)
	specs := []measure.Spec{spec("h000", "h001"), spec("h000", "h000"), spec("h002", "h001"), spec("h002", "h000")}
	specs[0].Streams = 4
	r := Runner{Ends: y.connect(names...)}
	flows := r.flows(plan.Step{Specs: specs}, 0)
	numberStreams(flows)
	var got []int
	for _, f := range flows {
		got = append(got, f.spec.FirstStream)
	}
	if want := []int{0, 4, 4, 5}; !slices.Equal(got, want) {
		t.Errorf("first streams %v, want %v", got, want)
	}
}

// Two controllers with overlapping sets of agents both finish, in whatever order they
// get their turns.
func TestCrossingControllers(t *testing.T) { synctest.Test(t, crossingControllers) }

func crossingControllers(t *testing.T) {
	y, names, _ := ring(t, 12, nil)
	var wg sync.WaitGroup
	for c := range 4 {
		ends := y.connect(names...)
		var specs []measure.Spec
		for i := range 9 { // sets overlap, and are listed in different orders
			a, b := names[(i*5+c)%12], names[(i*7+c+1)%12]
			if a != b {
				specs = append(specs, spec(a, b))
			}
		}
		p := atOnce(specs...)
		p.Repeat = plan.Repeat{Min: 2, Max: 2}
		wg.Go(func() {
			if _, err := (&Runner{Ends: ends, Watch: &quiet{}}).Run(t.Context(), p); err != nil {
				t.Errorf("controller %d: %v", c, err)
			}
		})
	}
	wg.Wait()
}

// Logs how long many pairs take, and does not judge it.
func TestTwoHundredPairs(t *testing.T) {
	y, names, specs := ring(t, 200, nil)
	begin := time.Now()
	doc, err := (&Runner{Ends: y.connect(names...), Watch: &quiet{}}).Run(t.Context(), atOnce(specs...))
	if err != nil || len(doc.Cells) != 200 {
		t.Fatal(err)
	}
	t.Logf("200 pairs took %v", time.Since(begin))
}

// TestRecorded: another process continues with the recorded steps of a plan and runs the others; a record of another owner
// counts, and an error of the record ends the run.
func TestRecorded(t *testing.T) {
	y, names, specs := ring(t, 3, nil)
	p := atOnce(specs...)
	p.Repeat = plan.Repeat{Min: 3, Max: 3}
	steps := map[int][]measure.Run{}
	cut := errors.New("cut off")
	record := func(turn int, own []measure.Run) ([]measure.Run, error) {
		if _, twice := steps[turn]; twice {
			t.Errorf("step %d was run twice", turn)
		}
		if turn == 2 {
			return own, cut
		}
		steps[turn] = own
		return own, nil
	}
	if _, err := (&Runner{Ends: y.connect(names...), Watch: &quiet{}, Record: record}).Run(t.Context(), p); !errors.Is(err, cut) {
		t.Fatalf("the run ends with %v", err)
	}
	other := []measure.Run{{Index: 2, WaitedNs: 7}, {Index: 2, WaitedNs: 7}, {Index: 2, WaitedNs: 7}}
	took := func(turn int, own []measure.Run) ([]measure.Run, error) {
		if turn != 2 {
			t.Errorf("step %d runs again", turn)
		}
		return other, nil
	}
	began := time.Now().Add(-time.Hour)
	q := &quiet{}
	doc, err := (&Runner{Ends: y.connect(names...), Watch: q, Record: took, Before: Recorded(p, began, steps)}).Run(t.Context(), p)
	if err != nil || q.steps != 1 || doc.Plan.Done != 3 || len(doc.Plan.Began) != 2 || !doc.StartedAt.Equal(began) {
		t.Errorf("%v, %d steps, %+v", err, q.steps, doc.Plan)
	}
	for _, c := range doc.Cells {
		if len(c.Runs) != 3 || c.Runs[2].WaitedNs != 7 {
			t.Errorf("%s to %s has %d runs", c.From, c.To, len(c.Runs))
		}
	}
}
