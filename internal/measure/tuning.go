package measure

// Outcomes of an Attempt (docs/result.md).
const (
	Kept     = "kept"       // an improvement that was shown, without a price above the guardrails
	Undone   = "undone"     // measured, and not shown to be one: the setting is as it was
	NotInUse = "not in use" // the host took the setting, but it did not do what it says (S-03): undone
	Failed   = "failed"     // it could not be set, or the path did not survive it: undone
	Declined = "declined"   // the person, or a missing --yes, did not want its risk
	Foreign  = "changed"    // somebody else has changed it meanwhile: left as they want it
	NoTime   = "no time"    // the budget did not hold it
	Settled  = "as it was"  // nothing was to do
)

// OfTuning begins the experiment (Cell.Experiment) of cells that a tuning leaves
// behind: "tune-1" of the two states that its first attempt compared, "tune-state-0"
// of the state that was found, once a later one stands.
const OfTuning = "tune-"

// Setting is the value of a knob (package knob) at a host: what it is, or what
// it is to be. The value is text as reading the knob gives it.
type Setting struct {
	EndPoint  string `json:"end_point,omitempty"`
	Knob      string `json:"knob"`                // id: "tcp-rmem", "tso"
	Interface string `json:"interface,omitempty"` // where it is about one
	Value     string `json:"value"`
}

// KnobState is what a host says of one of its knobs.
type KnobState struct {
	Knob      string `json:"knob"`
	Interface string `json:"interface,omitempty"`
	Value     string `json:"value"`              // now
	Possible  string `json:"possible,omitempty"` // greatest value, or all of them by spaces; empty: not told
	Refused   string `json:"refused,omitempty"`  // why it cannot be changed there; empty: it can
}

// Changed is a setting that was changed, by its number in the host's journal.
type Changed struct {
	Number int64 `json:"number"`
	Setting
	Before  string `json:"before"`            // value that it had
	Found   string `json:"found,omitempty"`   // value that was read afterwards
	Outcome string `json:"outcome,omitempty"` // of undoing it: "undone", "as it was", "changed", "failed"
	Error   string `json:"error,omitempty"`   // why it failed, or who has changed it
}

// TestOptions are the knobs of a test, which need no privilege: what differs
// from the options that were given. Zero and nil are left as they are.
type TestOptions struct {
	Streams     int    `json:"streams,omitzero"`
	Window      *Pair  `json:"window_bytes,omitempty"`
	Length      *Pair  `json:"length_bytes,omitempty"`
	IO          string `json:"io,omitempty"`
	Congestion  string `json:"congestion,omitempty"`
	SenderCPU   *int   `json:"sender_cpu,omitempty"`
	ReceiverCPU *int   `json:"receiver_cpu,omitempty"`
	Flags       string `json:"flags"` // the same as a person gives them: "-P 4"
}

// Proposal is one thing to try: settings that only make sense together are one
// change, at one end or at both.
type Proposal struct {
	ID        string       `json:"id"`    // "tcp-rmem@b": stable for the same knobs at the same hosts
	Title     string       `json:"title"` // "receive windows of up to 25 MiB at b"
	Settings  []Setting    `json:"settings,omitempty"`
	Before    []Setting    `json:"before,omitempty"` // the same knobs as they are
	Test      *TestOptions `json:"test_options,omitempty"`
	From      string       `json:"from,omitempty"`  // direction for whose sake it is
	To        string       `json:"to,omitempty"`    //
	Cause     string       `json:"cause,omitempty"` // finding that asks for it
	Gate      string       `json:"gate,omitempty"`  // gate that does
	Why       string       `json:"why"`             // the reason with its figures
	Expect    string       `json:"expect"`          // what it should bring, with the figure that it is computed from, or where that is published
	ExpectBps *float64     `json:"expect_bps,omitempty"`
	Source    string       `json:"source,omitempty"` // of the expectation
	Risk      string       `json:"risk,omitempty"`
	Cuts      bool         `json:"may_cut_connection,omitempty"`
	OnlySaid  string       `json:"advice_because,omitempty"` // why thru does not do it itself; empty: it does
	Commands  []Commands   `json:"commands,omitempty"`       // the same by hand, at each host
}

// Commands are what a person types at one host, in order.
type Commands struct {
	EndPoint string   `json:"end_point"`
	Platform string   `json:"platform"` // system that they are of: "linux"
	Set      []string `json:"set"`
	Undo     []string `json:"undo,omitempty"` // brings back the value before
	Verify   []string `json:"verify,omitempty"`
	Words    string   `json:"words,omitempty"` // where no command does it, or before one
}

// Verification is whether a setting does what it says, shown by what happened (S-03).
type Verification struct {
	EndPoint string `json:"end_point,omitempty"`
	What     string `json:"what"`            // "read back", "DF search of the path", "window of the connection"
	Holds    *bool  `json:"holds,omitempty"` // absent: not checked, Fact says why
	Fact     string `json:"fact"`            // what was found, with its figures
}

// Attempt is a change that was tried, and what became of it.
type Attempt struct {
	Proposal
	Outcome  string         `json:"outcome"`
	Reason   string         `json:"reason"`
	Verified []Verification `json:"verified,omitempty"`
	// Comparison holds the runs with it against those without, made in turns.
	Comparison *Comparison `json:"comparison,omitempty"`
	// Gain is what a kept change brings, by runs made after it was shown to help: those
	// of Comparison were picked for their gain.
	Gain *Comparison `json:"gain,omitempty"`
	// OtherDirection is the other direction: a gain must not be its loss. Of a change that
	// was judged in both it is the first, where the second was no better.
	OtherDirection *Comparison `json:"other_direction,omitempty"`
	Changed        []Changed   `json:"changed,omitempty"` // in the hosts' journals
	ElapsedNs      int64       `json:"elapsed_ns"`
}

// Milestone is a row of the journey: the state after a change that was kept,
// the first is the state that was found.
type Milestone struct {
	Title    string   `json:"title"`
	Attempt  *int     `json:"attempt,omitempty"`  // index in Tuning.Attempts; none of the first
	Cells    []int    `json:"cells"`              // each direction, measured in this state
	Findings []string `json:"findings,omitempty"` // what bound it then, one a direction, in words
	Causes   []string `json:"causes,omitempty"`   // the causes of these findings, by id; "" where none is known
}

// Persistence makes kept settings outlive a boot at one host.
type Persistence struct {
	EndPoint string   `json:"end_point"`
	Platform string   `json:"platform"`
	Manager  string   `json:"manager"`            // "sysctl.d", "systemd.link", "udev", "NetworkManager", "netplan", "boot script"
	File     string   `json:"file,omitempty"`     // to write
	Content  string   `json:"content,omitempty"`  // of that file
	Commands []string `json:"commands,omitempty"` // to run then
	Undo     []string `json:"undo,omitempty"`
	Words    string   `json:"words,omitempty"` // what to know of it, or where no file does it
}

// Tuning is what `thru tune` did, or with --dry-run would do.
type Tuning struct {
	DryRun      bool          `json:"dry_run,omitempty"`
	TargetBps   float64       `json:"target_bps,omitzero"`
	Only        []string      `json:"only,omitempty"`       // ids of the knobs that might be changed; absent: all
	ExpectNs    int64         `json:"expected_ns,omitzero"` // time that it was said to take, if each change is kept
	Advice      []Proposal    `json:"advice,omitempty"`     // in order: of a dry run all, else what is left to the reader
	Attempts    []Attempt     `json:"attempts,omitempty"`
	Journey     []Milestone   `json:"journey,omitempty"`
	Persistence []Persistence `json:"lasting,omitempty"`  // for what was kept
	Remains     []string      `json:"remains,omitempty"`  // the bottleneck that is left, in words, one a direction
	LevelPct    float64       `json:"level_pct,omitzero"` // of each comparison's interval, so that all share 95%
	Pairs       int           `json:"pairs,omitzero"`     // of runs a comparison has at least
	// Restored is of `thru tune --rollback`: what the journals say was changed, and what became of it.
	Restored []Changed `json:"restored,omitempty"`
}
