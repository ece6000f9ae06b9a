package fault

import (
	"errors"
	"testing"
)

// TestClash: a clash names the typed flags, and all of them where none was typed.
func TestClash(t *testing.T) {
	for _, c := range []struct {
		these, with string
		typed       []string
		want        string
	}{
		{"--rrul", "-u -R -P", []string{"-P", "--rrul", "-t"}, "--rrul does not go with -P"},
		{"-C -M -N", "-u", []string{"-u", "-N", "-C"}, "-C and -N do not go with -u"},
		{"--aa --list --rollback", "", []string{"--list", "--aa"}, "--aa and --list do not go together"},
		{"-C -M -N", "-u", nil, "-C, -M and -N do not go with -u"}, // from a plan file
	} {
		err := Clashing("hint", c.these, c.with)
		var clash *Clash
		if !errors.As(err, &clash) || Code(err) != Usage {
			t.Fatalf("%v is no clash of wrong usage", err)
		}
		if got := clash.Typed(c.typed); got.Error() != c.want {
			t.Errorf("%q, want %q", got.Error(), c.want)
		}
	}
}
