package measure

import (
	"testing"
	"time"
)

func TestRunSpan(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	e := &Evidence{RampNs: int64(time.Second), MeasuredNs: int64(10 * time.Second)}
	for name, c := range map[string]struct {
		run   Run
		after time.Duration // of the begin
		ok    bool
	}{
		"told":                {Run{StartedAt: at, MeasuredFrom: new(at.Add(7 * time.Second)), Flows: []Flow{{Receiver: e}}}, 7 * time.Second, true},
		"of an older version": {Run{StartedAt: at, WaitedNs: int64(3 * time.Second), Flows: []Flow{{Sender: e}}}, 4 * time.Second, true},
		"nothing measured":    {Run{StartedAt: at, Flows: []Flow{{Receiver: &Evidence{}}}}, 0, false},
		"no flow":             {Run{StartedAt: at}, 0, false},
	} {
		begin, end, ok := c.run.Span()
		if ok != c.ok || ok && (begin.Sub(at) != c.after || end.Sub(begin) != 10*time.Second) {
			t.Errorf("%s: %v to %v, %v", name, begin, end, ok)
		}
	}
}
