package bus

import (
	"crypto/subtle"
	"fmt"
	"slices"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"
)

// loginDelay slows down guessing of secrets.
const loginDelay = 300 * time.Millisecond

// agentAuth decides which clients may log in; the embedded server calls it at each login.
type agentAuth struct{ s *Server }

// Check implements the server's Authentication.
func (d agentAuth) Check(c nats.ClientAuthentication) bool {
	given := c.GetOpts()
	if d.s.isAgent(given.Username, given.Password) {
		return true
	}
	err := d.admit(c.GetID(), given.Username, given.Password)
	if err != nil {
		select {
		case <-time.After(loginDelay):
		case <-d.s.ctx.Done():
		}
		return false
	}
	c.RegisterUser(&nats.User{Username: given.Username, Permissions: permissions(given.Username)})
	return true
}

// admit accepts a client on one of our links.
func (d agentAuth) admit(id uint64, client, secret string) error {
	privileges := d.s.grants(secret)
	if len(privileges) == 0 {
		return fmt.Errorf("bus: admitting a client: %w", ErrSecret)
	}
	if !validID(client) {
		return fmt.Errorf("bus: admitting a client: its id is not valid: %w", ErrSecret)
	}
	return d.s.claim(id, client, privileges)
}

// grants returns the privileges of a client with this secret; none: it may not log
// in. The secret of a privilege that is no longer allowed grants measuring only.
func (s *Server) grants(secret string) []string {
	c, state := s.conf, s.state.Load()
	for _, name := range sets() {
		if state.secretOf(name).matches(secret) {
			allowed := slices.DeleteFunc(splitPrivileges(name), func(p string) bool { return !slices.Contains(c.Allow, p) })
			return append([]string{PrivilegeMeasure}, allowed...)
		}
	}
	if c.NoAuth || state.Secret.matches(secret) {
		return []string{PrivilegeMeasure}
	}
	return nil
}

// isAgent recognises the agent's own connection by a user and a password
// that exist only in this process.
func (s *Server) isAgent(user, password string) bool {
	sameUser := subtle.ConstantTimeCompare([]byte(user), []byte(s.agentUser))
	return sameUser == 1 && s.agentSecret.matches(password)
}

// permissions allows a client to send its own requests and to receive its own replies.
func permissions(client string) *nats.Permissions {
	return &nats.Permissions{
		Publish:   &nats.SubjectPermission{Allow: []string{subject(client, Hello.name), versioned(client) + ".>"}},
		Subscribe: &nats.SubjectPermission{Allow: []string{inbox(client) + ".>"}},
	}
}
