package cause_test

import (
	"os"
	"path/filepath"
	"testing"

	"thru/internal/cause"
	"thru/lab/faults"
)

// Limits of what is kept in the repository, bytes.
const (
	mostRecord  = 60_000
	mostRecords = 1_500_000
)

// TestFaultRecords: for every fault that was measured on real kernels (`make faults`) the stored evidence still
// shows the fault.
func TestFaultRecords(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/faults/*.json.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no records: %v", err)
	}
	all := int64(0)
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := faults.ReadRecord(file)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		info, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if all += info.Size(); info.Size() > mostRecord {
			t.Errorf("%s has %d bytes, more than %d", name, info.Size(), mostRecord)
		}
		_ = file.Close()
		cause.Diagnose(r.Document)
		rows := r.Judge()
		if len(rows) == 0 {
			t.Errorf("%s expects nothing", name)
		}
		for _, row := range rows {
			if !row.Right() {
				t.Errorf("%s\nfound %v", row, row.Found)
			}
		}
	}
	if all > mostRecords {
		t.Errorf("the records have %d bytes, more than %d", all, mostRecords)
	}
}
