package console

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestTakePassword: child processes do not inherit the password, and the login gets it.
func TestTakePassword(t *testing.T) {
	t.Setenv(ThruPassword, "sesame")
	e := &Console{In: strings.NewReader(""), Password: TakePassword()}
	if _, there := os.LookupEnv(ThruPassword); there {
		t.Error("it is still in the environment")
	}
	if got, err := NewPasswords(e, false).Of("of u", errors.New("not logged in"))(); got != "sesame" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	e = &Console{In: strings.NewReader(strings.Repeat("x", longestPassword+1)), Password: TakePassword()}
	if got, err := NewPasswords(e, false).Of("of u", errors.New("not logged in"))(); err == nil {
		t.Errorf("%q without one", got)
	}
	if got, err := NewPasswords(e, true).Of("of u", errors.New("not logged in"))(); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("%q, %v: cut off", got, err)
	}
}
