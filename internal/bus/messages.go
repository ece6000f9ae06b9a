// Package bus is the control plane: typed messages over NATS between the
// controller and the agents. The agent embeds the server; a client logs in with a
// join string.
//
// docs/wire.md describes subjects, messages and version compatibility.
//
// # A verb
//
// A verb is a row of verb.go: its name, the wire version that introduced it, how long to wait for its reply, its request and
// reply. Call sends it, On answers it, and the code between them knows no particular verb. Work that continues between two
// requests is a job (agent/jobs.go): a request or the end of its client ends it, and the turn is not passed on before.
//
// # A pair and a fleet
//
// The listener of the control plane is ours, as no listener of NATS fits: the agent's front does TLS and pipes each connection
// to the embedded server. So --bind-dev works, and a port in use on one address does not affect the other addresses.
//
// `thru control` opens a hub and a registry. The hub moves messages; the registry knows the owner of each name and which hosts are
// online. `thru serve --controller` attaches its agent to the hub, and the agent does not know by which transport its clients come.
// A fleet has the same messages as a pair on other subjects (dispatcher answers both, route sends over both). Agents and operators
// keep no state between them: the registry has the presence, and the results that no client fetched.
//
// A client of a fleet's bus is identified by a key, which is part of the subjects. So permissions are a few lines, the same in our
// hub and in a NATS server that knows nothing of thru. NATS may lose a message when a connection breaks: in a fleet requests are
// repeated and run once, and events that end a session are numbered. An outage shorter than the lease loses nothing.
//
// An agent under a controller writes the evidence of a session to disk when it ends (agent/spool.go), as a document of one end, until
// its client has collected and released it. It delivers the evidence that no client fetched; the controller stores it
// (library/intake.go), and then the agent drops it.
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
	WireMinor = 2
)

// DefaultPort is the control port of `thru serve`.
const DefaultPort = 5200

// PortRange is an inclusive range of TCP ports for data connections.
type PortRange struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// HelloRequest is the first message on a connection. Its form never changes, so that
// two majors can recognize each other.
type HelloRequest struct {
	WireMajor int    `json:"wire_major"`
	WireMinor int    `json:"wire_minor"`
	Thru      string `json:"thru_version"`
}

// HelloReply describes the agent and what it grants.
type HelloReply struct {
	WireMajor  int       `json:"wire_major"`
	WireMinor  int       `json:"wire_minor"`
	Thru       string    `json:"thru_version"`
	ID         string    `json:"id,omitempty"` // of the running agent, the same at each of its addresses
	Hostname   string    `json:"hostname"`
	CPUs       int       `json:"cpus"`
	DataAddrs  []string  `json:"data_addrs,omitempty"` // addresses for data connections; empty: as for control
	DataPorts  PortRange `json:"data_ports"`
	Limits     Limits    `json:"limits"`
	Privileges []string  `json:"privileges"`           // of this client: PrivilegeMeasure and others
	NoCapture  string    `json:"no_capture,omitempty"` // why this host cannot capture for any client

	Addrs  []string          `json:"addrs,omitempty"`  // of the host, without loopback: for data where nothing else is known
	Labels map[string]string `json:"labels,omitempty"` // set by its operator
}

// ClockReply has the time of the agent by two clocks: a monotonic one that begins with the agent,
// used by StartRequest.AtNs and Evidence.BeganNs, and the wall clock.
type ClockReply struct {
	NowNs  int64 `json:"now_ns"`
	WallNs int64 `json:"wall_ns"` // since 1970
}

// Limits are the limits that an agent grants and enforces.
type Limits struct {
	Streams    int   `json:"streams"`
	DurationNs int64 `json:"duration_ns"`
	Sessions   int   `json:"sessions"`           // concurrent flow ends, of all clients
	RateBps    int64 `json:"rate_bps,omitempty"` // 0: no limit
}

// FactsRequest asks for the facts of the host.
type FactsRequest struct {
	Peer   string `json:"peer,omitempty"`    // address to look up the route to
	LoadNs int64  `json:"load_ns,omitempty"` // how long to measure the other load of the host; 0: not at all
	UUID   bool   `json:"uuid,omitempty"`    // include the machine's UUID, by which a hypervisor identifies its guest
}

// FactsReply has the facts of the host.
type FactsReply struct {
	Facts measure.Facts  `json:"facts"`
	Route *measure.Route `json:"route,omitempty"`
}

// AnswerReply has the port of the answering end of one path probe, and the token
// that it expects.
type AnswerReply struct {
	Token string `json:"token"`
	Port  int    `json:"port"`
}

// ProbeRequest asks for the dialling end of a probe.
type ProbeRequest struct {
	Targets []string `json:"targets"`          // HOST:PORT to try, in order
	Token   string   `json:"token,omitempty"`  // of the answering end; empty: no thru there, the probe has only this side's view
	Quick   bool     `json:"quick,omitempty"`  // only what a few round trips show
	Source  string   `json:"source,omitempty"` // address to dial from
	Device  string   `json:"device,omitempty"` // device or VRF to dial from
	Family  int      `json:"family,omitempty"` // 4, 6, or 0 for either
}

// ProbeReply is the result of a probe.
type ProbeReply struct {
	Path measure.Path `json:"path"`
}

// ReserveRequest asks for the agent's turn: one client measures at a time unless
// all set Together. It is repeated until granted.
type ReserveRequest struct {
	Together bool `json:"together,omitempty"`
}

// ReserveReply says whether the client has the turn.
type ReserveReply struct {
	Granted bool `json:"granted"`
	Ahead   int  `json:"ahead"` // clients before it in the queue
}

// PrepareRequest asks for one end of one flow. The listening end is prepared first;
// its reply gives the dialling end the port and the token.
type PrepareRequest struct {
	Spec    measure.Spec `json:"spec"`
	Sends   bool         `json:"sends"`
	Dials   bool         `json:"dials"`
	Targets []string     `json:"targets,omitempty"` // HOST:PORT to try, in order (dialling end)
	Token   string       `json:"token,omitempty"`   // from the listening end (dialling end)
	Ports   PortRange    `json:"ports,omitzero"`    // data ports of the listening end (dialling end)
	Login   *Login       `json:"login,omitempty"`   // where a foreign far end requires a login (dialling end)
}

// Login is the login at an iperf3 server. It is sent only to the agent of the own
// process.
type Login struct {
	User      string `json:"user"`
	Password  string `json:"password"`
	PublicKey []byte `json:"public_key"` // of the server: PEM
	PKCS1     bool   `json:"pkcs1,omitempty"`
}

// PrepareReply names the session. A dialling end replies once it is connected.
type PrepareReply struct {
	Session string       `json:"session"`
	Token   string       `json:"token,omitempty"`
	Port    int          `json:"port,omitempty"`     // listening end
	Local   string       `json:"local,omitempty"`    // dialling end: address of the first stream
	Peer    string       `json:"peer,omitempty"`     // dialling end: the target that answered
	RTTIdle *measure.RTT `json:"rtt_idle,omitempty"` // dialling end
	Skipped []string     `json:"skipped,omitempty"`  // targets that did not answer, and why
}

// StartRequest starts the traffic. The receiving end is started first; its clock
// begins with the first byte.
type StartRequest struct {
	Session string `json:"session"`
	RampNs  int64  `json:"ramp_ns"`
	AtNs    int64  `json:"at_ns,omitempty"` // start time on the agent's clock; 0 or past: at once
}

// CollectRequest asks for the evidence of a session after its Done event, or for the
// evidence so far.
type CollectRequest struct {
	Session   string `json:"session"`
	IdleAgeNs int64  `json:"idle_age_ns,omitempty"` // age up to which an earlier reading of the idle host is enough; 0: the agent's own limit
}

// CollectReply has the evidence.
type CollectReply struct {
	Evidence measure.Evidence `json:"evidence"`
	// Back is the evidence of the other direction of two-way traffic (Spec.Duplex).
	Back *measure.Evidence `json:"back,omitempty"`
	// Far and FarBack are what a foreign far end reported of itself.
	Far     *measure.Evidence `json:"far,omitempty"`
	FarBack *measure.Evidence `json:"far_back,omitempty"`
}

// CaptureRequest asks for the capture of a session (Spec.Capture), from an offset.
// The first request ends the capture.
type CaptureRequest struct {
	Session string `json:"session"`
	Offset  int64  `json:"offset_bytes"`
}

// CaptureReply has at most CapturePartBytes bytes of the capture.
type CaptureReply struct {
	Pcapng    []byte `json:"pcapng"`              // a part of the file: pcapng, compressed by gzip
	Size      int64  `json:"file_bytes"`          // of the whole file, compressed
	Interface string `json:"interface,omitempty"` // where the packets were captured
	MTU       int    `json:"mtu_bytes,omitzero"`  // of the interface
	Packets   int64  `json:"packets"`             //
	Dropped   int64  `json:"dropped_packets"`     // by the kernel
	Full      bool   `json:"full,omitempty"`      // the limit of the capture was reached
	CPUNs     int64  `json:"cpu_ns"`              // of the capture thread
}

// CapturePartBytes is the size of the parts of a capture, in bytes: with the
// overhead of base64 a part fits one message.
const CapturePartBytes = 256 << 10

// ReleaseRequest ends a session (or, with an empty Session, all of the client's) and
// gives its turn back when none is left.
type ReleaseRequest struct {
	Session string `json:"session,omitempty"`
}

// KnobsRequest asks for the settings of the host and their possible values. It needs
// no privilege: the reply is as public as the facts.
type KnobsRequest struct {
	Interfaces []string `json:"interfaces,omitempty"` // at most 1024; empty: that of the route to Peer
	Peer       string   `json:"peer,omitempty"`
}

// KnobsReply lists the knobs.
type KnobsReply struct {
	Knobs  []measure.KnobState `json:"knobs"`
	NoTune string              `json:"no_tune,omitempty"` // why this client can set none of them
	Open   []measure.Changed   `json:"open,omitempty"`    // changes in the journal that are not reverted
	By     string              `json:"by,omitempty"`      // current tuner of this host
	Host   string              `json:"host,omitempty"`    // id of what is tuned, a network namespace of one boot, the same at each agent there; empty: unknown
}

// TuneRequest makes the client the tuner of this host (PrivilegeTune), until TuneEnd
// or until the client is gone: then all its changes are reverted.
type TuneRequest struct {
	Owner string `json:"who"` // shown to clients that are locked out meanwhile
}

// AlterRequest sets knobs, in order: each is written to the journal first, and read
// back afterwards. If one fails, those before it are reverted.
type AlterRequest struct {
	Settings []measure.Setting `json:"settings"`
}

// RevertRequest reverts changes by their numbers, the last first; without numbers all
// of this tuning. It leaves a setting that somebody else has changed meanwhile.
type RevertRequest struct {
	Numbers []int64 `json:"numbers,omitempty"`
}

// ChangedReply has the outcome of each change.
type ChangedReply struct {
	Changed []measure.Changed `json:"changed"`
}

// JobReply has the id of a job, for its events and its end.
type JobReply struct {
	Session string `json:"session"`
}

// JobEnd ends a job and asks for its result, which is returned once. Release, and the
// end of the client, end it too.
type JobEnd struct {
	Session string `json:"session"`
}

// DiskStart starts a measurement of the disk that holds a folder of the host
// (PrivilegeFiles). The client must have the turn; nothing else is measured
// meanwhile. Events report its progress and its end.
type DiskStart struct {
	Path string           `json:"path"` // absolute, of a folder
	Spec measure.DiskSpec `json:"spec"`
}

// DiskResult is the result of a disk test. On failure Test.Error says why.
type DiskResult struct {
	Test measure.DiskTest `json:"test"`
}

// ObserveStart starts an observation of the host while a server there, which is not
// part of thru, moves a file for the client. With a Session it adds connections to
// a running one. The client must have the turn. Only connections to an address of
// the client are observed.
type ObserveStart struct {
	Session string              `json:"session,omitempty"`
	Conns   []measure.Addresses `json:"conns,omitempty"` // as the client sees them; at most MostObserved in total
}

// MostObserved bounds the connections of an observation.
const MostObserved = 4096

// ObserveResult is the result of an observation.
type ObserveResult struct {
	Host     measure.HostSpan     `json:"host"`                  // Worker is the sum of all Programs
	Programs []string             `json:"programs,omitempty"`    // names of the processes with these connections, the busiest first
	Streams  []measure.Stream     `json:"streams"`               // those that carried data, as this host sees them
	Missing  []measure.NotChecked `json:"not_checked,omitempty"` // "worker", "streams"
}

// FileStart starts a file transfer between the client and the host on its own
// connection (PrivilegeFiles). The client must have the turn; it may run several at
// once. Errors have a Reason.
type FileStart struct {
	Path      string `json:"path"`                   // absolute
	Put       bool   `json:"put,omitempty"`          // from the client to the host; else from the host to the client
	Bytes     int64  `json:"file_bytes,omitempty"`   // of a file that is put
	Overwrite bool   `json:"overwrite,omitempty"`    // replace an existing file
	Buffer    int    `json:"buffer_bytes,omitempty"` // SO_SNDBUF and SO_RCVBUF of the agent's end; 0: the kernel tunes them
}

// FileReply has the port and token to connect with, and the id of the transfer.
type FileReply struct {
	Session string `json:"session"`
	Token   string `json:"token"`
	Port    int    `json:"port"`
	Bytes   int64  `json:"file_bytes"` // to be transferred
}

// FileEnd asks for the end of a file transfer. The reply waits a moment for it, unless
// End is set, which ends a running transfer.
type FileEnd struct {
	Session string `json:"session"`
	End     bool   `json:"end,omitempty"`
}

// FileResult says whether a file transfer is complete; a failed one returns an error.
// A transfer that is over is forgotten.
type FileResult struct {
	Over  bool  `json:"over"`        // the file is complete, and if it was put, on the disk; false: ask again
	Bytes int64 `json:"moved_bytes"` // so far
}

// FilePath names a file of the host whose size is asked for, or that is to be removed (PrivilegeFiles).
type FilePath struct {
	Path string `json:"path"` // absolute
}

// FileSizeReply has the size of a file.
type FileSizeReply struct {
	Bytes int64 `json:"file_bytes"`
}

// GuestsReply lists the virtual machines of the host, and the devices that their
// traffic passes there (PrivilegeInventory).
type GuestsReply struct {
	Inventory measure.Inventory `json:"inventory"`
}

// WatchStart starts to read counters of guests and of the host, by the ids of an
// inventory, until its end or that of the client (PrivilegeInventory). It needs no
// turn, and Release does not end it. A client may have a few at a time.
type WatchStart struct {
	IDs []string `json:"ids"` // at most MostWatched
}

// MostWatched bounds the guests of a watch.
const MostWatched = 4096

// WatchResult has the counters. The ends of samples are by the agent's wall clock.
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
	EventFailed    = "failed" // the session ended early; Error says why, Collect returns the evidence so far
)

// Phases of a session, in Event.Phase.
const (
	PhaseRamp    = "ramp"
	PhaseMeasure = "measure"
	PhaseDrain   = "drain"
)

// Event is sent by the agent to the client that owns the session.
type Event struct {
	Session     string              `json:"session"`
	Kind        string              `json:"kind"`
	Phase       string              `json:"phase,omitempty"`
	AtNs        int64               `json:"at_ns,omitempty"` // start of the interval, relative to the start of the measured time; negative in the ramp
	SpanNs      int64               `json:"length_ns,omitempty"`
	Bytes       int64               `json:"bytes,omitempty"`
	Retransmits *int64              `json:"retransmits,omitempty"` // segments in the interval (sender)
	Packets     int64               `json:"packets,omitempty"`     // datagrams in the interval
	Lost        int64               `json:"lost,omitempty"`        // datagrams lost in it (receiver)
	Requests    int64               `json:"requests,omitempty"`    // transactions in it
	Back        bool                `json:"back,omitempty"`        // of the other direction of two-way traffic
	Conns       []measure.Addresses `json:"conns,omitempty"`       // EventConnected: of the streams
	Each        []measure.Tick      `json:"streams,omitempty"`     // of each stream (Spec.EachStream)
	CPUPct      *float64            `json:"cpu_pct,omitempty"`     // of the whole machine
	CPUMaxPct   *float64            `json:"cpu_max_pct,omitempty"` // busiest core
	Disk        *measure.DiskTick   `json:"disk,omitempty"`        // of a disk test
	Error       string              `json:"error,omitempty"`
	Hint        string              `json:"hint,omitempty"`
	Reason      Reason              `json:"reason,omitempty"`
}

// Failed returns the event of a session that ended early.
func Failed(session string, err error) Event {
	return Event{Session: session, Kind: EventFailed, Error: err.Error(), Hint: fault.Hint(err), Reason: fault.ReasonOf(err)}
}

// Err returns the error of a Failed event.
func (e Event) Err() error { return fault.Because(e.Reason, fault.Failf(e.Hint, "%s", e.Error)) }

// Publish sends an event to a client. It never blocks for long and may drop progress
// when the client does not read.
type Publish func(client string, e Event)

// decode reads exactly one JSON value. It ignores unknown fields: a newer minor may
// have added them.
func decode(b []byte, v any) error {
	if len(b) == 0 {
		return errors.New("the message is empty")
	}
	return json.Unmarshal(b, v)
}
