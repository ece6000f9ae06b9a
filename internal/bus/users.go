package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"thru/internal/access"
	"thru/internal/fault"
)

// usersFile has the tokens of a controller, as hashes, in its state folder.
const usersFile = "users.json"

// loginOIDC is in place of a privilege in a login by the token of a provider, which is exchanged for one of the controller.
const loginOIDC = "oidc"

// Times of users.
const (
	sessionTime = 12 * time.Hour  // at most, of a login by a provider
	verifyTime  = 4 * time.Second // for the provider's keys, within the time for a login
)

// refusedLogins limits the entries about refused logins in the audit log, so that guessing does not fill the disk.
const refusedLogins = 20

// UsersConfig sets where the users of a controller are, and how they log in.
type UsersConfig struct {
	State *State // of the controller; in memory: the tokens are too
	// Verify returns the user of an ID token (OpenID Connect Core 1.0, section 2) and when it expires; nil: no provider.
	Verify func(ctx context.Context, idToken string) (access.Identity, time.Time, error)
	OIDC   *OIDC // of the provider
	// Audit writes an event to the audit log. It returns when it is written.
	Audit func(access.Event) error
}

// Users are those who may use a fleet, each by a token of its own.
type Users struct {
	conf    UsersConfig
	path    string // "": in memory
	refused *rate.Limiter

	mu     sync.Mutex
	grants access.Grants
	seen   map[string]bool // requests that are in the audit log: a user repeats one without a reply
}

// usersDoc is the format of usersFile.
type usersDoc struct {
	Version int           `json:"version"`
	Tokens  access.Grants `json:"tokens"`
}

// OpenUsers reads the users of a controller.
func OpenUsers(c UsersConfig) (*Users, error) {
	u := &Users{conf: c, refused: rate.NewLimiter(1, refusedLogins), seen: map[string]bool{}}
	if c.State.Dir() == "" {
		return u, nil
	}
	u.path = filepath.Join(c.State.Dir(), usersFile)
	b, err := readPrivate(u.path)
	if errors.Is(err, fs.ErrNotExist) {
		return u, nil
	}
	var doc usersDoc
	if err == nil {
		err = json.Unmarshal(b, &doc)
	}
	if err == nil && doc.Version != 1 {
		err = fmt.Errorf("version %d", doc.Version)
	}
	if err != nil {
		return nil, fault.Failf("upgrade thru, or repair the file; without it, all tokens are revoked", "bus: reading %s: %w", u.path, err)
	}
	u.grants = doc.Tokens
	return u, nil
}

// set stores other grants, and then goes by them. The caller holds the lock.
func (u *Users) set(all access.Grants, err error) error {
	if err != nil {
		return err
	}
	if u.path != "" {
		b, err := json.MarshalIndent(usersDoc{1, all}, "", "  ")
		if err == nil {
			err = WritePrivate(u.path, append(b, '\n'), true)
		}
		if err != nil {
			return fmt.Errorf("bus: storing the tokens: %w", err)
		}
	}
	u.grants = all
	return nil
}

// add gives a new token.
func (u *Users) add(g access.Given) (Secret, error) {
	secret := newSecret()
	g.SHA256, g.MadeAt = access.Hash(string(secret)), time.Now().UTC().Truncate(time.Second)
	u.mu.Lock()
	defer u.mu.Unlock()
	return secret, u.set(u.grants.Add(g, time.Now()))
}

func (u *Users) revoke(name string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.set(u.grants.Revoke(name))
}

// list returns the tokens, without their hashes.
func (u *Users) list() access.Grants {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := slices.Clone(u.grants)
	for i := range all {
		all[i].SHA256 = ""
	}
	return all
}

// find returns what a token gives now.
func (u *Users) find(hash string) (access.Given, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.grants.Find(hash, time.Now())
}

// stateSecret is the token of those who can read the state folder: it begins with no other.
func (s *State) stateSecret() Secret { return s.secretOf("administer") }

// StateJoin returns a join string of the controller with the rights of those who can read its state folder.
func (s *State) StateJoin(j Join) Join {
	j.Privilege, j.Secret = PrivilegeUser, s.stateSecret()
	return j
}

// stateUser is who can read the state folder.
func stateUser() access.Given {
	return access.Given{Name: "administrator-of-the-controller", Role: access.Admin, Via: access.ByState}
}

// bearer is who has the join string for operators.
func bearer() access.Given {
	return access.Given{Name: "join-string-for-operators", Role: access.Bearer, Via: access.ByString}
}

// login returns what a user gets at the hub by a secret: a token, or the ID token of a provider.
func (u *Users) login(ctx context.Context, state *State, privilege, secret string) (access.Given, error) {
	switch {
	case privilege == loginOIDC && u.conf.Verify == nil:
		return access.Given{}, errors.New("bus: no provider is configured")
	case privilege == loginOIDC:
		ctx, cancel := context.WithTimeout(ctx, verifyTime)
		defer cancel()
		who, until, err := u.conf.Verify(ctx, secret)
		return access.Given{Name: who.Name, Role: who.Role, Labels: who.Labels, Via: access.ByOIDC, Until: until}, err
	case state.stateSecret().matches(secret):
		return stateUser(), nil
	}
	return u.find(access.Hash(secret))
}

// audit writes an event about a user.
func (u *Users) audit(who access.Identity, from net.Addr, verb string, hosts []string, reason error) error {
	if u == nil || u.conf.Audit == nil {
		return nil
	}
	e := access.Event{Who: who, Verb: verb, Hosts: hosts, Allowed: reason == nil}
	if reason != nil {
		e.Why = fault.Plain(reason.Error())
	}
	if a := addrOf(from); a.IsValid() {
		e.From = a.String()
	}
	return u.conf.Audit(e)
}

// auditLogin writes the event of a login; too many refused ones at once are left out.
func (u *Users) auditLogin(who access.Given, privilege string, from net.Addr, reason error) error {
	if reason == nil {
		return u.audit(who.Identity(), from, "login", nil, nil)
	}
	if !u.refused.Allow() {
		return nil
	}
	via := map[string]access.Via{loginOIDC: access.ByOIDC, PrivilegeUser: access.ByToken}[privilege]
	return u.audit(access.Identity{Name: "unknown", Via: via}, from, "login", nil, reason)
}

// first reports whether a request, by its reply subject, is not yet in the audit log.
func (u *Users) first(reply string) bool {
	if u == nil {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.seen[reply] {
		return false
	}
	if len(u.seen) >= 4*maxOperators { // an entry twice does no harm
		clear(u.seen)
	}
	u.seen[reply] = true
	return true
}
