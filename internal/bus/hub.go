package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/jwt/v2"
	nats "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"thru/internal/fault"
)

// Bounds of a hub.
const (
	hubConnections = 2048
	hubHandshakes  = 256
	hubSubs        = 4096 // an operator has one for each agent
	memberSubs     = 8    // of an agent, which has four
	hubReserved    = 256  // places that agents do not take, so that operators get in
	hubPending     = 128 << 20
	linksOfKey     = 8 // connections of one identity; more are refused
	agentRate      = 4 << 20
	agentBurst     = 16 << 20 // bytes that an agent may send at once: a long result
	operatorRate   = 16 << 20 // of requests to many agents
	operatorBurst  = 8 << 20  // each byte may wait once for each agent: alive is heard by all
)

// HubConfig says where and for whom `thru control` listens.
type HubConfig struct {
	Addrs  []string // HOST:PORT to listen at; ":5200" means all addresses
	Device string   // device or VRF to bind to (Linux)
	State  *State   // identity; nil: a fresh one in memory
	Name   string   // put into join strings; may be empty
}

// Hub is the bus of a fleet: an embedded NATS server to which agents and
// operators dial. It moves messages alone; a Registry on it knows the hosts.
type Hub struct {
	server *Server
}

// OpenHub starts a hub. The context bounds the start alone. Addresses that
// cannot be used are warnings where another one can, else an error with a hint.
func OpenHub(ctx context.Context, c HubConfig) (*Hub, []string, error) {
	conf := ServerConfig{Addrs: c.Addrs, Device: c.Device, State: c.State, Name: c.Name}
	f := front{
		door:        func(s *Server) nats.Authentication { return hubDoorman{s} },
		connections: hubConnections, handshakes: hubHandshakes, subs: hubSubs, pending: hubPending, pingsOut: pingsOut,
	}
	server, warnings, err := open(ctx, conf, f)
	if err != nil {
		return nil, nil, err
	}
	return &Hub{server}, warnings, nil
}

// Join returns what lets in with a privilege: PrivilegeAgent or PrivilegeOperate.
func (h *Hub) Join(privilege string) (Join, error) {
	if privilege != PrivilegeAgent && privilege != PrivilegeOperate {
		return Join{}, fault.Usagef("name agent or operate", "bus: a controller has no privilege %q", privilege)
	}
	return h.server.JoinFor(privilege, nil), nil
}

// Close ends all connections, and returns when nothing of the hub runs any more.
func (h *Hub) Close() { h.server.Close() }

// hubDoorman decides who gets to the bus of a fleet: who has the secret of the
// privilege and proves to hold the key it goes by. The user name says which
// privilege.
type hubDoorman struct{ s *Server }

// Check implements the server's Authentication.
func (d hubDoorman) Check(c nats.ClientAuthentication) bool {
	given := c.GetOpts()
	if d.s.isAgent(given.Username, given.Password) {
		return true
	}
	given.JWT = "" // not ours: what it says would bound the connection
	may, err := d.admit(c.GetID(), given, c.GetNonce())
	if err != nil {
		select {
		case <-time.After(loginDelay):
		case <-d.s.ctx.Done():
		}
		return false
	}
	// The account is named so that the server reads the bounds of this one connection.
	c.RegisterUser(&nats.User{Account: d.s.nats.GlobalAccount(), Username: given.Nkey, Permissions: &nats.Permissions{
		Publish:   &nats.SubjectPermission{Allow: may.publish},
		Subscribe: &nats.SubjectPermission{Allow: may.subscribe},
	}})
	return true
}

// admit checks secret and signature, and returns what the key may.
func (d hubDoorman) admit(id uint64, given *nats.ClientOpts, nonce []byte) (allowed, error) {
	known := given.Username == PrivilegeAgent || given.Username == PrivilegeOperate
	if !known || !d.s.conf.State.secretOf(given.Username).matches(given.Password) {
		return allowed{}, fmt.Errorf("bus: letting in: %w", ErrSecret)
	}
	if err := verify(given.Nkey, d.s.conf.State.CertSHA256(), nonce, given.Sig); err != nil {
		return allowed{}, fmt.Errorf("bus: letting in: %w: %w", ErrSecret, err)
	}
	l, err := d.s.note(id, given.Nkey, given.Username)
	if err != nil {
		return allowed{}, err
	}
	if given.Username == PrivilegeOperate {
		l.pace.SetLimit(operatorRate)
		l.pace.SetBurst(operatorBurst)
		return operatorMay(given.Nkey), nil
	}
	if given.JWT, err = subsClaim(memberSubs); err != nil {
		return allowed{}, err
	}
	l.pace.SetLimit(agentRate)
	return memberMay(given.Nkey), nil
}

// subsClaim bounds the subscriptions of one connection. The server has that for
// users who bring a JWT, so one is made up, and signed by nobody in particular.
func subsClaim(most int64) (string, error) {
	account, err := nkeys.CreateAccount()
	if err != nil {
		return "", fmt.Errorf("bus: letting in: %w", err)
	}
	user, err := newIdentity()
	if err != nil {
		return "", err
	}
	claims := jwt.NewUserClaims(user.pub)
	claims.Limits.Subs = most
	text, err := claims.Encode(account)
	if err != nil {
		return "", fmt.Errorf("bus: letting in: %w", err)
	}
	return text, nil
}

// note keeps whose a link is, and bounds how many one has, and how many are agents'.
func (s *Server) note(id uint64, key, privilege string) (*link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.links[id]
	if l == nil || l.owner != "" {
		return nil, fmt.Errorf("bus: letting in: the link is another's: %w", ErrSecret)
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
		return nil, errors.New("bus: letting in: the places for agents are taken")
	}
	if same >= linksOfKey {
		return nil, fmt.Errorf("bus: letting in: %d connections have this key: %w", same, ErrSecret)
	}
	l.letIn()
	l.owner, l.agent = key, privilege == PrivilegeAgent
	return l, nil
}
