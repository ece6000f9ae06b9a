package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/fault"
)

// What is told of a host is what has changed for a person.
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
		"goes":           {here, gone, true, "- web1 is gone"},
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

// newIntake keeps into a folder, and says what it does into the buffer.
func newIntake(t *testing.T) (*intake, *bytes.Buffer) {
	t.Helper()
	var said bytes.Buffer
	return &intake{dir: t.TempDir(), say: &console.Sayer{On: &console.Console{Out: &said, Err: &said}}}, &said
}

const aResult = `{"schema":"thru.result/2","thru_version":"x","command":"serve","started_at":"2026-11-22T14:00:00Z","elapsed_ns":1,"error":null,"end_points":[],"cells":[]}`

// What a host says about itself and its results leads to no file but its own.
func TestIntake(t *testing.T) {
	in, said := newIntake(t)
	for _, c := range []struct{ name, id, file string }{
		{"web1", "20261122T140000.000000000Z-ABC", "web1/20261122T140000.000000000Z-ABC.thru.json"},
		{"web1", "..%2f..%2fx y", "web1/_2f.._2fx_y.thru.json"},
		{"", "a", "UKEY/a.thru.json"},
	} {
		for range 2 { // the word that it is kept was lost, so it comes again
			if err := in.take(bus.Spooled{Agent: "UKEY", Name: c.name, ID: c.id, Body: []byte(aResult)}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(filepath.Join(in.dir, filepath.FromSlash(c.file)))
		if err != nil || string(got) != aResult {
			t.Errorf("%v: %q", err, got)
		}
	}
	said.Reset()
	if err := in.take(bus.Spooled{Agent: "UKEY", Name: "web1", ID: "bad", Body: []byte("\x1b[2J{")}); err != nil {
		t.Errorf("what can never be used comes again for ever: %v", err)
	}
	if text := said.String(); !strings.Contains(text, "no result") || strings.Contains(text, "\x1b") {
		t.Errorf("said %q", text)
	}
}

// A disk that is full is said once, and the result is not confirmed.
func TestIntakeCannotWrite(t *testing.T) {
	in, said := newIntake(t)
	if err := os.WriteFile(filepath.Join(in.dir, "web1"), nil, 0o600); err != nil { // where the folder would be
		t.Fatal(err)
	}
	for range 2 {
		if err := in.take(bus.Spooled{Name: "web1", ID: "a", Body: []byte(aResult)}); err == nil || fault.Hint(err) == "" {
			t.Errorf("confirmed, or no hint: %v", err)
		}
	}
	if n := strings.Count(said.String(), "cannot be kept"); n != 1 {
		t.Errorf("said %d times: %q", n, said.String())
	}
}

// The results of a host are bounded, and those of the others stay.
func TestIntakeIsBounded(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"1", "2", "3"} {
		f, err := os.Create(filepath.Join(dir, name+resultEnding))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(bytesOfHost / 2); err != nil { // takes no room
			t.Fatal(err)
		}
		f.Close()
	}
	if err := makeRoom(dir, 10); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(left) != 1 || filepath.Base(left[0]) != "3"+resultEnding {
		t.Errorf("left: %q", left)
	}
}

// Lines of several goroutines stay whole, and what is said once is said once.
func TestSayer(t *testing.T) {
	var out bytes.Buffer
	s := &console.Sayer{On: &console.Console{Out: &out, Err: &out}, JSON: true}
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
