package cli

import (
	"os"
	"strings"
	"testing"
)

// TestTakePassword: what is started does not inherit the password, and the login has it.
func TestTakePassword(t *testing.T) {
	t.Setenv(thruPassword, "sesame")
	e := &env{in: strings.NewReader(""), password: takePassword()}
	if _, there := os.LookupEnv(thruPassword); there {
		t.Error("it is still in the environment")
	}
	if got, err := newPasswords(e, false).of("of u", errNoLogin)(); got != "sesame" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	e = &env{in: strings.NewReader(strings.Repeat("x", longestPassword+1)), password: takePassword()}
	if got, err := newPasswords(e, false).of("of u", errNoLogin)(); err == nil {
		t.Errorf("%q without one", got)
	}
	if got, err := newPasswords(e, true).of("of u", errNoLogin)(); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("%q, %v: cut off", got, err)
	}
}
