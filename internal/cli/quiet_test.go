package cli

import (
	"bytes"
	"log"
	"strings"
	"testing"
)

// TestQuietLog: what libraries say by Go's log, which may be words of a server, stands
// nowhere beside a result.
func TestQuietLog(t *testing.T) {
	said := &bytes.Buffer{}
	before := log.Writer()
	defer log.SetOutput(before)
	log.SetOutput(said)
	if code := Main([]string{"version"}, strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if log.Print("Unsolicited response received on idle HTTP channel"); said.Len() > 0 {
		t.Errorf("%q", said)
	}
}

// TestServersName: what is made beside a file has a name of its length at most, and one of its own.
func TestServersName(t *testing.T) {
	m := &carrier{cmd: &transferCmd{Many: 2}, direction: "upload", mark: "abcdef", target: transferURL{path: "dir/" + strings.Repeat("é", 127)}}
	name := m.name(".thru-memory")
	if a, b := name(0, 0), name(1, 0); len(a) > len("dir/")+255 || a == b || !strings.HasPrefix(a, "dir/é") {
		t.Errorf("%q, %q", a, b)
	}
	if got := m.name("")(0, 0); got != m.target.path+".1" {
		t.Errorf("%q", got)
	}
}
