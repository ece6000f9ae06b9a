package measure

// Outcomes of an Attempt (docs/result.md).
const (
	Kept     = "kept"       // shown to be an improvement, without a cost above the guardrails
	Undone   = "undone"     // measured, and not shown to be an improvement: reverted
	NotInUse = "not in use" // the host took the setting, but without effect (S-03): reverted
	Failed   = "failed"     // it could not be set, or the path failed with it: reverted
	Declined = "declined"   // the user, or a missing --yes, did not accept its risk
	Foreign  = "changed"    // something else has changed it meanwhile: left as it is
	NoTime   = "no time"    // the time budget was too short
	Settled  = "as it was"  // nothing had to be done
)

// OfTuning is the prefix of the experiment (Cell.Experiment) in cells of a tuning: "tune-1" holds the two states that the first attempt compared,
// "tune-state-0" the original state, once a later one is measured.
const OfTuning = "tune-"

// Setting is the current or intended value of a knob (package knob) at a host. The value is text as a reading of the knob returns it.
type Setting struct {
	EndPoint  string `json:"end_point,omitempty"`
	Knob      string `json:"knob"`                // id: "tcp-rmem", "tso"
	Interface string `json:"interface,omitempty"` // interface that it concerns
	Value     string `json:"value"`
}

// KnobState is the state of one knob at a host.
type KnobState struct {
	Knob      string `json:"knob"`
	Interface string `json:"interface,omitempty"`
	Value     string `json:"value"`              // current value
	Possible  string `json:"possible,omitempty"` // greatest value, or all values separated by spaces; empty: not known
	Refused   string `json:"refused,omitempty"`  // why it cannot be changed; empty: it can
}

// Changed is a changed setting, by its number in the host's journal.
type Changed struct {
	Number int64 `json:"number"`
	Setting
	Before  string `json:"before"`            // value before the change
	Found   string `json:"found,omitempty"`   // value read back afterwards
	Outcome string `json:"outcome,omitempty"` // result of reverting it: "undone", "as it was", "changed", "failed"
	Error   string `json:"error,omitempty"`   // why it failed, or what has changed it
}

// TestOptions are the knobs of a test, which need no privilege: the differences from the given options. Zero and nil mean no difference.
type TestOptions struct {
	Streams     int    `json:"streams,omitzero"`
	Window      *Pair  `json:"window_bytes,omitempty"`
	Length      *Pair  `json:"length_bytes,omitempty"`
	IO          string `json:"io,omitempty"`
	Congestion  string `json:"congestion,omitempty"`
	SenderCPU   *int   `json:"sender_cpu,omitempty"`
	ReceiverCPU *int   `json:"receiver_cpu,omitempty"`
	Flags       string `json:"flags"` // the same as command line flags: "-P 4"
}

// Proposal is one change to try. Settings that only make sense together are one change, at one end or at both.
type Proposal struct {
	ID        string       `json:"id"`    // "tcp-rmem@b": stable for the same knobs at the same hosts
	Title     string       `json:"title"` // "receive windows of up to 25 MiB at b"
	Settings  []Setting    `json:"settings,omitempty"`
	Before    []Setting    `json:"before,omitempty"` // current values of the same knobs
	Test      *TestOptions `json:"test_options,omitempty"`
	From      string       `json:"from,omitempty"`  // direction that it should improve
	To        string       `json:"to,omitempty"`    //
	Cause     string       `json:"cause,omitempty"` // finding that suggests it
	Gate      string       `json:"gate,omitempty"`  // gate that suggests it
	Why       string       `json:"why"`             // the reason with its figures
	Expect    string       `json:"expect"`          // expected gain, with the figure behind it, or where that is published
	ExpectBps *float64     `json:"expect_bps,omitempty"`
	Source    string       `json:"source,omitempty"` // of the expectation
	Risk      string       `json:"risk,omitempty"`
	Cuts      bool         `json:"may_cut_connection,omitempty"`
	OnlySaid  string       `json:"advice_because,omitempty"` // why thru does not make the change itself; empty: it does
	Commands  []Commands   `json:"commands,omitempty"`       // the same as a manual step, at each host
}

// Commands are the commands to type at one host, in order.
type Commands struct {
	EndPoint string   `json:"end_point"`
	Platform string   `json:"platform"` // system that they are for: "linux"
	Set      []string `json:"set"`
	Undo     []string `json:"undo,omitempty"` // restores the previous value
	Verify   []string `json:"verify,omitempty"`
	Words    string   `json:"words,omitempty"` // where no command does it, or to read before the commands
}

// Verification is whether a setting has its effect, by observation (S-03).
type Verification struct {
	EndPoint string `json:"end_point,omitempty"`
	What     string `json:"what"`            // "read back", "DF search of the path", "window of the connection"
	Holds    *bool  `json:"holds,omitempty"` // absent: not checked, Fact says why
	Fact     string `json:"fact"`            // what was found, with its figures
}

// Attempt is a change that was tried, and its outcome.
type Attempt struct {
	Proposal
	Outcome  string         `json:"outcome"`
	Reason   string         `json:"reason"`
	Verified []Verification `json:"verified,omitempty"`
	// Comparison compares the runs with the change and those without, in alternating order.
	Comparison *Comparison `json:"comparison,omitempty"`
	// Gain is the gain of a kept change, from runs after it was shown to help: the runs of Comparison were selected for their gain.
	Gain *Comparison `json:"gain,omitempty"`
	// OtherDirection is the comparison in the other direction, which must not lose what one direction gains. For a change judged in both directions it is the
	// first one, where the second was no better.
	OtherDirection *Comparison `json:"other_direction,omitempty"`
	Changed        []Changed   `json:"changed,omitempty"` // in the hosts' journals
	ElapsedNs      int64       `json:"elapsed_ns"`
}

// Milestone is one row of the tuning history: the state after a kept change. The first is the original state.
type Milestone struct {
	Title    string   `json:"title"`
	Attempt  *int     `json:"attempt,omitempty"`  // index in Tuning.Attempts; none for the first
	Cells    []int    `json:"cells"`              // each direction, measured in this state
	Findings []string `json:"findings,omitempty"` // what limited it then, one per direction, in words
	Causes   []string `json:"causes,omitempty"`   // the causes of these findings, by id; "" where none is known
}

// Persistence makes kept settings at one host survive a reboot.
type Persistence struct {
	EndPoint string   `json:"end_point"`
	Platform string   `json:"platform"`
	Manager  string   `json:"manager"`            // "sysctl.d", "systemd.link", "udev", "NetworkManager", "netplan", "boot script"
	File     string   `json:"file,omitempty"`     // file to write
	Content  string   `json:"content,omitempty"`  // of that file
	Commands []string `json:"commands,omitempty"` // commands to run after that
	Undo     []string `json:"undo,omitempty"`
	Words    string   `json:"words,omitempty"` // notes, or what to do where no file does it
}

// Tuning is what `thru tune` did, or with --dry-run would do.
type Tuning struct {
	DryRun      bool          `json:"dry_run,omitempty"`
	TargetBps   float64       `json:"target_bps,omitzero"`
	Only        []string      `json:"only,omitempty"`       // ids of the knobs that may change; absent: all
	ExpectNs    int64         `json:"expected_ns,omitzero"` // expected duration, if each change is kept
	Advice      []Proposal    `json:"advice,omitempty"`     // in order: all proposals of a dry run, else those left to the reader
	Attempts    []Attempt     `json:"attempts,omitempty"`
	Journey     []Milestone   `json:"journey,omitempty"`
	Persistence []Persistence `json:"lasting,omitempty"`  // for the kept settings
	Remains     []string      `json:"remains,omitempty"`  // remaining bottleneck, in words, one per direction
	LevelPct    float64       `json:"level_pct,omitzero"` // confidence level of each comparison's interval, so that all of them together reach 95%
	Pairs       int           `json:"pairs,omitzero"`     // least pairs of runs in a comparison
	// Restored is for `thru tune --rollback`: the changes in the journals, and the result of reverting them.
	Restored []Changed `json:"restored,omitempty"`
}
