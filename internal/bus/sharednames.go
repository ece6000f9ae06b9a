package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"thru/internal/fault"
)

// claimsAtOnce bounds the concurrent claims of a registry.
const claimsAtOnce = 32

// Headers and values of a deleted entry of a key-value bucket (docs.nats.io, ADR-8).
const (
	headerOperation = "KV-Operation"
	operationDelete = "DEL"
)

// sharedNames are the owners of names, as all controllers of a NATS cluster know them.
type sharedNames struct{ js jetStream }

// claim gives a name to a key unless another has it, and returns the pin of its owner.
func (s sharedNames) claim(ctx context.Context, name string, own pin) (pin, error) {
	for {
		owner, seq, err := s.owner(ctx, name)
		if err != nil || owner.Key != "" {
			return owner, err
		}
		switch _, err := s.js.put(ctx, nameSubject+name, nil, jsonOf(own), seq); {
		case err == nil:
			return own, nil
		case !errors.Is(err, errChanged):
			return pin{}, err
		}
	}
}

// owner returns the owner of a name, without a key where it is free, and the sequence
// number of its entry.
func (s sharedNames) owner(ctx context.Context, name string) (owner pin, seq uint64, err error) {
	e, err := s.js.last(ctx, streamNames, nameSubject+name)
	switch {
	case errors.Is(err, errNoEntry):
		return pin{}, 0, nil
	case err != nil:
		return pin{}, 0, err
	case e.header(headerOperation) != "" || json.Unmarshal(e.Data, &owner) != nil || !validKey(owner.Key):
		return pin{}, e.Seq, nil
	}
	return owner, e.Seq, nil
}

// release frees a name if that key has it; an empty key is any. It reports whether it did.
func (s sharedNames) release(ctx context.Context, name, key string) (bool, error) {
	for {
		owner, seq, err := s.owner(ctx, name)
		if err != nil || owner.Key == "" || key != "" && owner.Key != key {
			return false, err
		}
		if _, err = s.js.put(ctx, nameSubject+name, nats.Header{headerOperation: {operationDelete}}, nil, seq); !errors.Is(err, errChanged) {
			return err == nil, err
		}
	}
}

// twin is what controllers with the same key tell each other.
type twin struct {
	Instance  string `json:"instance"`
	StartedNs int64  `json:"started_ns"`
}

// errOpening is the reason until the first attempt to share has ended.
var errOpening = errors.New("not tried yet")

// join shares names with the other controllers of a cluster, and watches for another one with
// this key.
func (r *Registry) join(ctx context.Context) error {
	r.alone = errOpening
	for subject, f := range map[string]nats.MsgHandler{nameSubject + ">": r.heed, ackSubject(r.key, wordHere): r.meet} {
		sub, err := r.nc.Subscribe(subject, f) // an old configuration of the cluster denies it: then nothing comes
		if r.subs = append(r.subs, sub); err != nil {
			r.Close()
			return fmt.Errorf("bus: starting the registry: %w", err)
		}
	}
	r.show()
	r.wg.Go(r.share)
	select {
	case <-r.tried:
	case <-ctx.Done():
	}
	return nil
}

// show tells another controller with this key that this one is there.
func (r *Registry) show() {
	if r.conf.NATS != nil {
		r.nc.Publish(ackSubject(r.key, wordHere), jsonOf(r.twin))
	}
}

// meet ends this controller where a newer one has its key: both would store each result.
func (r *Registry) meet(m *nats.Msg) {
	var other twin
	own := r.twin
	if decode(m.Data, &other) != nil || other.Instance == own.Instance || !validID(other.Instance) {
		return
	}
	if own.StartedNs > other.StartedNs || own.StartedNs == other.StartedNs && own.Instance > other.Instance {
		r.show() // the other one is to leave
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.lost:
	default:
		close(r.lost)
	}
}

// Lost is closed when another controller with this key has begun: this one is to end.
func (r *Registry) Lost() <-chan struct{} { return r.lost }

// Err returns why this controller is to end; nil where it is not.
func (r *Registry) Err() error {
	select {
	case <-r.lost:
		return fault.Failf("end one of the two, or make a key for each (thru control --nats-key FILE) and add it to the NATS servers",
			"bus: another controller with the key %s has joined: this one ends, so that no result is stored twice: %w", r.key, ErrClosed)
	default:
		return nil
	}
}

// Alone returns why this controller shares no names and runs with others; nil where it does.
func (r *Registry) Alone() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conf.NATS == nil {
		return errNoJetStream
	}
	return r.alone
}

// share opens the streams that the controllers of a cluster share, and tries again until
// that succeeds. Without them, a name belongs to the first key at each controller.
func (r *Registry) share() {
	for begun := time.Now(); ; {
		j := jetStream{r.nc}
		err := j.open(r.ctx)
		if err == nil {
			err = r.merge(sharedNames{j})
		}
		if denied := r.nc.LastError(); err != nil && errors.Is(denied, nats.ErrPermissionViolation) {
			err = r.conf.NATS.explain(r.key, denied)
		}
		if errors.Is(err, context.DeadlineExceeded) && time.Since(begun) < sharedAgain {
			continue // a cluster that has just started elects its leader
		}
		r.mu.Lock()
		first := r.alone == errOpening
		if r.alone = err; err == nil {
			r.shared = &sharedNames{j}
		}
		r.mu.Unlock()
		if first {
			close(r.tried)
		}
		if err == nil {
			return
		}
		select {
		case <-time.After(sharedAgain):
		case <-r.ctx.Done():
			return
		}
	}
}

// merge adds the names of this controller to the shared ones, and takes those of the
// others. A shared name is the one that counts.
func (r *Registry) merge(s sharedNames) error {
	all, err := s.js.subjects(r.ctx, streamNames, nameSubject, "")
	if err != nil {
		return err
	}
	for _, name := range all {
		owner, _, err := s.owner(r.ctx, name)
		if err != nil {
			return err
		}
		if owner.Key != "" && validName(name) {
			r.conf.Book.bind(name, owner)
		}
	}
	for name, own := range r.conf.Book.pins() {
		if owner, err := s.claim(r.ctx, name, own); err != nil {
			return err
		} else if owner.Key != own.Key {
			r.conf.Book.bind(name, owner)
		}
	}
	return nil
}

// claim gives a name to an agent: at once where this controller knows that the agent has it,
// else when the cluster has answered. Then it handles the presence again.
func (r *Registry) claim(id string, p Presence, again func(refused string, err error)) {
	r.mu.Lock()
	s, e := r.shared, r.hosts[id]
	if s == nil || r.conf.Book.owner(p.Name) == id {
		r.mu.Unlock()
		again(r.conf.Book.Claim(p.Name, id, p.Labels, time.Now()))
		return
	}
	if e == nil || e.claiming || r.ctx.Err() != nil {
		r.mu.Unlock()
		return
	}
	e.claiming = true
	r.mu.Unlock()
	go func() {
		r.claims <- struct{}{}
		defer func() { <-r.claims }()
		owner, err := s.claim(r.ctx, p.Name, pin{id, time.Now(), p.Labels})
		refused := ""
		r.naming.Lock()
		defer r.naming.Unlock()
		if err == nil {
			previous := r.conf.Book.nameOf(id)
			r.conf.Book.bind(p.Name, owner)
			if refused, err = r.conf.Book.Claim(p.Name, id, p.Labels, time.Now()); err == nil && refused == "" && previous != "" && previous != p.Name {
				_, err = s.release(r.ctx, previous, id)
			}
		}
		again(refused, err)
		r.mu.Lock()
		e.claiming = false
		r.mu.Unlock()
	}()
}

// heed removes a name that another controller was asked to forget.
func (r *Registry) heed(m *nats.Msg) {
	if m.Header.Get(headerOperation) != operationDelete {
		return
	}
	go func() {
		name := m.Subject[len(nameSubject):]
		owner, _, err := sharedNames{jetStream{r.nc}}.owner(r.ctx, name)
		if known := r.conf.Book.owner(name); err == nil && known != "" && owner.Key != known {
			r.forget(name)
		}
	}()
}
