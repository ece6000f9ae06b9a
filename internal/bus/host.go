package bus

import (
	"errors"
	"fmt"
	"time"
)

// Host is an agent of a fleet as the registry knows it. For an agent not heard
// since the registry started, only ID, Name and SeenAt are set.
type Host struct {
	ID        string            `json:"id"`   // the agent's public nkey
	Name      string            `json:"name"` // its name in the fleet
	Labels    map[string]string `json:"labels,omitempty"`
	Thru      string            `json:"thru_version,omitempty"`
	WireMajor int               `json:"wire_major,omitzero"`
	WireMinor int               `json:"wire_minor,omitzero"`
	Addrs     []string          `json:"addrs,omitempty"`      // of the host, without loopback
	DataAddrs []string          `json:"data_addrs,omitempty"` // addresses that its operator wants for data connections
	CPUs      int               `json:"cpus,omitzero"`
	SeenAt    time.Time         `json:"seen_at,omitzero"` // when it was last heard
	Online    bool              `json:"online"`
	Busy      string            `json:"busy,omitempty"`    // running tests and their clients; empty: idle
	Waiting   int               `json:"waiting,omitzero"`  // results at the agent that no controller has yet
	Problem   string            `json:"problem,omitempty"` // why those are not delivered, in the agent's words
	Refused   string            `json:"refused,omitempty"` // why it may not be used under this name; empty: it may
}

// Spooled is a result that an agent keeps until a controller has it.
type Spooled struct {
	Agent string // public nkey of the agent that measured; set by the receiver
	Name  string // name of the agent, or empty; set by the receiver
	ID    string // of the result at its agent: 1 to 128 characters, printable ASCII without spaces and slashes
	Body  []byte // at most spoolBytes
}

// Presence is what an agent announces about itself: at its start, on a roll call,
// and every presenceEvery.
type Presence struct {
	Instance  string            `json:"instance"`   // random for each start of the agent
	StartedNs int64             `json:"started_ns"` // since 1970, by the agent's clock
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels,omitempty"`
	Thru      string            `json:"thru_version,omitempty"`
	WireMajor int               `json:"wire_major"`
	WireMinor int               `json:"wire_minor"`
	Addrs     []string          `json:"addrs,omitempty"`
	DataAddrs []string          `json:"data_addrs,omitempty"`
	CPUs      int               `json:"cpus,omitzero"`
	Busy      string            `json:"busy,omitempty"`
	Waiting   int               `json:"waiting,omitzero"`
	Problem   string            `json:"problem,omitempty"`
	Leaving   bool              `json:"leaving,omitempty"` // the agent ends
}

// Bounds of a presence message.
const (
	presenceBytes = 16 << 10
	maxLabels     = 32
	maxAddrs      = 64
	maxWord       = 256 // bytes of an address or a label
	maxSentence   = 1024
)

// ValidHostName reports whether a name can be that of a host of a fleet: the same
// form as the names of `thru join`.
func ValidHostName(name string) bool { return validName(name) }

// CheckLabel returns what is wrong with a label of a host.
func CheckLabel(key, value string) error {
	switch {
	case !validName(key):
		return fmt.Errorf("bus: %q is not a valid label name", key)
	case len(value) > maxWord || !plain(value):
		return fmt.Errorf("bus: the value of the label %s is too long, or has spaces or characters other than printable ASCII", key)
	}
	return nil
}

// parsePresence parses untrusted bytes. Accepted values are safe to print and to store.
func parsePresence(b []byte) (Presence, error) {
	var p Presence
	if len(b) > presenceBytes {
		return p, errors.New("bus: a presence message is too long")
	}
	if err := decode(b, &p); err != nil {
		return Presence{}, fmt.Errorf("bus: reading a presence message: %w", err)
	}
	if err := p.check(); err != nil {
		return Presence{}, err
	}
	p.Thru, p.Busy, p.Problem = printable(p.Thru, maxWord), printable(p.Busy, maxSentence), printable(p.Problem, maxSentence)
	return p, nil
}

func (p Presence) check() error {
	if !validID(p.Instance) || !validName(p.Name) || p.CPUs < 0 || p.Waiting < 0 || p.WireMajor < 0 || p.WireMinor < 0 {
		return errors.New("bus: a presence message has a name or a number that is not valid")
	}
	if len(p.Labels) > maxLabels || len(p.Addrs) > maxAddrs || len(p.DataAddrs) > maxAddrs {
		return errors.New("bus: a presence message has too many labels or addresses")
	}
	for k, v := range p.Labels {
		if err := CheckLabel(k, v); err != nil {
			return err
		}
	}
	for _, list := range [][]string{p.Addrs, p.DataAddrs} {
		for _, a := range list {
			if a == "" || len(a) > maxWord || !plain(a) {
				return errors.New("bus: a presence message has an address that is not valid")
			}
		}
	}
	return nil
}

// printable truncates a text and replaces control characters and line separators.
func printable(s string, most int) string {
	out := make([]rune, 0, min(len(s), most))
	for _, r := range s {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 {
			r = ' '
		}
		if out = append(out, r); len(out) >= most {
			break
		}
	}
	return string(out)
}

// host returns the registry entry of an agent.
func (p Presence) host(id string, seen time.Time) Host {
	return Host{
		ID: id, Name: p.Name, Labels: p.Labels, Thru: p.Thru, WireMajor: p.WireMajor, WireMinor: p.WireMinor,
		Addrs: p.Addrs, DataAddrs: p.DataAddrs, CPUs: p.CPUs, SeenAt: seen, Online: !p.Leaving,
		Busy: p.Busy, Waiting: p.Waiting, Problem: p.Problem,
	}
}

// The verbs of a registry.
var (
	listHosts  = Verb[HostsRequest, HostsReply]{name: "hosts", wait: factsTime}
	forgetHost = Verb[ForgetRequest, Empty]{name: "forget", wait: factsTime}
)

// HostsRequest asks a registry for hosts, in the order of their ids.
type HostsRequest struct {
	After string `json:"after,omitempty"` // id of the last host of the page before
}

// HostsReply is a page of hosts.
type HostsReply struct {
	Hosts  []Host `json:"hosts"`
	More   bool   `json:"more,omitempty"`
	Shares bool   `json:"shares_runs,omitempty"` // the cluster has JetStream: operators can share their runs
}

// ForgetRequest asks a registry to forget the host that has a name.
type ForgetRequest struct {
	Name string `json:"name"`
}
