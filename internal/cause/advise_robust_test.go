package cause

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"thru/internal/cause/advise"
	"thru/internal/measure"
)

// TestAdviceOfDamagedDocuments: whatever a document holds, its proposals are complete, can be written as JSON, and
// are the same each time.
func TestAdviceOfDamagedDocuments(t *testing.T) {
	t.Parallel()
	texts := [][]byte{}
	files, err := filepath.Glob("testdata/faults/*.json.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no records: %v", err)
	}
	docs := []*measure.Document{advisedPair(everything()...)}
	for _, name := range files {
		docs = append(docs, record(t, strings.TrimSuffix(filepath.Base(name), ".json.gz")))
	}
	for _, d := range docs {
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	for n, text := range texts {
		whole := parsed(t, text)
		for i := range rounds {
			name := fmt.Sprintf("document %d, round %d", n, i)
			d := damaged(t, whole, uint64(n*1000+i))
			if i%2 == 0 {
				Diagnose(d)
			}
			list := Propose(d, advise.Seen{})
			holdSoundProposals(t, name, list)
			once, err := json.Marshal(list)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if again, _ := json.Marshal(Propose(d, advise.Seen{})); string(once) != string(again) {
				t.Errorf("%s: proposed otherwise the second time", name)
			}
			for _, e := range d.EndPoints {
				advise.Script(list, e.Name)
			}
		}
	}
}

// TestNothing: an empty document gives no proposals.
func TestNothing(t *testing.T) {
	if list := Propose(&measure.Document{}, advise.Seen{}); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}
