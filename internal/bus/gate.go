package bus

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"thru/internal/access"
	"thru/internal/fault"
)

// mayMinor is the wire minor from which agents limit a request to the privileges of its user.
const mayMinor = 2

// need returns the action that a verb is, and whether each request is logged: not those that only accompany others.
// A verb that is not listed needs all rights.
func need(verb string) (a access.Action, logged bool) {
	switch verb {
	case Hello.name, Clock.name, verbPart, listHosts.name:
		return access.View, false
	case Facts.name, Knobs.name:
		return access.View, true
	case Answer.name, Reserve.name, Start.name, Collect.name, Release.name, Observe.End.name, Watch.End.name, Samples.name, Probe.name:
		return access.Measure, false
	case Prepare.name, Observe.Begin.name, Reflect.name, Pairs.name:
		return access.Measure, true
	case Guests.name, Watch.Begin.name:
		return access.Inventory, true
	case CapturePart.name:
		return access.Capture, true
	case Tune.name, Alter.name, Revert.name, Rollback.name, TuneEnd.name:
		return access.Tune, true
	case Disk.End.name, File.End.name:
		return access.Files, false
	case Disk.Begin.name, File.Begin.name, FileSize.name, FileRemove.name:
		return access.Files, true
	case forgetHost.name:
		return access.Forget, true
	}
	return access.Grant, true
}

// member is a connection of a user or an operator.
type member struct {
	given access.Given
	from  net.Addr
}

// member returns the user or operator that has a key; ok is false if it is not connected.
func (s *Server) member(key string) (m member, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.links {
		if l.owner == key && !l.agent {
			return member{l.given, l.outer.RemoteAddr()}, true
		}
	}
	return member{}, false
}

// who returns the user that has a key, as it is now: tokens expire and are revoked while their users are connected.
func (r *Registry) who(key string) (member, error) {
	if r.conf.Hub == nil { // the NATS server has admitted the key as an operator's
		m := member{given: bearer()}
		m.given.Name = key
		return m, nil
	}
	m, ok := r.conf.Hub.server.member(key)
	if !ok {
		return m, fault.Failf("", "bus: the controller does not know the connection: %w", ErrSecret)
	}
	var err error
	if m.given.SHA256 != "" {
		m.given, err = r.conf.Hub.users.find(m.given.SHA256)
	}
	return m, err
}

// whoOf returns the user of a client of the registry.
func (r *Registry) whoOf(client string) (member, error) {
	key, _, _ := strings.Cut(client, "-")
	return r.who(key)
}

// audit writes what a user wanted, and the decision. The error is the decision, or that of the log: what cannot be
// logged is not done.
func (r *Registry) audit(m member, verb string, hosts []string, decision error) error {
	if _, logged := need(verb); r.conf.Hub == nil || decision == nil && !logged {
		return decision
	}
	if err := r.conf.Hub.users.audit(m.given.Identity(), m.from, verb, hosts, decision); decision == nil {
		return err
	}
	return decision
}

// ask passes a request of a user on to a host, if the user may make it: thru.ask.AGENT.OPERATOR.RUN.VERB.
func (r *Registry) ask(m *nats.Msg) {
	t := tokens(m.Subject, 6)
	if t == nil || !validKey(t[2]) {
		return
	}
	agent, verb := t[2], t[5]
	who, ok := operatorOf(t[3], t[4])
	if !ok {
		return
	}
	if verb == verbBye || verb == verbAgain { // they have no reply, and concern only the user's own
		r.nc.Publish(toSubject(agent, who, verb), m.Data)
		return
	}
	if !strings.HasPrefix(m.Reply, reSubject(who, agent, wordReply+".")) || tokens(m.Reply, 7) == nil {
		return
	}
	l := r.login(who)
	if l == nil {
		r.answers.refuse(m.Reply, errFull)
		return
	}
	if err := l.begin(); err != nil {
		r.answers.refuse(m.Reply, fault.Failf("", "bus: %s: %w", verb, err))
		return
	}
	go func() {
		defer l.done()
		r.pass(who, agent, verb, m)
	}()
}

// pass decides about a request, and passes it on or answers it.
func (r *Registry) pass(who operatorID, agent, verb string, m *nats.Msg) {
	h, online := r.host(agent)
	user, err := r.who(who.key)
	if err == nil && h.Name != "" {
		err = mayAsk(user.given.Identity(), h, verb)
	}
	if (online || err != nil) && r.conf.Hub.users.first(m.Reply) {
		err = r.audit(user, verb, []string{named(h)}, err)
	}
	switch {
	case err != nil:
		r.answers.refuse(m.Reply, err)
	case !online:
		r.nc.PublishMsg(&nats.Msg{Subject: m.Reply, Header: nats.Header{"Status": {"503"}}}) // as a server says that nobody listens
	default:
		header := nats.Header{headerMay: {strings.Join(privilegesOf(user.given.Role), ",")}}
		if patience := m.Header.Get(headerPatience); patience != "" {
			header.Set(headerPatience, patience)
		}
		r.nc.PublishMsg(&nats.Msg{Subject: toSubject(agent, who, verb), Reply: m.Reply, Header: header, Data: m.Data})
	}
}

// mayAsk returns why a user may not make a request to a host; nil: it may.
func mayAsk(who access.Identity, h Host, verb string) error {
	action, _ := need(verb)
	if err := who.May(action, h.Name, h.Labels); err != nil {
		return err
	}
	if h.Online && h.WireMinor < mayMinor && !who.Role.May(access.Files) {
		return fault.Failf("upgrade thru there", "bus: you are %s, and thru at %s is too old to limit what you may", who, fault.Named(h.Name))
	}
	return nil
}

// privilegesOf returns the privileges of a role at a host, in words of the wire.
func privilegesOf(role access.Role) (all []string) {
	for _, a := range role.Actions() {
		all = append(all, string(a))
	}
	return all
}

// host returns a host by its id, and whether it is online and may use its name. It has a name if it was heard.
func (r *Registry) host(id string) (Host, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.hosts[id]
	if e == nil {
		return Host{ID: id}, false
	}
	h := e.Host
	h.Online = e.online(time.Now())
	return h, h.Online && h.Refused == ""
}

// named returns the name of a host for the log.
func named(h Host) string { return cmp.Or(h.Name, h.ID) }

// overhear logs a request that an operator with the join string has sent to a host.
func (r *Registry) overhear(m *nats.Msg) {
	t := tokens(m.Subject, 6)
	if t == nil || !r.conf.Hub.users.first(m.Reply) {
		return
	}
	h, _ := r.host(t[2])
	if user, err := r.who(t[3]); err == nil {
		_ = r.audit(user, t[5], []string{named(h)}, nil) // the host has the request already
	}
}

// The verbs of a registry about users.
var (
	listTokens  = Verb[Empty, TokensReply]{name: "tokens", since: mayMinor, wait: factsTime}
	addToken    = Verb[TokenRequest, TokenReply]{name: "token", since: mayMinor, wait: factsTime}
	revokeToken = Verb[RevokeRequest, Empty]{name: "revoke", since: mayMinor, wait: factsTime}
	newSession  = Verb[Empty, TokenReply]{name: "session", since: mayMinor, wait: factsTime}
)

// TokensReply lists the tokens of a controller, without their hashes.
type TokensReply struct {
	Tokens access.Grants `json:"tokens"`
}

// TokenRequest asks a registry for a token. The time from now is its life; 0: it does not expire.
type TokenRequest struct {
	Name   string        `json:"name"`
	Role   access.Role   `json:"role"`
	Labels access.Labels `json:"labels,omitempty"`
	ForNs  int64         `json:"for_ns,omitzero"`
}

// TokenReply has the join string with a new token.
type TokenReply struct {
	Join  string       `json:"join_string"`
	Given access.Given `json:"given"`
}

// RevokeRequest asks a registry to revoke the tokens of a name.
type RevokeRequest struct {
	Name string `json:"name"`
}

// may returns the user of a client, if its role permits an action in the whole fleet.
func (r *Registry) may(client string, a access.Action) (member, error) {
	m, err := r.whoOf(client)
	switch {
	case err != nil:
		return m, err
	case r.conf.Hub == nil && a == access.Grant:
		return m, fault.Usagef("change the configuration of its servers: thru control --nats-config", "bus: over a NATS cluster its servers decide who may what")
	}
	return m, m.given.Identity().MayAll(a)
}

func (r *Registry) answerTokens(_ context.Context, client string, _ Empty) (TokensReply, error) {
	m, err := r.may(client, access.Grant)
	if err := r.audit(m, listTokens.name, nil, err); err != nil {
		return TokensReply{}, err
	}
	return TokensReply{r.conf.Hub.users.list()}, nil
}

func (r *Registry) answerToken(_ context.Context, client string, q TokenRequest) (TokenReply, error) {
	m, err := r.may(client, access.Grant)
	if err == nil {
		_, err = access.ParseRole(string(q.Role)) // no token has the rights of the join string
	}
	given := access.Given{Name: q.Name, Role: q.Role, Labels: q.Labels, Via: access.ByToken, By: m.given.Name}
	if q.ForNs > 0 {
		given.Until = time.Now().Add(time.Duration(q.ForNs)).UTC().Truncate(time.Second)
	}
	if err := r.audit(m, fmt.Sprintf("%s %s: %s %s", addToken, q.Name, q.Role, q.Labels), nil, err); err != nil {
		return TokenReply{}, err
	}
	return r.give(given)
}

// give makes a token and its join string.
func (r *Registry) give(given access.Given) (TokenReply, error) {
	hub := r.conf.Hub
	secret, err := hub.users.add(given)
	if err != nil {
		return TokenReply{}, err
	}
	j := hub.server.JoinFor(PrivilegeUser, nil)
	j.Secret = secret
	return TokenReply{j.String(), given}, nil
}

func (r *Registry) answerRevoke(_ context.Context, client string, q RevokeRequest) (Empty, error) {
	m, err := r.may(client, access.Grant)
	if err := r.audit(m, fmt.Sprintf("%s %s", revokeToken, q.Name), nil, err); err != nil {
		return Empty{}, err
	}
	return Empty{}, r.conf.Hub.users.revoke(q.Name)
}

// answerSession gives a user whom a provider has named a token for some hours.
func (r *Registry) answerSession(_ context.Context, client string, _ Empty) (TokenReply, error) {
	m, err := r.whoOf(client)
	if err == nil && (m.given.Via != access.ByOIDC || m.given.SHA256 != "") {
		err = fault.Usagef("log in: thru login", "bus: only a login by a provider gives a token")
	}
	if err := r.audit(m, newSession.name, nil, err); err != nil {
		return TokenReply{}, err
	}
	m.given.Until = time.Now().Add(sessionTime).UTC().Truncate(time.Second)
	return r.give(m.given)
}

// Tokens returns the tokens of the controller, without their hashes.
func (f *Fleet) Tokens(ctx context.Context) (access.Grants, error) {
	r, err := Call(ctx, f.registry, listTokens, Empty{})
	return r.Tokens, f.registryError(err)
}

// AddToken asks the controller for a token.
func (f *Fleet) AddToken(ctx context.Context, q TokenRequest) (TokenReply, error) {
	r, err := Call(ctx, f.registry, addToken, q)
	return r, f.registryError(err)
}

// RevokeToken revokes the tokens of a name at once.
func (f *Fleet) RevokeToken(ctx context.Context, name string) error {
	_, err := Call(ctx, f.registry, revokeToken, RevokeRequest{name})
	return f.registryError(err)
}

// StartSession exchanges the ID token of the provider that a join string names for a join string with a token of the controller.
func StartSession(ctx context.Context, j Join, idToken string, c FleetConfig) (Join, access.Given, error) {
	with := j
	with.Privilege, with.Secret = loginOIDC, Secret(idToken)
	c.Join = &with
	f, err := DialFleet(ctx, c)
	if err != nil {
		return Join{}, access.Given{}, err
	}
	defer f.Close()
	r, err := Call(ctx, f.registry, newSession, Empty{})
	if err != nil {
		return Join{}, access.Given{}, f.registryError(err)
	}
	fresh, err := ParseJoin(r.Join)
	fresh.OIDC = j.OIDC
	return fresh, r.Given, err
}
