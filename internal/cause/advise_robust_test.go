package cause

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	rand "math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/cause/advise"
	"thru/internal/measure"
)

// adviceDamager breaks JSON values: it takes fields away, and puts others in whose
// numbers and names no measurement brings forth.
type adviceDamager struct{ *rand.Rand }

// value returns x with about one field in n changed.
func (r adviceDamager) value(x any, n int) any {
	if r.IntN(n) == 0 {
		return r.instead(x)
	}
	switch x := x.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			if x[key] = r.value(x[key], n); r.IntN(n) == 0 {
				delete(x, key)
			}
		}
	case []any:
		for i := range x {
			x[i] = r.value(x[i], n)
		}
	}
	return x
}

// instead is another value of the same kind.
func (r adviceDamager) instead(x any) any {
	switch x := x.(type) {
	case json.Number:
		return json.Number([]string{"0", "-1", "1e308", "-1e308", "1e18", "65535", fmt.Sprint(math.MaxInt64), fmt.Sprint(math.MinInt64)}[r.IntN(8)])
	case string:
		if _, err := time.Parse(time.RFC3339, x); err == nil {
			return x // a broken one would end the decoding
		}
		return []string{"", "x", "lo", "udp", "path", "receiver", "veth", "bbr", "-x; rm", "\x1b[2J\n", "9223372036854775807", strings.Repeat("a 1 ", 300)}[r.IntN(12)]
	case bool:
		return !x
	}
	return nil
}

// TestDamagedDocuments: whatever a document holds, its proposals are made, are
// whole, can be written as JSON, and are the same each time.
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

// damagedAdvised decodes the text with some of its fields broken; the first rounds
// break few, the later ones many.
func damagedAdvised(t *testing.T, text []byte, seed uint64) *measure.Document {
	t.Helper()
	in := json.NewDecoder(strings.NewReader(string(text)))
	in.UseNumber()
	var x map[string]any
	if err := in.Decode(&x); err != nil {
		t.Fatal(err)
	}
	r := adviceDamager{rand.New(rand.NewPCG(seed, 1))}
	n := []int{2000, 300, 60, 15}[seed%4]
	for _, key := range slices.Sorted(maps.Keys(x)) {
		x[key] = r.value(x[key], n)
	}
	broken, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	d := &measure.Document{}
	// A number that its field cannot hold is left out, the rest is read.
	if err := json.Unmarshal(broken, d); err != nil && !errors.As(err, new(*json.UnmarshalTypeError)) {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return d
}

// TestNothing: a document of nothing asks for nothing.
func TestNothing(t *testing.T) {
	if list := Propose(&measure.Document{}, advise.Seen{}); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}
