package bus_test

import (
	"os"
	"strings"
	"testing"

	"thru/internal/bus"
)

// TestFleetDoc: the block in docs/fleet.md is what NATSUsers prints, which the
// tests of external servers run.
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
