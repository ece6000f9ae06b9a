package nets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"thru/examples"
	"thru/internal/fault"
	"thru/internal/plan/planfile"
)

// hosts returns the hosts of a controller.
func hosts() map[string][]planfile.Host {
	return map[string][]planfile.Host{"fleet": {
		{Name: "w2", Labels: map[string]string{"role": "web", "site": "west"}, CPUs: 4},
		{Name: "w1", Labels: map[string]string{"role": "web", "site": "east"}, CPUs: 4},
		{Name: "d1", Labels: map[string]string{"role": "db", "site": "east"}, CPUs: 16},
	}}
}

// TestPlans compares the plans of plan files with one golden file: those of examples, and of
// testdata/plans.txtar. For refused ones it compares the positions of the mistakes and the exit code, not the
// words.
func TestPlans(t *testing.T) {
	all, err := txtar.ParseFile("testdata/plans.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range planfile.Starters() {
		text, err := examples.Files.ReadFile(kind + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		all.Files = append(all.Files, txtar.File{Name: kind + ".yaml", Data: text})
	}
	var got bytes.Buffer
	for _, f := range all.Files {
		fmt.Fprintf(&got, "\n%s\n", f.Name)
		writePlan(t, &got, f)
	}
	golden(t, "plans.golden", got.Bytes())
}

// writePlan writes the plan of a file.
func writePlan(t *testing.T, got *bytes.Buffer, f txtar.File) {
	t.Helper()
	read, err := planfile.Parse(f.Name, f.Data)
	if err != nil {
		refused(got, err)
		return
	}
	p, err := read.Expand(hosts(), func(string) planfile.Found { return planfile.Found{CPUs: 4} })
	if err != nil {
		refused(got, err)
		return
	}
	steps := p.Steps
	p.Steps = nil
	head, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(got, "%s, %d runs\n", head, p.Runs())
	for _, s := range steps {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(got, "%s\n", text)
	}
}

// place matches the position of a mistake: NAME:LINE:COLUMN.
var place = regexp.MustCompile(`(?m)^[^ :]+:[0-9]+:[0-9]+`)

func refused(got *bytes.Buffer, err error) {
	fmt.Fprintf(got, "exit code %d %s\n", fault.Code(err), strings.Join(place.FindAllString(err.Error(), -1), " "))
}
