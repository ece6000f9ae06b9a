package access

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/fault"
)

// TestRoles: what each role may do, action by action.
func TestRoles(t *testing.T) {
	may := map[Action]string{
		View: "viewer operator tuner bearer admin", Measure: "operator tuner bearer admin", Inventory: "operator tuner bearer admin",
		Capture: "tuner bearer admin", Tune: "tuner bearer admin", Files: "tuner bearer admin", Forget: "bearer admin", Grant: "admin",
	}
	for _, role := range append(Roles(), Bearer, "", "root") {
		for action, roles := range may {
			if want := slices.Contains(strings.Fields(roles), string(role)); role.May(action) != want {
				t.Errorf("%q may %s: %v", role, action, !want)
			}
		}
	}
	for action, role := range map[Action]Role{View: Viewer, Measure: Operator, Tune: Tuner, Forget: Admin, Grant: Admin, "fly": Admin} {
		if got := Needed(action); got != role {
			t.Errorf("%s needs %s, not %s", action, role, got)
		}
	}
}

// TestMay: role and labels decide together, and the error names both.
func TestMay(t *testing.T) {
	berlin := Labels{"site": {"berlin", "bonn"}}
	here, there := map[string]string{"site": "berlin", "rack": "1"}, map[string]string{"site": "paris"}
	tests := []struct {
		name   string
		who    Identity
		action Action
		host   map[string]string
		says   string // "": allowed
	}{
		{"a viewer reads", Identity{"anna", Viewer, nil, ByToken}, View, there, ""},
		{"a viewer does not measure", Identity{"anna", Viewer, nil, ByToken}, Measure, there, "you are anna (viewer, by token): measure needs the role operator"},
		{"an operator measures at its site", Identity{"anna", Operator, berlin, ByOIDC}, Measure, here, ""},
		{"not elsewhere", Identity{"anna", Operator, berlin, ByOIDC}, Measure, there, "you are anna (operator of hosts with site=berlin|bonn, by oidc), and web1 has other labels"},
		{"not at a host without labels", Identity{"anna", Operator, berlin, ByOIDC}, Measure, nil, "has other labels"},
		{"an operator does not tune", Identity{"anna", Operator, nil, ByToken}, Tune, here, "tune needs the role tuner"},
		{"a tuner tunes", Identity{"anna", Tuner, berlin, ByToken}, Tune, here, ""},
		{"nobody", Identity{}, View, here, "needs the role viewer"},
		{"an admin of a site frees names there only", Identity{"anna", Admin, berlin, ByToken}, Forget, there, "other labels"},
	}
	for _, tt := range tests {
		err := tt.who.May(tt.action, "web1", tt.host)
		if (err == nil) != (tt.says == "") || err != nil && (!strings.Contains(err.Error(), tt.says) || fault.Hint(err) == "") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if err := (Identity{"anna", Admin, berlin, ByToken}).MayAll(Grant); err == nil {
		t.Error("an administrator of one site may give tokens for all")
	}
	if err := (Identity{"anna", Admin, nil, ByToken}).MayAll(Grant); err != nil {
		t.Error(err)
	}
}

// TestGrants: a token is found by its hash until it expires or is revoked, and a name is given once.
func TestGrants(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	day := now.Add(24 * time.Hour)
	var all Grants
	for _, g := range []Given{
		{Name: "anna", Role: Operator, Via: ByToken, SHA256: Hash("a"), Until: day},
		{Name: "bert@example.com", Role: Viewer, Via: ByOIDC, SHA256: Hash("b")}, {Name: "bert@example.com", Role: Viewer, Via: ByOIDC, SHA256: Hash("c")},
	} {
		var err error
		if all, err = all.Add(g, now); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []Given{
		{Name: "anna", Role: Viewer, Via: ByToken, SHA256: Hash("d")}, {Name: "bert@example.com", Role: Admin, Via: ByToken, SHA256: Hash("d")},
		{Name: "an na", Role: Viewer, SHA256: Hash("d")}, {Name: "eve", Role: "root", SHA256: Hash("d")}, {Name: "eve", Role: Viewer}, {Name: "eve", Role: Viewer, SHA256: Hash("d"), Until: now},
	} {
		if _, err := all.Add(bad, now); fault.Code(err) != fault.Usage {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if g, err := all.Find(Hash("a"), now); err != nil || g.Identity().Name != "anna" {
		t.Error(g, err)
	}
	for _, wrong := range []string{Hash("x"), "", "a"} {
		if _, err := all.Find(wrong, now); !errors.Is(err, ErrToken) {
			t.Errorf("%q is found: %v", wrong, err)
		}
	}
	if _, err := all.Find(Hash("a"), day); !errors.Is(err, ErrToken) || !strings.Contains(err.Error(), "has expired on 2026-05-02") {
		t.Error(err)
	}
	if all, _ = all.Revoke("bert@example.com"); len(all) != 1 {
		t.Errorf("%d tokens are left", len(all))
	}
	if _, err := all.Revoke("bert@example.com"); fault.Code(err) != fault.Usage {
		t.Error(err)
	}
	if later, err := all.Add(Given{Name: "anna", Role: Viewer, Via: ByToken, SHA256: Hash("e")}, day); err != nil || len(later) != 1 {
		t.Error("an expired name cannot be given again:", err)
	}
}

// TestRules: the first rule for one of the groups counts.
func TestRules(t *testing.T) {
	var rules []Rule
	for _, text := range []string{"admin:ops", "operator,site=berlin,site=bonn:net:berlin", "viewer:all"} {
		r, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, r)
	}
	for _, tt := range []struct {
		groups []string
		want   Role
	}{{[]string{"all", "net:berlin"}, Operator}, {[]string{"all", "ops"}, Admin}, {[]string{"all"}, Viewer}, {[]string{"none"}, ""}, {nil, ""}} {
		if r, ok := Choose(rules, tt.groups); ok != (tt.want != "") || r.Role != tt.want {
			t.Errorf("%v: %+v", tt.groups, r)
		}
	}
	for _, bad := range []string{"", "admin", "admin:", "root:ops", "viewer,site:ops", "viewer,site=:ops", "bearer:ops"} {
		if _, err := ParseRule(bad); fault.Code(err) != fault.Usage {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
