// Package bus is the control plane: typed messages over NATS between the
// controller and the agents that it measures with. The agent embeds the
// server; a client gets in with a join string.
//
// docs/wire.md describes subjects, messages and how versions meet.
//
// # A verb
//
// A verb is a row of verb.go: its name, the wire version that brought it, how long a reply is waited for, its request and
// reply. Call asks it, On answers it, and nothing between the two knows any verb. Work that goes on between two
// requests is a job (agent/jobs.go): a request or the end of its client ends it, and the turn is not passed on before.
//
// # A pair and a fleet
//
// The listener of the control plane is ours, as NATS has none that we could use: the agent's front does TLS and pipes each connection
// to the embedded server. So --bind-dev works, and a port in use on one address is no failure of the others.
//
// `thru control` opens a hub and a registry. The hub moves messages; the registry knows the owner of each name and who is
// there. `thru serve --controller` attaches its agent to the hub, and the agent does not know which way its clients come.
// A fleet has the same messages as a pair on other subjects (dispatcher has both answered, route asks over both). Agents and operators
// keep no state between them: presence, and results that nobody fetched, belong to the registry.
//
// A client of a fleet's bus is a key, and the key stands in the subjects. So permissions are a few lines, the same in our hub and
// in a NATS server that knows nothing of thru. NATS may lose a message when a connection breaks: in a fleet requests are sent
// again and run once, and events that end a session are numbered. A blip shorter than the lease loses nothing.
//
// An agent under a controller writes what a session has seen to disk when it ends (agent/spool.go), as a document of one end, until its
// client has collected and released it. It delivers what nobody fetched; the controller stores it (library/intake.go), and
// then the agent forgets it.
package bus

import (
	"encoding/json"
	"errors"

	"thru/internal/fault"
	"thru/internal/measure"
)

// Wire is the version of the messages. Equal majors work together.
const (
	WireMajor = 2
	WireMinor = 0
)

// DefaultPort is the control port of `thru serve`.
const DefaultPort = 5200

// PortRange is an inclusive range of TCP ports for data connections.
type PortRange struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// HelloRequest is the first message on a connection. Its form never changes, so that
// two majors can tell each other apart.
type HelloRequest struct {
	WireMajor int    `json:"wire_major"`
	WireMinor int    `json:"wire_minor"`
	Thru      string `json:"thru_version"`
}

// HelloReply says who the agent is and what it grants.
type HelloReply struct {
	WireMajor  int       `json:"wire_major"`
	WireMinor  int       `json:"wire_minor"`
	Thru       string    `json:"thru_version"`
	ID         string    `json:"id,omitempty"` // of the running agent, whatever way it was reached
	Hostname   string    `json:"hostname"`
	CPUs       int       `json:"cpus"`
	DataAddrs  []string  `json:"data_addrs,omitempty"` // where data connections should go; empty: where control went
	DataPorts  PortRange `json:"data_ports"`
	Limits     Limits    `json:"limits"`
	Privileges []string  `json:"privileges"`           // of this client: PrivilegeMeasure and others
	NoCapture  string    `json:"no_capture,omitempty"` // why this host cannot capture, whoever asks

	Addrs  []string          `json:"addrs,omitempty"`  // of the host, without loopback: where data may go if nothing else is known
	Labels map[string]string `json:"labels,omitempty"` // that its operator gave it
}

// ClockReply tells the time of the agent by two clocks: a monotonic one that begins with the agent,
// by which StartRequest.AtNs and Evidence.BeganNs count, and the wall clock.
type ClockReply struct {
	NowNs  int64 `json:"now_ns"`
	WallNs int64 `json:"wall_ns"` // since 1970
}

// Limits are what an agent grants at most; it enforces them itself.
type Limits struct {
	Streams    int   `json:"streams"`
	DurationNs int64 `json:"duration_ns"`
	Sessions   int   `json:"sessions"`           // flow ends at a time, of all clients
	RateBps    int64 `json:"rate_bps,omitempty"` // 0: no bound
}

// FactsRequest asks for the facts of the host.
type FactsRequest struct {
	Peer   string `json:"peer,omitempty"`    // address to look up the route to
	LoadNs int64  `json:"load_ns,omitempty"` // how long to watch what else uses the host; 0: not at all
	UUID   bool   `json:"uuid,omitempty"`    // that of the machine too, by which a hypervisor knows its guest
}

// FactsReply carries them.
type FactsReply struct {
	Facts measure.Facts  `json:"facts"`
	Route *measure.Route `json:"route,omitempty"`
}

// AnswerReply says where the answering end of one probe of the path listens, and
// the token that it wants to see.
type AnswerReply struct {
	Token string `json:"token"`
	Port  int    `json:"port"`
}

// ProbeRequest asks for the dialling end of a probe.
type ProbeRequest struct {
	Targets []string `json:"targets"`          // HOST:PORT to try, in order
	Token   string   `json:"token,omitempty"`  // of the answering end; empty: no thru is there, and a look from this side is all
	Quick   bool     `json:"quick,omitempty"`  // only what a few round trips tell
	Source  string   `json:"source,omitempty"` // address to dial from
	Device  string   `json:"device,omitempty"` // device or VRF to dial from
	Family  int      `json:"family,omitempty"` // 4, 6, or 0 for either
}

// ProbeReply is what it found.
type ProbeReply struct {
	Path measure.Path `json:"path"`
}

// ReserveRequest asks for the agent's turn: one client measures at a time unless
// Together is set by all. It is repeated until granted.
type ReserveRequest struct {
	Together bool `json:"together,omitempty"`
}

// ReserveReply says whether the turn is the client's.
type ReserveReply struct {
	Granted bool `json:"granted"`
	Ahead   int  `json:"ahead"` // clients before it in the queue
}

// PrepareRequest asks for one end of one flow. The listening end is prepared first;
// its reply tells the dialling end where to go and with which token.
type PrepareRequest struct {
	Spec    measure.Spec `json:"spec"`
	Sends   bool         `json:"sends"`
	Dials   bool         `json:"dials"`
	Targets []string     `json:"targets,omitempty"` // HOST:PORT to try, in order (dialling end)
	Token   string       `json:"token,omitempty"`   // from the listening end (dialling end)
	Ports   PortRange    `json:"ports,omitzero"`    // data ports of the listening end (dialling end)
	Login   *Login       `json:"login,omitempty"`   // where a far end that is no agent asks who we are (dialling end)
}

// Login is what an iperf3 server may ask of its clients. It goes to the agent
// of the own process only.
type Login struct {
	User      string `json:"user"`
	Password  string `json:"password"`
	PublicKey []byte `json:"public_key"` // of the server: PEM
	PKCS1     bool   `json:"pkcs1,omitempty"`
}

// PrepareReply names the session. A dialling end is connected when it replies.
type PrepareReply struct {
	Session string       `json:"session"`
	Token   string       `json:"token,omitempty"`
	Port    int          `json:"port,omitempty"`     // listening end
	Local   string       `json:"local,omitempty"`    // dialling end: address of the first stream
	Peer    string       `json:"peer,omitempty"`     // dialling end: the target that answered
	RTTIdle *measure.RTT `json:"rtt_idle,omitempty"` // dialling end
	Skipped []string     `json:"skipped,omitempty"`  // targets that did not answer, and why
}

// StartRequest lets the traffic flow. The receiving end is started first; its clock
// begins with the first byte.
type StartRequest struct {
	Session string `json:"session"`
	RampNs  int64  `json:"ramp_ns"`
	AtNs    int64  `json:"at_ns,omitempty"` // when, on the agent's clock; 0, or what has passed: at once
}

// CollectRequest asks for the evidence of a session whose Done event has come, or
// for what there is so far.
type CollectRequest struct {
	Session string `json:"session"`
}

// CollectReply carries it.
type CollectReply struct {
	Evidence measure.Evidence `json:"evidence"`
	// Back is of the other direction of two-way traffic (Spec.Duplex).
	Back *measure.Evidence `json:"back,omitempty"`
	// Far and FarBack are what a far end that is no agent reported of itself.
	Far     *measure.Evidence `json:"far,omitempty"`
	FarBack *measure.Evidence `json:"far_back,omitempty"`
}

// CaptureRequest asks for what a session has captured (Spec.Capture), beginning at
// an offset. The first question ends the capture.
type CaptureRequest struct {
	Session string `json:"session"`
	Offset  int64  `json:"offset_bytes"`
}

// CaptureReply carries at most CapturePartBytes bytes of it.
type CaptureReply struct {
	Pcapng    []byte `json:"pcapng"`              // a part of the file: pcapng, packed by gzip
	Size      int64  `json:"file_bytes"`          // of the whole file, packed
	Interface string `json:"interface,omitempty"` // that it was taken at
	MTU       int    `json:"mtu_bytes,omitzero"`  // of the interface
	Packets   int64  `json:"packets"`             //
	Dropped   int64  `json:"dropped_packets"`     // that the kernel could not keep
	Full      bool   `json:"full,omitempty"`      // its bound was reached
	CPUNs     int64  `json:"cpu_ns"`              // of the thread that took the packets
}

// CapturePartBytes is how much of a capture is asked for at a time, in bytes: with
// the overhead of base64 it fits one message.
const CapturePartBytes = 256 << 10

// ReleaseRequest ends a session (or, with an empty Session, all of the client's) and
// gives its turn back when none is left.
type ReleaseRequest struct {
	Session string `json:"session,omitempty"`
}

// KnobsRequest asks what can be set at the host, and how it is set. It
// needs no privilege: what it says is as public as the facts.
type KnobsRequest struct {
	Interfaces []string `json:"interfaces,omitempty"` // whose knobs are wanted, at most 1024; empty: that of the route to Peer
	Peer       string   `json:"peer,omitempty"`
}

// KnobsReply lists them.
type KnobsReply struct {
	Knobs  []measure.KnobState `json:"knobs"`
	NoTune string              `json:"no_tune,omitempty"` // why this client can set none of them
	Open   []measure.Changed   `json:"open,omitempty"`    // what the journal says was changed and not undone
	By     string              `json:"by,omitempty"`      // who tunes this host now
	Host   string              `json:"host,omitempty"`    // names what is tuned, a network namespace of one boot, the same at each agent there; empty: not told
}

// TuneRequest makes the client the one who tunes this host (PrivilegeTune).
// It is so until TuneEnd, or until it is gone: then all that it has changed is
// undone.
type TuneRequest struct {
	Owner string `json:"who"` // for the one who is kept out meanwhile
}

// AlterRequest sets knobs, in order: each is written to the journal first, and read
// back afterwards. Where one fails, those before it are undone.
type AlterRequest struct {
	Settings []measure.Setting `json:"settings"`
}

// RevertRequest undoes changes by their numbers, the last first; all of this tuning
// where there are none. One that somebody else has changed meanwhile is left.
type RevertRequest struct {
	Numbers []int64 `json:"numbers,omitempty"`
}

// ChangedReply says what became of each change.
type ChangedReply struct {
	Changed []measure.Changed `json:"changed"`
}

// JobReply names a job: in its events, and for its end.
type JobReply struct {
	Session string `json:"session"`
}

// JobEnd ends a job and asks for its result, which is given once. Release, and the
// end of the client, end it too.
type JobEnd struct {
	Session string `json:"session"`
}

// DiskStart has the disk below a folder of the host measured (it needs
// PrivilegeFiles). The client must have the turn; nothing else is measured
// meanwhile. Events tell of its progress and its end.
type DiskStart struct {
	Path string           `json:"path"` // absolute, of a folder
	Spec measure.DiskSpec `json:"spec"`
}

// DiskResult is what was measured. Where that failed, Test.Error says why.
type DiskResult struct {
	Test measure.DiskTest `json:"test"`
}

// ObserveStart has the host watched while a server there, which is no part of thru,
// moves a file for the client. Without Session it begins; with it
// connections are added. The client must have the turn. Only connections that
// lead to an address of the client are looked at.
type ObserveStart struct {
	Session string              `json:"session,omitempty"`
	Conns   []measure.Addresses `json:"conns,omitempty"` // as the client has them; at most MostObserved in all
}

// MostObserved bounds the connections that are observed at a time.
const MostObserved = 4096

// ObserveResult is what was seen.
type ObserveResult struct {
	Host     measure.HostSpan     `json:"host"`                  // Worker is of all Programs together
	Programs []string             `json:"programs,omitempty"`    // names of the processes that had these connections, the busiest first
	Streams  []measure.Stream     `json:"streams"`               // those that carried data, as this host has them
	Missing  []measure.NotChecked `json:"not_checked,omitempty"` // "worker", "streams"
}

// FileStart has a file of the host moved along a connection of its own (it needs
// PrivilegeFiles). The client must have the turn; it may have several under way.
// Errors have a Reason.
type FileStart struct {
	Path      string `json:"path"`                   // absolute
	Put       bool   `json:"put,omitempty"`          // from the client to the host; else from there to the client
	Bytes     int64  `json:"file_bytes,omitempty"`   // of one that is put
	Overwrite bool   `json:"overwrite,omitempty"`    // replace what has that name
	Buffer    int    `json:"buffer_bytes,omitempty"` // SO_SNDBUF and SO_RCVBUF of the agent's end; 0: the kernel tunes them
}

// FileReply says where to connect, with which token, and names the transfer.
type FileReply struct {
	Session string `json:"session"`
	Token   string `json:"token"`
	Port    int    `json:"port"`
	Bytes   int64  `json:"file_bytes"` // that will pass
}

// FileEnd asks how the transfer of a file has ended. It waits a moment for that,
// unless it ends one that is under way.
type FileEnd struct {
	Session string `json:"session"`
	End     bool   `json:"end,omitempty"`
}

// FileResult says whether a file has been moved. Where it was not, an error says why;
// once it is over, it is forgotten.
type FileResult struct {
	Over  bool  `json:"over"`        // the file is whole, and if it was put, on the disk; false: ask again
	Bytes int64 `json:"moved_bytes"` // until now
}

// FilePath names a file of the host whose size is asked for, or that is to be removed (PrivilegeFiles).
type FilePath struct {
	Path string `json:"path"` // absolute
}

// FileSizeReply tells the size of a file.
type FileSizeReply struct {
	Bytes int64 `json:"file_bytes"`
}

// GuestsReply lists the virtual machines of the host, with what their traffic passes
// there (PrivilegeInventory).
type GuestsReply struct {
	Inventory measure.Inventory `json:"inventory"`
}

// WatchStart has counters of guests and of the host read, by the ids of an inventory,
// until its end or that of the client (PrivilegeInventory). It needs
// no turn, and Release does not end it. A client may have a few at a time.
type WatchStart struct {
	IDs []string `json:"ids"` // at most MostWatched
}

// MostWatched bounds the guests that are watched at a time.
const MostWatched = 4096

// WatchResult is what was counted. Samples ended by the wall clock of the agent.
type WatchResult struct {
	Series     []measure.Series     `json:"series"`
	NotChecked []measure.NotChecked `json:"not_checked,omitempty"`
}

// Empty is a request or a reply without content.
type Empty struct{}

// Kinds of Event.
const (
	EventConnected = "connected" // with Conns, where Spec.EachStream asks for it
	EventProgress  = "progress"
	EventDone      = "done"   // the measured time is over and the evidence is complete
	EventFailed    = "failed" // the session ended early; Error says why, Collect gives what there is
)

// Phases of a session, in Event.Phase.
const (
	PhaseRamp    = "ramp"
	PhaseMeasure = "measure"
	PhaseDrain   = "drain"
)

// Event is pushed by the agent to the client that owns the session.
type Event struct {
	Session     string              `json:"session"`
	Kind        string              `json:"kind"`
	Phase       string              `json:"phase,omitempty"`
	AtNs        int64               `json:"at_ns,omitempty"` // start of the interval, since the measured time began; negative in the ramp
	SpanNs      int64               `json:"length_ns,omitempty"`
	Bytes       int64               `json:"bytes,omitempty"`
	Retransmits *int64              `json:"retransmits,omitempty"` // segments in the interval (sender)
	Packets     int64               `json:"packets,omitempty"`     // datagrams in the interval
	Lost        int64               `json:"lost,omitempty"`        // datagrams missed in it (receiver)
	Requests    int64               `json:"requests,omitempty"`    // transactions in it
	Back        bool                `json:"back,omitempty"`        // of the other direction of two-way traffic
	Conns       []measure.Addresses `json:"conns,omitempty"`       // EventConnected: of the streams
	Each        []measure.Tick      `json:"streams,omitempty"`     // of each stream (Spec.EachStream)
	CPUPct      *float64            `json:"cpu_pct,omitempty"`     // of the whole machine
	CPUMaxPct   *float64            `json:"cpu_max_pct,omitempty"` // busiest core
	Disk        *measure.DiskTick   `json:"disk,omitempty"`        // of a disk that is measured
	Error       string              `json:"error,omitempty"`
	Hint        string              `json:"hint,omitempty"`
	Reason      Reason              `json:"reason,omitempty"`
}

// Failed is the event of a session that ended early.
func Failed(session string, err error) Event {
	return Event{Session: session, Kind: EventFailed, Error: err.Error(), Hint: fault.Hint(err), Reason: fault.ReasonOf(err)}
}

// Err is what an event of a failure says.
func (e Event) Err() error { return fault.Because(e.Reason, fault.Failf(e.Hint, "%s", e.Error)) }

// Publish pushes an event to a client. It never blocks for long and may drop
// progress when the client does not read.
type Publish func(client string, e Event)

// decode reads exactly one JSON value. Unknown fields are left out: a newer
// minor may have added them.
func decode(b []byte, v any) error {
	if len(b) == 0 {
		return errors.New("the message is empty")
	}
	return json.Unmarshal(b, v)
}
