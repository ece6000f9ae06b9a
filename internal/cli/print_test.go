package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thru/internal/cli/console"
	"thru/internal/fault"
	"thru/internal/measure"
)

// TestPrintUnwritten: if a file cannot be written, the whole result is printed in one document, with an error
// line on stderr and the exit code of a failure.
func TestPrintUnwritten(t *testing.T) {
	full := fault.Failf("make room", "cli: writing x.pcapng: no space left on device")
	for name, f := range map[string]forms{
		"packets": {formFlags: formFlags{JSON: true}, unkept: full},
		"page":    {formFlags: formFlags{JSON: true, HTML: filepath.Join(t.TempDir(), "gone", "p.html")}},
		"text":    {unkept: full},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errw bytes.Buffer
			e := &env{Console: &console.Console{Out: &out, Err: &errw, Args: []string{"test", "--json"}}}
			err := e.print(&measure.Document{Schema: measure.Schema, Command: "test", StartedAt: time.Now()}, f)
			e.printError(err)
			if fault.Code(err) != fault.Failed || strings.Count(errw.String(), "thru: ") != 1 || !strings.Contains(errw.String(), "hint: ") {
				t.Errorf("%v, exit code %d, stderr %q", err, fault.Code(err), errw.String())
			}
			if !f.JSON {
				return
			}
			var doc measure.Document
			in := json.NewDecoder(&out)
			if err := in.Decode(&doc); err != nil || doc.Error == nil || doc.Error.ExitCode != fault.Failed {
				t.Errorf("%v: %+v", err, doc.Error)
			}
			if err := in.Decode(&doc); !errors.Is(err, io.EOF) {
				t.Errorf("a second document: %v", err)
			}
		})
	}
}

// TestKeeperFails checks that the keeper remembers the write error.
func TestKeeperFails(t *testing.T) {
	k := &keeper{path: filepath.Join(t.TempDir(), "gone", "x.pcapng")}
	if _, err := k.keep(packetsHere); err == nil || k.forms(forms{}).unkept == nil || len(k.written) > 0 {
		t.Errorf("%v, %+v", err, k)
	}
}
