package cause

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	rand "math/rand/v2"
	"path/filepath"
	"slices"
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
		for i := range rounds {
			name := fmt.Sprintf("document %d, round %d", n, i)
			d := damagedAdvised(t, text, uint64(n*1000+i))
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

// damagedAdvised decodes the text with some of its fields broken: few in the first rounds, many in the later ones.
func damagedAdvised(t *testing.T, text []byte, seed uint64) *measure.Document {
	t.Helper()
	in := json.NewDecoder(strings.NewReader(string(text)))
	in.UseNumber()
	var x map[string]any
	if err := in.Decode(&x); err != nil {
		t.Fatal(err)
	}
	r := damager{rand.New(rand.NewPCG(seed, 1))}
	n := []int{2000, 300, 60, 15}[seed%4]
	for _, key := range slices.Sorted(maps.Keys(x)) {
		x[key] = r.value(x[key], n)
	}
	broken, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	d := &measure.Document{}
	// A number that its field cannot hold is skipped, the rest is read.
	if err := json.Unmarshal(broken, d); err != nil && !errors.As(err, new(*json.UnmarshalTypeError)) {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return d
}

// TestNothing: an empty document gives no proposals.
func TestNothing(t *testing.T) {
	if list := Propose(&measure.Document{}, advise.Seen{}); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}
