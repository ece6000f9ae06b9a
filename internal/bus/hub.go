package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/nats-io/jwt/v2"
	nats "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"thru/internal/access"
	"thru/internal/fault"
)

// Bounds of a hub.
const (
	hubConnections = 2048
	hubHandshakes  = 256
	hubSubs        = 4096 // an operator has one for each agent
	memberSubs     = 8    // of an agent, which has four
	hubReserved    = 256  // connections that agents may not take, so that operators get in
	hubPending     = 128 << 20
	hubLine        = 16 << 10 // bytes of a line of the NATS protocol: a login can have the ID token of a provider
	linksOfKey     = 8        // connections of one identity; more are refused
	agentRate      = 4 << 20
	agentBurst     = 16 << 20 // bytes that an agent may send at once: a long result
	operatorRate   = 16 << 20 // requests to many agents
	operatorBurst  = 8 << 20  // each byte may be queued once for each agent: all receive alive
)

// HubConfig configures the listener of `thru control`.
type HubConfig struct {
	Addrs  []string       // HOST:PORT to listen at; ":5200" means all addresses
	Device string         // device or VRF to bind to (Linux)
	State  *State         // identity; nil: a fresh one in memory
	Name   string         // put into join strings; may be empty
	Passed []net.Listener // open already, by systemd: used instead of Addrs
	Users  *Users         // who may log in with a role; nil: only those with the join string for operators
}

// Hub is the bus of a fleet: an embedded NATS server to which agents and operators
// connect. It only moves messages; a Registry on it knows the hosts.
type Hub struct {
	server *Server
	users  *Users
}

// OpenHub starts a hub. The context bounds only the start. Addresses that cannot be
// used are warnings if another one can, else an error with a hint.
func OpenHub(ctx context.Context, c HubConfig) (*Hub, []string, error) {
	conf := ServerConfig{Addrs: c.Addrs, Passed: c.Passed, Device: c.Device, State: c.State, Name: c.Name}
	f := front{
		auth:        func(s *Server) nats.Authentication { return hubAuth{s, c.Users} },
		connections: hubConnections, handshakes: hubHandshakes, subs: hubSubs, pending: hubPending, pingsOut: pingsOut, line: hubLine,
	}
	server, warnings, err := open(ctx, conf, f)
	if err != nil {
		return nil, nil, err
	}
	return &Hub{server, c.Users}, warnings, nil
}

// Join returns the join string of a privilege: PrivilegeAgent or PrivilegeOperate.
func (h *Hub) Join(privilege string) (Join, error) {
	if privilege != PrivilegeAgent && privilege != PrivilegeOperate {
		return Join{}, fault.Usagef("name agent or operate", "bus: controllers do not know the privilege %q", privilege)
	}
	return h.server.JoinFor(privilege, nil), nil
}

// LoginJoin returns the join string of those who log in at the provider; it has no secret. ok is false without one.
func (h *Hub) LoginJoin() (j Join, ok bool) {
	if h.users == nil || h.users.conf.OIDC == nil {
		return Join{}, false
	}
	j = h.server.JoinFor(PrivilegeUser, nil)
	j.Secret, j.OIDC = "", h.users.conf.OIDC
	return j, true
}

// Reload reads secrets and certificate again, as Server.Reload does.
func (h *Hub) Reload() error { return h.server.Reload() }

// Close ends all connections. All goroutines of the hub have ended when it returns.
func (h *Hub) Close() { h.server.Close() }

// hubAuth decides who may log in at a hub: a client with the secret of the
// privilege that proves to hold its key. The user name is the privilege.
type hubAuth struct {
	s     *Server
	users *Users
}

// Check implements the server's Authentication.
func (d hubAuth) Check(c nats.ClientAuthentication) bool {
	given := c.GetOpts()
	if d.s.isAgent(given.Username, given.Password) {
		return true
	}
	given.JWT = "" // not ours: its limits would apply to the connection
	may, err := d.admit(c.GetID(), given, c.GetNonce())
	if err != nil {
		select {
		case <-time.After(loginDelay):
		case <-d.s.ctx.Done():
		}
		return false
	}
	// The account is set so that the server reads the limits of this one connection.
	c.RegisterUser(&nats.User{Account: d.s.nats.GlobalAccount(), Username: given.Nkey, Permissions: &nats.Permissions{
		Publish:   &nats.SubjectPermission{Allow: may.publish},
		Subscribe: &nats.SubjectPermission{Allow: may.subscribe},
	}})
	return true
}

// admit checks secret and signature, and returns the permissions of the key.
func (d hubAuth) admit(id uint64, given *nats.ClientOpts, nonce []byte) (allowed, error) {
	known := given.Username == PrivilegeAgent || given.Username == PrivilegeOperate
	if d.users != nil && (given.Username == PrivilegeUser || given.Username == loginOIDC) {
		return d.user(id, given, nonce)
	}
	if !known || !d.s.state.Load().secretOf(given.Username).matches(given.Password) {
		return allowed{}, fmt.Errorf("bus: admitting: %w", ErrSecret)
	}
	if err := verify(given.Nkey, d.s.state.Load().CertSHA256(), nonce, given.Sig); err != nil {
		return allowed{}, fmt.Errorf("bus: admitting: %w: %w", ErrSecret, err)
	}
	l, err := d.s.note(id, given.Nkey, given.Username)
	if err != nil {
		return allowed{}, err
	}
	if given.Username == PrivilegeOperate {
		if err := d.users.auditLogin(bearer(), given.Username, l.outer.RemoteAddr(), nil); err != nil {
			return allowed{}, err
		}
		d.s.give(l, bearer())
		return operatorMay(given.Nkey), nil
	}
	if given.JWT, err = subsClaim(memberSubs); err != nil {
		return allowed{}, err
	}
	l.pace.SetLimit(agentRate)
	return memberMay(given.Nkey), nil
}

// user admits a user by a token, or by a login at a provider.
func (d hubAuth) user(id uint64, given *nats.ClientOpts, nonce []byte) (allowed, error) {
	gets, err := d.users.login(d.s.ctx, d.s.state.Load(), given.Username, given.Password)
	if err == nil {
		err = verify(given.Nkey, d.s.state.Load().CertSHA256(), nonce, given.Sig)
	}
	if aerr := d.users.auditLogin(gets, given.Username, d.s.remote(id), err); err != nil || aerr != nil {
		return allowed{}, fmt.Errorf("bus: admitting: %w: %w", ErrSecret, errors.Join(err, aerr))
	}
	l, err := d.s.note(id, given.Nkey, given.Username)
	if err != nil {
		return allowed{}, err
	}
	d.s.give(l, gets)
	if given.Username == loginOIDC {
		return loginMay(given.Nkey), nil
	}
	return userMay(given.Nkey), nil
}

// remote returns the address at the other end of a link; nil where it has ended.
func (s *Server) remote(id uint64) net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.links[id]; l != nil {
		return l.outer.RemoteAddr()
	}
	return nil
}

// give records who has a link, and sets its pace to that of an operator.
func (s *Server) give(l *link, to access.Given) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.given = to
	l.pace.SetLimit(operatorRate)
	l.pace.SetBurst(operatorBurst)
}

// subsClaim returns a JWT that limits the subscriptions of one connection. The
// server has that limit only for users with a JWT, so one is made with a throwaway key.
func subsClaim(most int64) (string, error) {
	account, err := nkeys.CreateAccount()
	if err != nil {
		return "", fmt.Errorf("bus: admitting: %w", err)
	}
	user, err := newIdentity()
	if err != nil {
		return "", err
	}
	claims := jwt.NewUserClaims(user.pub)
	claims.Limits.Subs = most
	text, err := claims.Encode(account)
	if err != nil {
		return "", fmt.Errorf("bus: admitting: %w", err)
	}
	return text, nil
}

// note records the owner of a link, and limits the links of one owner, and those of agents.
func (s *Server) note(id uint64, key, privilege string) (*link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.links[id]
	if l == nil || l.owner != "" {
		return nil, fmt.Errorf("bus: admitting: another client owns the link: %w", ErrSecret)
	}
	same, agents := 0, 0
	for _, other := range s.links {
		if other.owner == key {
			same++
		}
		if other.agent {
			agents++
		}
	}
	if privilege == PrivilegeAgent && agents >= s.front.connections-hubReserved {
		return nil, errors.New("bus: admitting: too many agents are connected")
	}
	if same >= linksOfKey {
		return nil, fmt.Errorf("bus: admitting: %d connections have this key: %w", same, ErrSecret)
	}
	l.letIn()
	l.owner, l.agent = key, privilege == PrivilegeAgent
	return l, nil
}
