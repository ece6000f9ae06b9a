package bus

import "thru/internal/watch/record"

// A watch measures pairs of agents all the time by small packets (package stamp). Its client names it by 22 to 64 characters A-Z2-7 that nobody can guess:
// later clients that know them have the same watch. An agent holds it for as long as the last request said, also without a client, and ends it then.

// Limits of the watches of an agent.
const (
	MostPairs = 1000            // sessions that one watch sends, and that it has answered, at one agent
	MostLease = 8 * 24 * 3600e9 // ns that a watch lives on without a request
	LeastGap  = 100e6           // ns between two packets of a session
)

// ReflectRequest makes the agent answer the packets of one pair. Repeated, it renews the watch and has the same reply.
type ReflectRequest struct {
	Watch      string `json:"watch"`
	LeaseNs    int64  `json:"lease_ns"`
	From       string `json:"from"` // names of the pair, as in the plan
	To         string `json:"to"`
	IntervalNs int64  `json:"interval_ns"` // between two packets; 0: the pair is answered no more
}

// ReflectReply says where the packets must go.
type ReflectReply struct {
	Port  int    `json:"port"`
	SSID  int    `json:"ssid"`
	Token string `json:"token"` // the key of both ends
}

// PairsRequest makes the agent send the packets of these pairs, and no others of the watch. Repeated, it renews the watch, and pairs that have not changed go on.
type PairsRequest struct {
	Watch   string `json:"watch"`
	LeaseNs int64  `json:"lease_ns"` // 0: the watch ends, and with it samples that were not fetched
	Seed    uint64 `json:"seed"`     // spreads the packets over the interval
	Pairs   []Pair `json:"pairs"`
}

// Pair is one session that an agent sends.
type Pair struct {
	From       string `json:"from"`
	To         string `json:"to"`
	Target     string `json:"target"` // ADDRESS:PORT of the other agent's reflector
	SSID       int    `json:"ssid"`
	Token      string `json:"token"`
	IntervalNs int64  `json:"interval_ns"`
	BoundNs    int64  `json:"clock_error_ns,omitempty"` // how far the clocks of both ends may be apart; 0: not known, no one-way delays
}

// PairsReply says which pairs are not measured.
type PairsReply struct {
	Refused []RefusedPair `json:"refused,omitempty"`
}

// RefusedPair is a pair that the agent does not measure.
type RefusedPair struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

// SamplesRequest fetches the samples of a watch, oldest first. It renews the watch.
type SamplesRequest struct {
	Watch   string `json:"watch"`
	LeaseNs int64  `json:"lease_ns"`
	Stored  int64  `json:"stored,omitempty"` // number of the last sample that the client has stored: the agent drops all up to it
}

// SamplesReply has the next samples.
type SamplesReply struct {
	Samples []Numbered `json:"samples"`
	More    bool       `json:"more,omitempty"`            // there are further ones
	Dropped int64      `json:"dropped_samples,omitempty"` // that nobody fetched before the spool was full
}

// Numbered is a sample and its number, which grows.
type Numbered struct {
	Number int64         `json:"number"`
	Sample record.Sample `json:"sample"`
}

// ValidWatch reports whether a name can be that of a watch.
func ValidWatch(name string) bool { return validID(name) }

// NewWatch returns a name for a new watch.
func NewWatch() string { return newID() }
