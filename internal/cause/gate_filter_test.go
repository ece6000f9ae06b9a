package cause

import (
	"slices"
	"strings"
	"testing"

	"thru/internal/fault"
)

// TestNearest checks the hint for an unknown id: the gate with that word in its Words, a typing error, and nothing
// for nonsense.
func TestNearest(t *testing.T) {
	for text, want := range map[string]string{
		"tso": "offloads", "GRO": "offloads", "lro": "offloads", "checksum": "offloads", "mtu": "mtu-path", "mtu_path": "mtu-path", "irq": "irq-spread",
		"tcp_rmem": "receive-window", "bbr": "congestion-control", "cgroup": "cpu-quota", "offlods": "offloads", "timestamp": "timestamps", "scaling-path": "window-scaling-path",
		"sakc": "sack", "duplx": "duplex", "xx": "", "x": "", "": "", "-": "", "gates": "", "qwertz": "", "everything": "",
	} {
		_, err := Filter(nil, []string{text}, nil)
		hint := fault.Hint(err)
		if got := strings.HasPrefix(hint, "did you mean "+want+"?"); got != (want != "") || want == "" && strings.Contains(hint, "mean") || !strings.Contains(hint, "--list") {
			t.Errorf("%q: hint %q, want %q", text, hint, want)
		}
	}
}

// TestOtherWords: every other word leads to one gate, and is no gate's own id.
func TestOtherWords(t *testing.T) {
	var ids []string
	for _, r := range Gates() {
		ids = append(ids, r.ID)
	}
	of := map[string]string{}
	for _, r := range Gates() {
		for _, word := range strings.Fields(r.Words) {
			if slices.Contains(ids, word) || of[word] != "" || word != strings.ToLower(word) {
				t.Errorf("%q for %q and %q", word, r.ID, of[word])
			}
			of[word] = r.ID
		}
	}
	if of["crc"] != "link-errors" || len(of) < 100 {
		t.Errorf("%d words", len(of))
	}
}
