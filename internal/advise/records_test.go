package advise

import (
	"os"
	"testing"

	"thru/internal/diagnose"
	"thru/internal/measure"
	"thru/lab/faults"
)

// record is the diagnosed document of a fault that was measured on real kernels.
func record(t *testing.T, name string) *measure.Document {
	t.Helper()
	file, err := os.Open("../diagnose/testdata/faults/" + name + ".json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := faults.ReadRecord(file)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	diagnose.Diagnose(r.Document)
	return r.Document
}
