package bus_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"thru/internal/bus"
	"thru/internal/bus/bustest"
)

// TestPrivileges: the rights of a client depend on its join string, and on what the agent
// is configured to allow.
func TestPrivileges(t *testing.T) {
	other, err := bus.NewState()
	if err != nil {
		t.Fatal(err)
	}
	both := []string{bus.PrivilegeMeasure, bus.PrivilegeCapture}
	tests := []struct {
		name   string
		conf   bus.ServerConfig
		string string // the privilege whose join string the client has
		want   []string
	}{
		{"measuring", bus.ServerConfig{Allow: bus.Privileges()}, bus.PrivilegeMeasure, both[:1]},
		{"capturing", bus.ServerConfig{Allow: bus.Privileges()}, bus.PrivilegeCapture, both},
		{"tuning", bus.ServerConfig{Allow: bus.Privileges()}, bus.PrivilegeTune, []string{bus.PrivilegeMeasure, bus.PrivilegeTune}},
		{"disks", bus.ServerConfig{Allow: bus.Privileges()}, bus.PrivilegeFiles, []string{bus.PrivilegeMeasure, bus.PrivilegeFiles}},
		{"virtual machines", bus.ServerConfig{Allow: bus.Privileges()}, bus.PrivilegeInventory, []string{bus.PrivilegeMeasure, bus.PrivilegeInventory}},
		{"virtual machines, where only tuning is allowed", bus.ServerConfig{Allow: []string{bus.PrivilegeTune}}, bus.PrivilegeInventory, both[:1]},
		{"several at once", bus.ServerConfig{Allow: bus.Privileges()}, "capture,tune,inventory", []string{bus.PrivilegeMeasure, bus.PrivilegeCapture, bus.PrivilegeTune, bus.PrivilegeInventory}},
		{"several, of which one is no longer allowed", bus.ServerConfig{Allow: []string{bus.PrivilegeTune}}, "capture,tune", []string{bus.PrivilegeMeasure, bus.PrivilegeTune}},
		{"disks, no longer allowed", bus.ServerConfig{}, bus.PrivilegeFiles, both[:1]},
		{"tuning, where only capturing is allowed", bus.ServerConfig{Allow: []string{bus.PrivilegeCapture}}, bus.PrivilegeTune, both[:1]},
		{"tuning where anybody measures", bus.ServerConfig{NoAuth: true, Allow: bus.Privileges()}, bus.PrivilegeTune, []string{bus.PrivilegeMeasure, bus.PrivilegeTune}},
		{"capturing, no longer allowed", bus.ServerConfig{}, bus.PrivilegeCapture, both[:1]},
		{"anybody", bus.ServerConfig{NoAuth: true, Allow: bus.Privileges()}, bus.PrivilegeMeasure, both[:1]},
		{"capturing where anybody measures", bus.ServerConfig{NoAuth: true, Allow: bus.Privileges()}, bus.PrivilegeCapture, both},
		{"on an identity that was there", bus.ServerConfig{Allow: bus.Privileges(), State: other}, bus.PrivilegeCapture, both},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h, granted := asking()
			s, _ := serve(t, h, tt.conf)
			conf := config(s)
			conf.Secret = s.JoinFor(tt.string, nil).Secret
			c, err := bus.Dial(t.Context(), conf)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Hello(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := granted(); !slices.Equal(got, tt.want) {
				t.Errorf("granted %v, want %v", got, tt.want)
			}
		})
	}
}

// asking returns a fake that records the privileges of its last caller.
func asking() (*bustest.Handler, func() []string) {
	h, last := bustest.New(), make(chan []string, 8)
	h.On = func(ctx context.Context, _ bustest.Call) error {
		granted := bus.Granted(ctx)
		for _, p := range bus.Privileges() {
			if bus.Allows(ctx, p) != slices.Contains(granted, p) {
				return errors.New("what is granted is not allowed")
			}
		}
		last <- granted
		return nil
	}
	return h, func() []string { return <-last }
}

// TestFleetPrivileges: an operator has at each host the privileges that the host allows.
func TestFleetPrivileges(t *testing.T) {
	r := openRig(t, nil)
	for name, allow := range map[string][]string{"bee": nil, "wasp": {bus.PrivilegeTune}} {
		h, granted := asking()
		p := r.attach(t, h, name, func(c *bus.AttachConfig) { c.Allow = allow })
		if _, err := r.operator(t).Client(p.ID()).Hello(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := granted(), append([]string{bus.PrivilegeMeasure}, allow...); !slices.Equal(got, want) {
			t.Errorf("%s: granted %v, want %v", name, got, want)
		}
	}
}

// TestOwnProcessMayAll: the own process has all privileges.
func TestOwnProcessMayAll(t *testing.T) {
	h, granted := asking()
	c, _ := inProcess(t, h)
	if _, err := c.Hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := granted(); !slices.Contains(got, bus.PrivilegeCapture) || !slices.Contains(got, bus.PrivilegeTune) || !slices.Contains(got, bus.PrivilegeMeasure) {
		t.Errorf("granted %v", got)
	}
}

// TestSecretsDiffer: no join string can be derived from another one, from one before a
// rotation, or from that of another agent.
func TestSecretsDiffer(t *testing.T) {
	dir := t.TempDir() + "/state"
	state, err := bus.OpenState(dir)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	strings1 := joinStrings(t, state)
	if err := state.Rotate(); err != nil {
		t.Fatal(err)
	}
	strings2 := joinStrings(t, state)
	again, err := bus.OpenState(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range joinStrings(t, again) {
		if s != strings2[i] {
			t.Error("the secrets do not stay with the identity")
		}
	}
	for _, s := range append(strings1, strings2...) {
		if len(s) < 22 || seen[s] {
			t.Error("two secrets are the same, or one is too short")
		}
		seen[s] = true
	}
}

// joinStrings returns the secrets of an identity, as a client has them.
func joinStrings(t *testing.T, state *bus.State) (secrets []string) {
	t.Helper()
	s, _ := serve(t, bustest.New(), bus.ServerConfig{State: state})
	for _, p := range append([]string{bus.PrivilegeMeasure, "capture,tune", "capture,tune,files,inventory"}, bus.Privileges()...) {
		j, err := bus.ParseJoin(s.JoinFor(p, nil).String())
		if err != nil || j.Privilege != p {
			t.Fatal(j.Privilege, err)
		}
		secrets = append(secrets, string(j.Secret))
	}
	return secrets
}

// TestWrongSecretForCapture: half a secret, or one of another agent, admits no client.
func TestWrongSecretForCapture(t *testing.T) {
	h := bustest.New()
	s, _ := serve(t, h, bus.ServerConfig{Allow: bus.Privileges()})
	stranger, _ := serve(t, h, bus.ServerConfig{Allow: bus.Privileges()})
	right := string(s.JoinFor(bus.PrivilegeCapture, nil).Secret)
	for _, wrong := range []string{right[:len(right)-1], strings.ToUpper(right), string(stranger.JoinFor(bus.PrivilegeCapture, nil).Secret)} {
		conf := config(s)
		conf.Secret = bus.Secret(wrong)
		if c, err := bus.Dial(t.Context(), conf); !errors.Is(err, bus.ErrSecret) {
			t.Errorf("a wrong secret: %v", err)
			if err == nil {
				c.Close()
			}
		}
	}
}

// A join string is for a set of privileges, each once and in their order, and for no other words.
func TestJoinForSeveral(t *testing.T) {
	if got := bus.Together([]string{bus.PrivilegeTune, "tune", bus.PrivilegeCapture, "root"}); got != "capture,tune" {
		t.Errorf("together they are %q", got)
	}
	s, _ := serve(t, bustest.New(), bus.ServerConfig{})
	for privileges, ok := range map[string]bool{
		"capture,tune": true, "tune,inventory": true, "tune,capture": false, "tune,tune": false, "capture,": false, ",": false, "capture,agent": false, "measure,capture": false, "root": false,
	} {
		j := s.JoinFor(privileges, nil)
		if _, err := bus.ParseJoin(j.String()); (err == nil) != ok {
			t.Errorf("%q: %v", privileges, err)
		}
	}
}
