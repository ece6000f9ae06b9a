package cause_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"thru/internal/cause"
	"thru/internal/measure"
)

// TestTruth: documents that look like one cause and have another. Their labels: `true_cause` begins with its id,
// or ids separated by slashes; `must_not_be_certain` is the cause that it looks like; `first` exists if the
// evidence is not sufficient: the first finding then, which is not certain. In any case no other cause is certain
// to limit the rate.
func TestTruth(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/truth/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no documents: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".json"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			d, err := measure.Decode(text)
			if err != nil {
				t.Fatal(err)
			}
			cause.Diagnose(d)
			holdsTrue(t, d)
		})
	}
}

// holdsTrue checks the findings of a document against its labels.
func holdsTrue(t *testing.T, d *measure.Document) {
	t.Helper()
	truth := regexp.MustCompile(`^[a-z-]+( / [a-z-]+)*`).FindString(d.Labels["true_cause"])
	of := strings.Split(truth, " / ")
	if truth == "" || len(d.Findings) == 0 {
		t.Fatalf("a document of %q has %d findings", truth, len(d.Findings))
	}
	for _, x := range d.Findings {
		if x.Confidence != measure.Certain || x.Healthy {
			continue
		}
		if x.Cause == d.Labels["must_not_be_certain"] || !slices.Contains(of, x.Cause) {
			t.Errorf("%s is certain of a document of %s: %s", x.Cause, truth, x.Summary)
		}
	}
	first := d.Findings[0]
	switch want := d.Labels["first"]; {
	case want == "" && !slices.Contains(of, first.Cause):
		t.Errorf("first comes %s (%s), want %s: %s", first.Cause, first.Confidence, truth, first.Summary)
	case want != "" && (first.Cause != want || first.Confidence == measure.Certain || first.Next == ""):
		t.Errorf("first comes %s (%s), want %s with what would tell: %q", first.Cause, first.Confidence, want, first.Next)
	}
}
