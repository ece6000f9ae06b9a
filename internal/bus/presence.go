package bus

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"thru/internal/fault"
)

// announceGap is the least time between two presences, as the registry takes them.
const announceGap = time.Second

// announce says every presenceEvery, and when it is woken, that the host is here.
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
		select { // what wakes it meanwhile is told with the next
		case <-time.After(announceGap):
		case <-p.ctx.Done():
			return
		}
		tick.Reset(presenceEvery - announceGap)
	}
}

// presence is what there is to say.
func (p *Post) presence(leaving bool) Presence {
	c := p.conf
	m := Presence{
		Instance: p.instance, StartedNs: p.started.UnixNano(), Name: c.Name, Labels: c.Labels, Thru: c.Version,
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

// roll answers a roll call, at some moment of rollSpread.
func (p *Post) roll(*nats.Msg) {
	time.AfterFunc(spread(rollSpread), p.Announce)
}

// present tells the fleet once who this is.
func (p *Post) present(nc *nats.Conn) {
	if b, err := json.Marshal(p.presence(false)); err == nil {
		nc.Publish(hereSubject(p.ID()), b)
	}
}

// here hears this agent's own presence: where a newer process has the same
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
			hint = "end one of the two, or make a key for each: thru control --nats-key FILE, and let it in at the NATS server"
		}
		s.Err = fault.Failf(hint,
			"bus: another process with the identity of this agent has joined %s, as host %s: %w", p.uplink.where, other.Name, ErrClosed)
	})
	go p.Close()
}

// olderThan tells which of two processes yields; both decide alike.
func (p *Post) olderThan(other Presence) bool {
	own := p.started.UnixNano()
	return own < other.StartedNs || own == other.StartedNs && strings.Compare(p.instance, other.Instance) < 0
}

// ackMessage is what a controller says of a result, or of the host's name.
type ackMessage struct {
	Controller string `json:"controller,omitempty"` // to whom the parts go
	Next       int    `json:"next_bytes"`           // offset of the part that is wanted
	Done       bool   `json:"done,omitempty"`       // the result is kept
	Error      string `json:"error,omitempty"`      // it is not
	Refused    string `json:"refused,omitempty"`    // why the host may not be used under its name; empty: it may
}

// What stands last in the subjects by which a controller refuses a name, and
// hands on the presence of another process with the agent's key.
const (
	wordName = "name"
	wordHere = "here"
)

// ack hears a controller.
func (p *Post) ack(m *nats.Msg) {
	t := tokens(m.Subject, 4)
	var a ackMessage
	switch {
	case m.Header.Get("Status") == "503": // the server's word
		a.Error = "no controller listens"
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
			s.Err = fault.Failf("choose another with --name; if the host that has it is no more: thru hosts CONTROLLER --forget "+p.conf.Name, "bus: %s refuses the name %s: %s", p.uplink.where, p.conf.Name, why)
		})
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.acks[t[3]] <- a: // nil where nobody waits any more
	default:
	}
}

// errNotConnected is why a result is not delivered now.
var errNotConnected = errors.New("not connected")
