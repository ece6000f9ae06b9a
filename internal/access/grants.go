package access

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"thru/internal/fault"
)

// Bounds of the grants of a controller.
const (
	mostGrants = 10000
	mostName   = 256 // bytes
)

// ErrToken is wrapped by the errors about a token that admits nobody.
var ErrToken = errors.New("the token is not valid")

// Given is what a token gives to its bearer.
type Given struct {
	Name   string    `json:"name"`
	Role   Role      `json:"role"`
	Labels Labels    `json:"labels,omitempty"`
	Via    Via       `json:"via"`
	SHA256 string    `json:"sha256,omitempty"` // of the token, in hex; the token itself is stored nowhere
	By     string    `json:"by,omitempty"`     // who gave it
	MadeAt time.Time `json:"made_at,omitzero"`
	Until  time.Time `json:"until,omitzero"` // zero: it does not expire
}

// Identity returns the bearer.
func (g Given) Identity() Identity { return Identity{g.Name, g.Role, g.Labels, g.Via} }

// Expired reports whether a token admits nobody any more.
func (g Given) Expired(now time.Time) bool { return !g.Until.IsZero() && !now.Before(g.Until) }

// Hash returns what is stored of a token. Its 256 random bits need neither salt nor a slow function.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Grants are the tokens of a controller.
type Grants []Given

// Find returns what a token gives, by its Hash.
func (all Grants) Find(hash string, now time.Time) (Given, error) {
	for _, g := range all {
		switch {
		case hash == "" || g.SHA256 != hash: // a hash can be compared in any time: nobody can choose one that is nearly right
		case g.Expired(now):
			return Given{}, fault.Failf("ask for a new one, or log in again: thru login", "access: the token of %s has expired on %s: %w", g.Name, g.Until.Format(time.DateOnly), ErrToken)
		default:
			return g, nil
		}
	}
	return Given{}, fault.Failf("ask for a new one, or log in again: thru login", "access: unknown or revoked: %w", ErrToken)
}

// Add returns the grants with one more, and without those that have expired. A token's name is given once; a user of
// a provider may be logged in at several machines.
func (all Grants) Add(g Given, now time.Time) (Grants, error) {
	if err := CheckName(g.Name); err != nil {
		return nil, err
	}
	if len(g.Role.Actions()) == 0 || g.SHA256 == "" || g.Expired(now) {
		return nil, fault.Usagef("give it a role, and a time after now", "access: a token needs a role and a time in the future")
	}
	kept := slices.DeleteFunc(slices.Clone(all), func(old Given) bool { return old.Expired(now) })
	for _, old := range kept {
		if old.Name == g.Name && (g.Via == ByToken || old.Via == ByToken) {
			return nil, fault.Usagef("revoke it first, thru token revoke "+g.Name+", or choose another name", "access: there is a token named %s", g.Name)
		}
	}
	if len(kept) >= mostGrants {
		return nil, fault.Failf("revoke those that nobody needs: thru token list", "access: there are %d tokens, and no more fit", len(kept))
	}
	return append(kept, g), nil
}

// Revoke returns the grants without those of a name.
func (all Grants) Revoke(name string) (Grants, error) {
	kept := slices.DeleteFunc(slices.Clone(all), func(g Given) bool { return g.Name == name })
	if len(kept) == len(all) {
		return nil, fault.Usagef("list them: thru token list", "access: there is no token named %.80q", name)
	}
	return kept, nil
}

// CheckName returns what is wrong with the name of a user.
func CheckName(name string) error {
	if name == "" || len(name) > mostName || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
		return fault.Usagef("use printable ASCII without spaces, up to 256 characters", "access: %.80q is not a valid name of a user", name)
	}
	return nil
}

// Rule maps a group of a provider to a role.
type Rule struct {
	Group  string
	Role   Role
	Labels Labels
}

// ParseRule reads ROLE[,KEY=VALUE...]:GROUP, such as operator,site=berlin:net-berlin.
func ParseRule(text string) (Rule, error) {
	left, group, ok := strings.Cut(text, ":")
	if !ok || group == "" {
		return Rule{}, fault.Usagef("write ROLE:GROUP or ROLE,site=berlin:GROUP", "access: %.80q names no group", text)
	}
	parts := strings.Split(left, ",")
	role, err := ParseRole(parts[0])
	if err != nil {
		return Rule{}, err
	}
	labels, err := ParseLabels(parts[1:])
	return Rule{group, role, labels}, err
}

// Choose returns the first rule for one of the groups of a user.
func Choose(rules []Rule, groups []string) (Rule, bool) {
	i := slices.IndexFunc(rules, func(r Rule) bool { return slices.Contains(groups, r.Group) })
	if i < 0 {
		return Rule{}, false
	}
	return rules[i], true
}
