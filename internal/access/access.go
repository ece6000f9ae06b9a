// Package access decides who may do what in a fleet: the actions of each role, the hosts that a user may touch by
// their labels, and which users there are. It reads no file and no clock: a controller asks it about every request, and
// so can a web page. docs/access.md has the table of roles.
package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"thru/internal/fault"
)

// Action is what a request needs. Those that a host must allow too have the names of its privileges (package bus).
type Action string

// The actions.
const (
	View      Action = "view"      // read the list of hosts, their facts and settings, plans and results
	Measure   Action = "measure"   // send test traffic
	Inventory Action = "inventory" // list virtual machines, and read their counters
	Capture   Action = "capture"   // capture packets of one's tests
	Tune      Action = "tune"      // change settings of hosts, and revert them
	Files     Action = "files"     // measure disks, and read and write files there
	Forget    Action = "forget"    // free the name of a host
	Grant     Action = "grant"     // give and revoke tokens, in the whole fleet
)

// Role is a set of actions.
type Role string

// The roles. Each one may do what the one before it may, and more.
const (
	Viewer   Role = "viewer"
	Operator Role = "operator"
	Tuner    Role = "tuner"
	// Bearer is the role of everybody with the join string for operators, which names nobody. No token has it.
	Bearer Role = "bearer"
	Admin  Role = "admin"
)

// Roles returns those that a token can have, the one with the fewest actions first.
func Roles() []Role { return []Role{Viewer, Operator, Tuner, Admin} }

// Actions returns what a role may do; none for an unknown role.
func (r Role) Actions() []Action {
	all := []Action{View, Measure, Inventory, Capture, Tune, Files, Forget, Grant}
	return all[:map[Role]int{Viewer: 1, Operator: 3, Tuner: 6, Bearer: 7, Admin: 8}[r]]
}

// May reports whether a role may do an action.
func (r Role) May(a Action) bool { return slices.Contains(r.Actions(), a) }

// Needed returns the role with the fewest actions that may do one.
func Needed(a Action) Role {
	for _, r := range Roles() {
		if r.May(a) {
			return r
		}
	}
	return Admin
}

// ParseRole reads a role that a token can have.
func ParseRole(text string) (Role, error) {
	if r := Role(text); slices.Contains(Roles(), r) {
		return r, nil
	}
	return "", fault.Usagef("choose one of "+words(Roles()), "access: no role is named %.80q", text)
}

// Via is how a user has proved who it is.
type Via string

// The ways to log in.
const (
	ByToken  Via = "token"       // of `thru token`
	ByOIDC   Via = "oidc"        // a provider of OpenID Connect has named the user
	ByString Via = "join string" // the one for operators, which any number of people can have
	ByState  Via = "state"       // who can read the controller's state folder
)

// Labels limit a user to hosts: each key must have one of its values there. None allow every host.
type Labels map[string][]string

// ParseLabels reads KEY=VALUE. The values of one key are alternatives.
func ParseLabels(list []string) (Labels, error) {
	all := Labels{}
	for _, text := range list {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" || value == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, fault.Usagef("a label is KEY=VALUE, without spaces: site=berlin", "access: %.80q is not a label", text)
		}
		if !slices.Contains(all[key], value) {
			all[key] = append(all[key], value)
		}
	}
	return all, nil
}

// Fit reports whether a host with these labels is among those that are allowed.
func (l Labels) Fit(host map[string]string) bool {
	for key, values := range l {
		if value, has := host[key]; !has || !slices.Contains(values, value) {
			return false
		}
	}
	return true
}

// String returns "site=berlin|paris role=web".
func (l Labels) String() string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(l)) {
		parts = append(parts, key+"="+strings.Join(l[key], "|"))
	}
	return strings.Join(parts, " ")
}

// Identity is a user that has logged in.
type Identity struct {
	Name   string
	Role   Role
	Labels Labels
	Via    Via
}

// String says who it is, and what it may: "anna (operator of hosts with site=berlin, by token)".
func (i Identity) String() string {
	of := ""
	if len(i.Labels) > 0 {
		of = " of hosts with " + i.Labels.String()
	}
	return fmt.Sprintf("%s (%s%s, by %s)", i.Name, i.Role, of, i.Via)
}

// May returns why a user may not do an action at a host with these labels; nil: it may.
func (i Identity) May(a Action, host string, labels map[string]string) error {
	if err := i.role(a); err != nil {
		return err
	}
	if !i.Labels.Fit(labels) {
		return fault.Failf("ask an administrator for a token that includes this host: thru token add "+i.Name+" --label ...",
			"access: you are %s, and %s has other labels", i, fault.Named(host))
	}
	return nil
}

// MayAll returns why a user may not do an action that concerns the whole fleet; nil: it may.
func (i Identity) MayAll(a Action) error {
	if err := i.role(a); err != nil {
		return err
	}
	if len(i.Labels) > 0 {
		return fault.Failf("ask an administrator without labels", "access: you are %s, and %s concerns all hosts", i, a)
	}
	return nil
}

func (i Identity) role(a Action) error {
	if i.Role.May(a) {
		return nil
	}
	need := Needed(a)
	return fault.Failf(fmt.Sprintf("ask an administrator for that role: thru token add %s --role %s", i.Name, need),
		"access: you are %s: %s needs the role %s", i, a, need)
}

// Event is an action for the audit log.
type Event struct {
	Who     Identity
	From    string   // address of the user; empty: not known
	Verb    string   // what was asked for
	Hosts   []string // that it touches
	Allowed bool
	Why     string // it was not allowed, or what it was about
}

// words lists roles.
func words(roles []Role) string {
	var all []string
	for _, r := range roles {
		all = append(all, string(r))
	}
	return strings.Join(all, ", ")
}
