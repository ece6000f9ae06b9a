package cause

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	rand "math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/measurement"
	"thru/internal/measure"
)

// damager breaks JSON values: it removes fields, and inserts others with impossible numbers.
type damager struct{ *rand.Rand }

// value returns a copy of x with about one field in n changed.
func (r damager) value(x any, n int) any {
	if r.IntN(n) == 0 {
		return r.instead(x)
	}
	switch x := x.(type) {
	case map[string]any:
		fields := make(map[string]any, len(x))
		for _, key := range slices.Sorted(maps.Keys(x)) {
			if r.IntN(n) > 0 {
				fields[key] = r.value(x[key], n)
			}
		}
		return fields
	case []any:
		list := make([]any, len(x), len(x)+1)
		for i := range x {
			list[i] = r.value(x[i], n)
		}
		if len(x) > 0 && r.IntN(n) == 0 {
			return append(list, list[r.IntN(len(x))])
		}
		return list
	}
	return x
}

// instead returns another value of the same kind.
func (r damager) instead(x any) any {
	switch x := x.(type) {
	case json.Number:
		if strings.ContainsAny(x.String(), ".eE") || r.IntN(2) == 0 {
			return json.Number([]string{"0", "-1.5", "1e308", "-1e308", "5e-324", "1e18", "100", "0.001"}[r.IntN(8)])
		}
		return json.Number(fmt.Sprint([]int64{0, 1, -1, 2, 1000, 65535, math.MaxUint32, math.MaxInt32, math.MaxInt64, math.MinInt64}[r.IntN(10)]))
	case string:
		if _, err := time.Parse(time.RFC3339, x); err == nil {
			return x // a broken one would end the decoding
		}
		return []string{"", "x", "lo", "udp", "tcp", "path", "receiver", "physical", "veth", "half", "bbr", "-x; rm", "\x1b[2J\n", "9223372036854775807", strings.Repeat("a", 1000), strings.Repeat("a 1 ", 300)}[r.IntN(16)]
	case bool:
		return !x
	}
	return nil
}

// samples returns the report tests' documents of every kind, and one with many facts and experiments.
func samples(t *testing.T) [][]byte {
	t.Helper()
	files, err := filepath.Glob("../report/testdata/*.json.golden")
	if err != nil || len(files) == 0 {
		t.Fatalf("no documents to damage: %v", err)
	}
	var all [][]byte
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	full := flowDoc(rate(953e6), loaded(40), lost(1), searched(1500, 9000, 9000, true))
	for _, x := range diagnose.Experiments() {
		try(x.ID, 1e9, streams(8))(full)
	}
	full.Cells = append(full.Cells, flowCell("far", "near", 1e9))
	datagrams := flowDoc(astray(47, measure.LossPath, 40e6), slower(1e6, 3))
	for _, d := range []*measure.Document{full, datagrams, crammed(), filmed(nearBoth, brokenOffload), filmed(nearSender, swallowing, jumboSize), filmed(midway, closedFor(5), sendsAgain(300, 20))} {
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	return all
}

// TestDamagedDocuments: whatever a document holds, its diagnosis ends, can be written as JSON (without NaN), and
// is never certain without evidence.
func TestDamagedDocuments(t *testing.T) {
	t.Parallel()
	rounds := 40
	if testing.Short() {
		rounds = 8
	}
	for n, text := range samples(t) {
		whole := parsed(t, text)
		for i := range rounds {
			d := damaged(t, whole, uint64(n*100_000+i))
			func() {
				defer func() {
					if r := recover(); r != nil {
						t.Fatalf("sample %d, round %d: %v\n%s", n, i, r, debug.Stack())
					}
				}()
				Diagnose(d)
				for c := range d.Cells {
					Next(d, c, nil)
				}
				d.Findings = append(d.Findings, measurement.Generators(theCatalogue(), d, d)...)
			}()
			holdSound(t, fmt.Sprintf("sample %d, round %d", n, i), d)
		}
	}
}

// parsed returns the fields of a document, with its numbers as they are written.
func parsed(t *testing.T, text []byte) (fields map[string]any) {
	t.Helper()
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	if err := in.Decode(&fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// damaged decodes a document with some of its fields broken: few in the first rounds, many in the later ones.
func damaged(t *testing.T, whole map[string]any, seed uint64) *measure.Document {
	t.Helper()
	r := damager{rand.New(rand.NewPCG(seed, 1))}
	n := []int{2000, 300, 60, 15}[seed%4]
	x := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(whole)) {
		x[key] = r.value(whole[key], n)
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

// holdSound checks what must be true of every diagnosis.
func holdSound(t *testing.T, name string, d *measure.Document) {
	t.Helper()
	all := slices.Clone(d.Findings)
	for _, c := range d.Cells {
		all = append(all, c.Findings...)
		if _, err := json.Marshal(c.Diagnosis); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, x := range all {
		text, err := json.Marshal(x)
		if err != nil {
			t.Errorf("%s: %s: %v", name, x.Cause, err)
			continue
		}
		for _, word := range []string{"NaN", "Inf", "%!", "\x1b"} {
			if strings.Contains(string(text), word) {
				t.Errorf("%s: %q in %s", name, word, text)
			}
		}
		if diagnose.Weight(x.Confidence) < 0 || x.Summary == "" || x.Where.Place == "" {
			t.Errorf("%s: half a finding: %s", name, text)
		}
		if x.Confidence == measure.Certain && len(x.Evidence) == 0 {
			t.Errorf("%s: certain without evidence: %s", name, text)
		}
	}
}

// TestNoNumber: invalid figures of a proof are omitted, and the others are shown.
func TestNoNumber(t *testing.T) {
	kept := diagnose.Numbers([]measure.Proof{{Value: math.Inf(1)}, {Counter: "kept", Value: 1}, {Value: math.NaN()}, {Value: 1, Threshold: new(math.Inf(-1))}})
	if len(kept) != 1 || kept[0].Counter != "kept" {
		t.Errorf("kept %+v", kept)
	}
}
