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
