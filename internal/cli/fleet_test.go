package cli

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/fault"
)

// TestTurn checks that only changes that matter to a user are reported.
func TestTurn(t *testing.T) {
	here := bus.Host{Name: "web1", Online: true, Thru: "1.0", CPUs: 4, Addrs: []string{"10.0.0.5"}, Labels: map[string]string{"site": "east"}}
	gone, refused, full := here, here, here
	gone.Online, refused.Refused, full.Problem = false, "the name is another's", "disk full"
	refusedGone := refused
	refusedGone.Online = false
	for name, c := range map[string]struct {
		old, now bus.Host
		known    bool
		want     string
	}{
		"comes":          {bus.Host{}, here, false, "+ web1  site=east  10.0.0.5  4 CPUs  thru 1.0"},
		"stays":          {here, here, true, ""},
		"goes":           {here, gone, true, "- web1 is offline"},
		"is back":        {gone, here, true, "+ web1"},
		"was there once": {bus.Host{}, gone, false, ""},
		"refused":        {bus.Host{}, refused, false, "! a host that calls itself web1 is refused: the name is another's"},
		"still refused":  {refused, refused, true, ""},
		"refused, gone":  {refused, refusedGone, true, ""},
		"comes again":    {refusedGone, refused, true, "! a host"},
		"now let in":     {refused, here, true, "+ web1"},
		"in trouble":     {here, full, true, "! web1: disk full"},
	} {
		_, got := turn(c.old, c.now, c.known)
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestEventLog checks that lines of several goroutines stay whole, and that Once reports once.
func TestEventLog(t *testing.T) {
	var out bytes.Buffer
	s := &console.EventLog{On: &console.Console{Out: &out, Err: &out}, JSON: true}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { s.Once("link", "connected", "here", map[string]any{"name": "web1"}) })
	}
	wg.Wait()
	if n := strings.Count(out.String(), `"text":"here"`); n != 1 {
		t.Errorf("said %d times", n)
	}
	s.Forget("link")
	s.Once("link", "connected", "here", nil)
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines", n)
	}
}

func TestNATSFlags(t *testing.T) {
	for name, f := range map[string]natsFlags{
		"a key without a cluster": {Nkey: "k"}, "authorities without a cluster": {CA: "c"},
		"no key": {NATS: "tls://n"}, "two keys": {NATS: "tls://n", Nkey: "k", Creds: "c"},
	} {
		if _, err := f.config(); fault.Code(err) != fault.Usage || fault.Hint(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if c, err := (natsFlags{}).config(); c != nil || err != nil {
		t.Errorf("nothing given: %v %v", c, err)
	}
}
