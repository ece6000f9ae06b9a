package cause_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"thru/internal/cause"
	"thru/internal/measure"
	"thru/internal/report"
)

// Results of earlier versions of thru are read and explained: evidence that they did not collect is named, and
// neither proves nor excludes a cause. The folder has one result for each kind of evidence that a version added:
// TCP alone, then datagrams, other programs' ends, and gates with the facts of hosts and path.
func TestEarlierVersions(t *testing.T) {
	files, err := filepath.Glob("testdata/versions/*.json")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := report.ReadJSON(f)
		f.Close()
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		c := &doc.Cells[0]
		if len(c.Findings) != 0 || c.Runs[0].Flows[0].Sender.Streams[0].Timeline != nil {
			t.Fatalf("%s is of no earlier version", file)
		}
		cause.Diagnose(doc)
		if len(doc.Findings) == 0 || len(c.RuledOut) == 0 {
			t.Errorf("%s: findings %+v, ruled out %+v", file, doc.Findings, c.RuledOut)
		}
		i := slices.IndexFunc(c.NotChecked, func(u measure.Unsettled) bool { return u.Cause == "app-limited" })
		if i < 0 || c.NotChecked[i].Fact == "" || c.NotChecked[i].Why == "" {
			t.Errorf("%s: whether the sender had nothing to send was not recorded, and not checked is %+v", file, c.NotChecked)
		}
		if slices.ContainsFunc(c.Findings, func(f measure.Finding) bool { return f.Cause == "app-limited" || f.Cause == "slow-reader" }) {
			t.Errorf("%s: found without its evidence: %+v", file, c.Findings)
		}
	}
}
