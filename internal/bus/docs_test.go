package bus_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thru/internal/bus"
)

// TestFleetDoc: the block in docs/fleet.md is the output of NATSUsers, which the tests of
// external servers use.
func TestFleetDoc(t *testing.T) {
	doc, err := os.ReadFile("../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	want := "```\n" + bus.NATSUsers([]string{"AGENT"}, []string{"OPERATOR"}, []string{"CONTROLLER"}) + "```\n"
	if !strings.Contains(string(doc), want) {
		t.Errorf("docs/fleet.md lacks this block:\n%s", want)
	}
}

// TestWireDoc: docs/wire.md has exactly one row for each verb, with the wire version that
// introduced it and how long a client waits.
func TestWireDoc(t *testing.T) {
	doc, err := os.ReadFile("../../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for l := range strings.Lines(string(doc)) {
		if f := strings.Split(l, " | "); len(f) == 4 && strings.HasPrefix(l, "| `") && strings.HasSuffix(f[2], " s") {
			rows = append(rows, strings.Join(f[:3], " | "))
		}
	}
	var want []string
	for _, v := range bus.Verbs() {
		want = append(want, fmt.Sprintf("| `%s` | %d.%d | %.0f s", v, bus.WireMajor, v.Since(), v.Wait().Seconds()))
	}
	if d := cmp.Diff(want, rows); d != "" {
		t.Errorf("the table of verbs: %s", d)
	}
}
