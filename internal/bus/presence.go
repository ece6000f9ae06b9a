package bus

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"thru/internal/fault"
)

// announceGap is the least time between two presence messages that the registry accepts.
const announceGap = time.Second

// announce sends a presence every presenceEvery, and when it is woken.
func (p *Post) announce() {
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-p.wake:
		case <-p.ctx.Done():
			return
		}
		if p.nc.IsConnected() {
			p.present(p.nc)
		}
		select { // a wake-up meanwhile is covered by the next presence
		case <-time.After(announceGap):
		case <-p.ctx.Done():
			return
		}
		tick.Reset(presenceEvery - announceGap)
	}
}

// presence returns the current presence.
func (p *Post) presence(leaving bool) Presence {
	c := p.conf
	m := Presence{
		Instance: p.instance, StartedNs: p.started.UnixNano(), Name: c.Name, Labels: *p.labels.Load(), Thru: c.Version,
		WireMajor: WireMajor, WireMinor: WireMinor, Addrs: c.Addrs, DataAddrs: c.DataAddrs, CPUs: c.CPUs, Leaving: leaving,
	}
	if c.Busy != nil && !leaving {
		m.Busy = printable(c.Busy(), maxSentence)
	}
	if c.Spool != nil {
		m.Waiting, m.Problem = c.Spool()
	}
	return m
}

// roll answers a roll call, after a random part of rollSpread.
func (p *Post) roll(*nats.Msg) {
	time.AfterFunc(spread(rollSpread), p.Announce)
}

// present sends the presence once.
func (p *Post) present(nc *nats.Conn) {
	if b, err := json.Marshal(p.presence(false)); err == nil {
		nc.Publish(hereSubject(p.ID()), b)
	}
}

// here handles a presence with this agent's key: if a newer process has the same
// identity, this one leaves for good.
func (p *Post) here(m *nats.Msg) {
	other, err := parsePresence(m.Data)
	if err != nil || other.Instance == p.instance || other.Leaving || !p.olderThan(other) {
		return
	}
	p.setStatus(func(s *Status) {
		s.Ended, s.Connected = true, false
		hint := "end one of the two; if the machine was cloned, run `thru serve --rotate` at one of them"
		if p.conf.NATS != nil {
			hint = "end one of the two, or make a key for each (thru control --nats-key FILE) and add it to the NATS server"
		}
		s.Err = fault.Failf(hint,
			"bus: another process with this agent's identity has joined %s as host %s: %w", p.uplink.where, other.Name, ErrClosed)
	})
	go p.Close()
}

// olderThan decides which of two processes yields; both decide the same.
func (p *Post) olderThan(other Presence) bool {
	own := p.started.UnixNano()
	return own < other.StartedNs || own == other.StartedNs && strings.Compare(p.instance, other.Instance) < 0
}

// ackMessage is a controller's message about a result, or about the host's name.
type ackMessage struct {
	Controller string `json:"controller,omitempty"` // to which the parts go
	Next       int    `json:"next_bytes"`           // offset of the next part
	Done       bool   `json:"done,omitempty"`       // the result is stored
	Error      string `json:"error,omitempty"`      // why it is not
	Refused    string `json:"refused,omitempty"`    // why the host may not be used under its name; empty: it may
}

// Last tokens of the subjects by which a controller refuses a name, and passes on the
// presence of another process with the agent's key.
const (
	wordName = "name"
	wordHere = "here"
)

// ack handles a message of a controller.
func (p *Post) ack(m *nats.Msg) {
	t := tokens(m.Subject, 4)
	var a ackMessage
	switch {
	case m.Header.Get("Status") == "503": // from the server: no subscriber
		a.Error = "no controller is connected"
	case len(m.Data) > presenceBytes || decode(m.Data, &a) != nil:
		return
	}
	if t == nil {
		return
	}
	if t[3] == wordHere {
		p.here(m)
		return
	}
	if t[3] == wordName {
		why := printable(a.Refused, maxSentence)
		p.setStatus(func(s *Status) {
			if s.Err = nil; why == "" { // the name is free now
				return
			}
			s.Err = fault.Failf("choose another name with --name; if the host that owns it no longer exists: thru hosts CONTROLLER --forget "+p.conf.Name, "bus: %s refuses the name %s: %s", p.uplink.where, p.conf.Name, why)
		})
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.acks[t[3]] <- a: // nil where nothing waits for it
	default:
	}
}

// errNotConnected is why a result is not delivered now.
var errNotConnected = errors.New("not connected")
