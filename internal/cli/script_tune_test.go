package cli

import (
	"compress/gzip"
	"encoding/json"
	"os"

	"github.com/rogpeppe/go-internal/testscript"
)

// recordedFaults are documents of real faults (make faults).
const recordedFaults = "../cause/testdata/faults/"

// recorded NAME FILE: writes the document of a recorded fault to a file.
func recorded(ts *testscript.TestScript, neg bool, args []string) {
	f, err := os.Open(recordedFaults + args[0] + ".json.gz")
	ts.Check(err)
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	ts.Check(err)
	var record struct {
		Document json.RawMessage `json:"document"`
	}
	ts.Check(json.NewDecoder(unpacked).Decode(&record))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), record.Document, 0o600))
}
