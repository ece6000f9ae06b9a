package bus_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"thru/internal/access"
	"thru/internal/bus"
	"thru/internal/bus/bustest"
	"thru/internal/fault"
)

// guarded is a rig with users, and its audit log.
type guarded struct {
	*rig
	state *bus.State
	users *bus.Users

	mu     sync.Mutex
	events []access.Event
	broken error // of the log
}

func openGuarded(t *testing.T, change func(*bus.UsersConfig)) *guarded {
	t.Helper()
	g := &guarded{state: newState(t)}
	c := bus.UsersConfig{State: g.state, Audit: g.log}
	if change != nil {
		change(&c)
		g.state = c.State
	}
	var err error
	if g.users, err = bus.OpenUsers(c); err != nil {
		t.Fatal(err)
	}
	g.rig = openRigAt(t, bus.HubConfig{Addrs: []string{"127.0.0.1:0"}, State: g.state, Users: g.users}, bus.RegistryConfig{})
	return g
}

func (g *guarded) log(e access.Event) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.events = append(g.events, e)
	return g.broken
}

// logged returns the lines of the log about a verb.
func (g *guarded) logged(verb string) (lines []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.events {
		if e.Verb == verb {
			lines = append(lines, fmt.Sprintf("%s by %s from %s at %s: %v %s", e.Who.Name, e.Who.Via, e.From, strings.Join(e.Hosts, " "), e.Allowed, e.Why))
		}
	}
	return lines
}

// admin connects as who can read the controller's state folder.
func (g *guarded) admin(t *testing.T) *bus.Fleet {
	t.Helper()
	j := g.state.StateJoin(g.operate)
	return dialFleet(t, bus.FleetConfig{Join: &j, Version: "v1"})
}

// token makes a token, and returns its join string.
func (g *guarded) token(t *testing.T, q bus.TokenRequest) bus.Join {
	t.Helper()
	r, err := g.admin(t).AddToken(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	j, err := bus.ParseJoin(r.Join)
	if err != nil || j.Privilege != bus.PrivilegeUser {
		t.Fatal(j, err)
	}
	return j
}

// user connects with a new token.
func (g *guarded) user(t *testing.T, role access.Role, labels access.Labels) *bus.Fleet {
	t.Helper()
	j := g.token(t, bus.TokenRequest{Name: "a-" + string(role) + "-" + fmt.Sprint(len(g.logged("login"))), Role: role, Labels: labels})
	return dialFleet(t, bus.FleetConfig{Join: &j, Version: "v1"})
}

// askVerb sends a request without content.
func askVerb(t *testing.T, c *bus.Client, verb string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return c.Ask(ctx, bus.Question{Verb: verb, Message: bus.Empty{}}, &struct{}{})
}

// TestRolesAtHosts: each verb reaches a host only from a role that may, and only at hosts with the labels of the user.
func TestRolesAtHosts(t *testing.T) {
	g := openGuarded(t, nil)
	h := bustest.New()
	east := g.attach(t, h, "bee")
	west := g.attach(t, h, "wasp", func(c *bus.AttachConfig) { c.Labels = map[string]string{"site": "west"} })
	waitHosts(t, g.operator(t), func(all []bus.Host) bool { return len(all) == 2 })
	least := map[string]access.Role{
		"hello": access.Viewer, "clock": access.Viewer, "facts": access.Viewer, "knobs": access.Viewer,
		"captured": access.Tuner, "tune": access.Tuner, "alter": access.Tuner, "revert": access.Tuner, "rollback": access.Tuner, "tuned": access.Tuner,
		"disk": access.Tuner, "disked": access.Tuner, "file": access.Tuner, "filed": access.Tuner, "size": access.Tuner, "remove": access.Tuner,
	}
	for _, v := range bus.Verbs() { // all others measure
		if _, known := least[v.String()]; !known {
			least[v.String()] = access.Operator
		}
	}
	for _, role := range access.Roles() {
		f := g.user(t, role, access.Labels{"site": {"east"}})
		if hosts, err := f.Hosts(t.Context()); err != nil || len(hosts) != 1 || hosts[0].Name != "bee" {
			t.Errorf("%s sees %v %v", role, hosts, err)
		}
		for verb, need := range least {
			before := len(h.Calls())
			err := askVerb(t, f.Client(east.ID()), verb)
			may := slices.Index(access.Roles(), role) >= slices.Index(access.Roles(), need)
			if may != (err == nil) || may != (len(h.Calls()) > before) {
				t.Errorf("%s: %s: %v", role, verb, err)
			}
			if !may && (!strings.Contains(err.Error(), "needs the role "+string(need)) || !strings.Contains(fault.Hint(err), "--role "+string(need))) {
				t.Errorf("%s: %s: %v (%s)", role, verb, err, fault.Hint(err))
			}
			before = len(h.Calls())
			if err := askVerb(t, f.Client(west.ID()), verb); err == nil || may && !strings.Contains(err.Error(), "wasp has other labels") || len(h.Calls()) > before {
				t.Errorf("%s: %s at another site: %v", role, verb, err)
			}
		}
		if err := askVerb(t, f.Client(east.ID()), "fly"); role != access.Admin && (err == nil || strings.Contains(err.Error(), "does not know")) {
			t.Errorf("%s: an unknown verb: %v", role, err)
		}
		if err := f.Forget(t.Context(), "wasp"); err == nil {
			t.Errorf("%s of the east forgets a host of the west", role)
		}
		if _, err := f.AddToken(t.Context(), bus.TokenRequest{Name: "eve", Role: access.Admin}); err == nil {
			t.Errorf("%s of the east gives a token for all", role)
		}
	}
}

// TestRoleLimitsPrivileges: a host grants a user what it allows and the role permits, and an older host grants nobody more.
func TestRoleLimitsPrivileges(t *testing.T) {
	g := openGuarded(t, nil)
	h, granted := asking()
	bee := g.attach(t, h, "bee", func(c *bus.AttachConfig) { c.Allow = []string{bus.PrivilegeTune, bus.PrivilegeInventory} })
	waitHosts(t, g.operator(t), func(all []bus.Host) bool { return len(all) == 1 })
	for role, want := range map[access.Role][]string{
		access.Viewer: {}, access.Operator: {"measure", "inventory"}, access.Tuner: {"measure", "tune", "inventory"}, access.Admin: {"measure", "tune", "inventory"},
	} {
		if err := askVerb(t, g.user(t, role, nil).Client(bee.ID()), "hello"); err != nil {
			t.Fatal(err)
		}
		if got := granted(); !slices.Equal(got, want) {
			t.Errorf("%s: granted %v, want %v", role, got, want)
		}
	}
}

// TestUserStaysApart: a user cannot pass the controller by, ask as another, or answer as a host.
func TestUserStaysApart(t *testing.T) {
	g := openGuarded(t, nil)
	victim := g.attach(t, bustest.New(), "bee").ID()
	j := g.token(t, bus.TokenRequest{Name: "anna", Role: access.Admin})
	r := admitted(t, j)
	const run = "AAAAAAAAAAAAAAAAAAAAAAAAAA"
	for _, subject := range []string{
		"thru.to." + victim + "." + r.key + "." + run + ".hello", "thru.ask." + victim + "." + victim + "." + run + ".hello", "thru.re." + r.key + "." + run + "." + victim + ".r.1",
		"thru.registry." + victim + "." + run + ".tokens", "thru.here." + r.key, "thru.ack." + victim + ".name",
	} {
		if err := r.Publish(subject, nil); err != nil {
			t.Fatal(err)
		}
		wantViolation(t, r.violations, "publishing to "+subject)
	}
	for _, subject := range []string{"thru.ask.>", "thru.to.>", "thru.re.>", "thru.re." + victim + ".>"} {
		if _, err := r.Subscribe(subject, func(*nats.Msg) {}); err != nil {
			t.Fatal(err)
		}
		wantViolation(t, r.violations, "subscribing to "+subject)
	}
}

// TestForgedHeader: the privileges that a user claims in a header are not those that the host grants.
func TestForgedHeader(t *testing.T) {
	g := openGuarded(t, nil)
	h, granted := asking()
	bee := g.attach(t, h, "bee", func(c *bus.AttachConfig) { c.Allow = bus.Privileges() })
	waitHosts(t, g.operator(t), func(all []bus.Host) bool { return len(all) == 1 })
	r := admitted(t, g.token(t, bus.TokenRequest{Name: "anna", Role: access.Viewer}))
	const run = "AAAAAAAAAAAAAAAAAAAAAAAAAA"
	m := &nats.Msg{Subject: "thru.ask." + bee.ID() + "." + r.key + "." + run + ".hello", Reply: "thru.re." + r.key + "." + run + "." + bee.ID() + ".r.1",
		Header: nats.Header{"Thru-May": {"measure,tune,capture", "tune"}}, Data: []byte("{}")}
	if err := r.PublishMsg(m); err != nil {
		t.Fatal(err)
	}
	if got := granted(); len(got) > 0 {
		t.Errorf("granted %v", got)
	}
}

// TestTokens: only an administrator gives tokens; they end by revocation and by their time, also for those who are connected.
func TestTokens(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	g := openGuarded(t, func(c *bus.UsersConfig) {
		var err error
		if c.State, err = bus.OpenState(dir); err != nil {
			t.Fatal(err)
		}
	})
	bee := g.attach(t, bustest.New(), "bee")
	waitHosts(t, g.operator(t), func(all []bus.Host) bool { return len(all) == 1 })
	if _, err := g.operator(t).AddToken(t.Context(), bus.TokenRequest{Name: "eve", Role: access.Viewer}); err == nil || !strings.Contains(err.Error(), "needs the role admin") {
		t.Error("who has the join string for operators gives tokens:", err)
	}
	admin := g.admin(t)
	for _, bad := range []bus.TokenRequest{{Name: "e e", Role: access.Viewer}, {Name: "eve", Role: access.Bearer}, {Name: "eve", Role: "root"}, {Name: "eve"}} {
		if _, err := admin.AddToken(t.Context(), bad); err == nil {
			t.Errorf("%+v is given", bad)
		}
	}
	j := g.token(t, bus.TokenRequest{Name: "anna", Role: access.Operator, ForNs: int64(time.Hour)})
	list, err := admin.Tokens(t.Context())
	if err != nil || len(list) != 1 || list[0].Name != "anna" || list[0].SHA256 != "" || list[0].Until.IsZero() || list[0].By != "administrator-of-the-controller" {
		t.Fatalf("%+v %v", list, err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "users.json"))
	if err != nil || strings.Contains(string(b), string(j.Secret)) || !strings.Contains(string(b), access.Hash(string(j.Secret))) {
		t.Error("the file does not have the hash alone", err)
	}
	again, err := bus.OpenUsers(bus.UsersConfig{State: g.state})
	if err != nil || again == nil {
		t.Fatal(err)
	}
	f := dialFleet(t, bus.FleetConfig{Join: &j})
	if err := askVerb(t, f.Client(bee.ID()), "facts"); err != nil {
		t.Fatal(err)
	}
	if err := admin.RevokeToken(t.Context(), "anna"); err != nil {
		t.Fatal(err)
	}
	if err := askVerb(t, f.Client(bee.ID()), "facts"); err == nil || !strings.Contains(err.Error(), "unknown or revoked") {
		t.Error("a revoked token still asks:", err)
	}
	if _, err := f.Hosts(t.Context()); err == nil {
		t.Error("a revoked token still lists hosts")
	}
	if c, err := bus.DialFleet(t.Context(), bus.FleetConfig{Join: &j}); !errors.Is(err, bus.ErrSecret) || !strings.Contains(err.Error(), "expired or was revoked") {
		t.Error("a revoked token logs in:", err)
		if err == nil {
			c.Close()
		}
	}
}

// TestAudit: what users and operators do is logged with who, how and where, refusals too; and what cannot be logged is not done.
func TestAudit(t *testing.T) {
	g := openGuarded(t, nil)
	h := bustest.New()
	bee := g.attach(t, h, "bee")
	op := g.operator(t)
	waitHosts(t, op, func(all []bus.Host) bool { return len(all) == 1 })
	j := g.token(t, bus.TokenRequest{Name: "anna", Role: access.Operator})
	f := dialFleet(t, bus.FleetConfig{Join: &j})
	for _, c := range []*bus.Client{f.Client(bee.ID()), op.Client(bee.ID())} {
		for _, verb := range []string{"hello", "prepare", "tune"} {
			_ = askVerb(t, c, verb) // anna may not tune
		}
	}
	want := map[string][]string{
		"prepare":               {"anna by token from 127.0.0.1 at bee: true ", "join-string-for-operators by join string from 127.0.0.1 at bee: true "},
		"tune":                  {"anna by token from 127.0.0.1 at bee: false you are anna (operator, by token): tune needs the role tuner", "join-string-for-operators by join string from 127.0.0.1 at bee: true "},
		"hello":                 nil,
		"token anna: operator ": {"administrator-of-the-controller by state from 127.0.0.1 at : true "},
	}
	for verb, lines := range want {
		waitFor(t, func() ([]string, bool) { got := g.logged(verb); return got, slices.Equal(got, lines) })
	}
	wrong := j
	wrong.Secret += "x"
	if c, err := bus.DialFleet(t.Context(), bus.FleetConfig{Join: &wrong}); err == nil {
		c.Close()
		t.Error("a wrong token logs in")
	}
	if lines := strings.Join(g.logged("login"), "\n"); !strings.Contains(lines, "anna by token from 127.0.0.1 at : true") || !strings.Contains(lines, "unknown by token from 127.0.0.1 at : false unknown or revoked") {
		t.Error(lines)
	}
	g.mu.Lock()
	g.broken = errors.New("the disk is full")
	g.mu.Unlock()
	before := len(h.Calls())
	if err := askVerb(t, f.Client(bee.ID()), "prepare"); err == nil || !strings.Contains(err.Error(), "the disk is full") || len(h.Calls()) > before {
		t.Error("what cannot be logged is done:", err)
	}
	if _, err := g.admin2(t); err == nil {
		t.Error("a login that cannot be logged is admitted")
	}
}

func (g *guarded) admin2(t *testing.T) (*bus.Fleet, error) {
	t.Helper()
	j := g.state.StateJoin(g.operate)
	f, err := bus.DialFleet(t.Context(), bus.FleetConfig{Join: &j})
	if err == nil {
		f.Close()
	}
	return f, err
}

// TestSession: who a provider has named gets a token for some hours, and nothing else with the provider's own.
func TestSession(t *testing.T) {
	long := strings.Repeat("x", 8000) // an ID token with many groups
	g := openGuarded(t, func(c *bus.UsersConfig) {
		c.OIDC = &bus.OIDC{Issuer: "https://id.example.com", Client: "thru"}
		c.Verify = func(_ context.Context, token string) (access.Identity, time.Time, error) {
			if token != long {
				return access.Identity{}, time.Time{}, errors.New("the signature is wrong")
			}
			return access.Identity{Name: "anna@example.com", Role: access.Operator, Labels: access.Labels{"site": {"east"}}, Via: access.ByOIDC}, time.Now().Add(time.Minute), nil
		}
	})
	bee := g.attach(t, bustest.New(), "bee")
	login, ok := g.hub.LoginJoin()
	if !ok || login.Secret != "" || login.OIDC.Client != "thru" {
		t.Fatalf("%+v", login)
	}
	kept, err := bus.ParseJoin(login.String())
	if err != nil || *kept.OIDC != *login.OIDC {
		t.Fatal(kept, err)
	}
	if _, _, err := bus.StartSession(t.Context(), kept, "forged", bus.FleetConfig{}); !errors.Is(err, bus.ErrSecret) || !strings.Contains(fault.Hint(err), "thru login") {
		t.Error("a forged token logs in:", err)
	}
	j, given, err := bus.StartSession(t.Context(), kept, long, bus.FleetConfig{})
	if err != nil || given.Name != "anna@example.com" || j.OIDC == nil || time.Until(given.Until) > 12*time.Hour {
		t.Fatal(given, err)
	}
	f := dialFleet(t, bus.FleetConfig{Join: &j})
	waitHosts(t, f, func(all []bus.Host) bool { return len(all) == 1 })
	if err := askVerb(t, f.Client(bee.ID()), "prepare"); err != nil {
		t.Error(err)
	}
	if _, _, err := bus.StartSession(t.Context(), j, long, bus.FleetConfig{}); err != nil { // at another machine
		t.Error(err)
	}
	raw := kept
	raw.Privilege, raw.Secret = "oidc", bus.Secret(long)
	r := admitted(t, raw)
	for _, subject := range []string{"thru.ask." + bee.ID() + "." + r.key + ".AAAAAAAAAAAAAAAAAAAAAAAAAA.hello", "thru.registry." + r.key + ".AAAAAAAAAAAAAAAAAAAAAAAAAA.hosts"} {
		if err := r.Publish(subject, nil); err != nil {
			t.Fatal(err)
		}
		wantViolation(t, r.violations, "publishing to "+subject)
	}
}

// TestTokenOfTheEnvironment: a join string in a variable, or in a private file that one names, goes before the stored one.
func TestTokenOfTheEnvironment(t *testing.T) {
	home, file := t.TempDir(), filepath.Join(t.TempDir(), "token")
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("HOME", home)
	t.Setenv("AppData", home)
	j := bus.Join{Name: "fleet", Control: []string{"10.0.0.1:5200"}, Secret: "aaaaaaaaaaaaaaaaaaaaaa", Privilege: bus.PrivilegeUser}
	stored := j
	stored.Secret = "bbbbbbbbbbbbbbbbbbbbbb"
	keys, err := bus.DefaultKeyring()
	if err == nil {
		err = errors.Join(keys.Save("fleet", stored, false), keys.Save("other", stored, false), os.WriteFile(file, []byte(j.String()+"\n"), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	for variable, value := range map[string]string{bus.TokenVariable: j.String(), bus.TokenFileVariable: file, "THRU_NOTHING": ""} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, value)
			keys, err := bus.DefaultKeyring()
			if err != nil {
				t.Fatal(err)
			}
			names, err := keys.List()
			if err != nil || !slices.Equal(names, []string{"fleet", "other"}) {
				t.Error(names, err)
			}
			want := j.Secret
			if value == "" {
				want = stored.Secret
			}
			if got, err := keys.Load("fleet"); err != nil || string(got.Secret) != string(want) {
				t.Error("not the right one", err)
			}
		})
	}
	t.Setenv(bus.TokenVariable, "thru1.secret-that-is-wrong")
	if _, err := bus.DefaultKeyring(); err == nil || strings.Contains(err.Error(), "secret-that") {
		t.Error(err)
	}
	os.Chmod(file, 0o644)
	t.Setenv(bus.TokenFileVariable, file)
	if _, err := bus.DefaultKeyring(); err == nil || !strings.Contains(err.Error(), "can be read by others") {
		t.Error(err)
	}
}
