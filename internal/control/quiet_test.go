package control

import (
	"testing"
	"testing/synctest"
	"time"

	"thru/internal/measure"
)

// heardAgent is an agent that was last heard at a time that the test sets.
type heardAgent struct {
	*fakeAgent
	heard func() time.Time
}

func (a heardAgent) Heard() time.Time { return a.heard() }

// TestSilentSession: a silent session hangs if its agent still answers. If the whole
// agent is silent, the session is not to blame: its events may be in transit.
func TestSilentSession(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers time.Duration // of the agent, since the start
		hangs   bool
	}{
		{"the agent answers", time.Hour, true},
		{"the agent is not heard", 2 * time.Second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				heard := func() time.Time {
					if time.Since(began) < c.answers {
						return time.Now()
					}
					return began.Add(c.answers)
				}
				e := &EndPoint{Name: "b", Client: heardAgent{newAgent("b"), heard}}
				f := &flow{spec: measure.Spec{Interval: int64(time.Second)}, sender: side{end: e, heard: began}, receiver: side{end: e, heard: began}}
				f.sender.flow, f.receiver.flow = f, f
				w := &watching{Runner: &Runner{Watch: &quiet{}}, flows: []*flow{f}, looked: began, at: map[string]*side{"s": &f.sender, "r": &f.receiver}}
				for n := 0; n < 14 && f.err == nil; n++ {
					time.Sleep(lookEvery)
					w.look()
				}
				if (f.err != nil) != c.hangs {
					t.Errorf("after %v: %v", time.Since(began), f.err)
				}
			})
		})
	}
}
