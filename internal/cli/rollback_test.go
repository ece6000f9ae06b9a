package cli

import (
	"strings"
	"testing"

	"thru/internal/fault"
	"thru/internal/measure"
)

// TestNotRestored: settings are counted as settings, and journals as journals.
func TestNotRestored(t *testing.T) {
	change := func(knob, iface, outcome string) measure.Changed {
		return measure.Changed{Setting: measure.Setting{Knob: knob, Interface: iface}, Outcome: outcome}
	}
	undone, foreign, failed, damaged := change("cc", "", measure.Undone), change("mtu", "eth0", measure.Foreign), change("tso", "eth0", measure.Failed), change("", "", measure.Failed)
	tests := []struct {
		all        []measure.Changed
		want, hint string // want: empty, all is restored
	}{
		{nil, "", ""},
		{[]measure.Changed{undone, change("mtu", "eth0", measure.Settled)}, "", ""},
		{[]measure.Changed{undone, foreign}, "cli: not as before: mtu eth0 (1 of 2 settings)", "set the old value"},
		{[]measure.Changed{failed, foreign, undone, damaged}, "cli: not as before: tso eth0, mtu eth0 (2 of 3 settings); 1 journal not read completely", "run it again"},
		{[]measure.Changed{damaged, damaged}, "cli: 2 journals not read completely", "run it again"},
	}
	for _, tt := range tests {
		err := notRestored(tt.all)
		if tt.want == "" && err == nil {
			continue
		}
		if err == nil || err.Error() != tt.want || !strings.Contains(fault.Hint(err), tt.hint) {
			t.Errorf("%v (%s), want %q", err, fault.Hint(err), tt.want)
		}
	}
}
