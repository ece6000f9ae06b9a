package cli

import (
	"bytes"
	"log"
	"strings"
	"testing"
)

// TestQuietLog: messages that libraries print through package log, possibly with text of a server, do not
// appear next to a result.
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
