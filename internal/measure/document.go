package measure

import "time"

// Schema names the document's version. A change that breaks readers raises the number.
const Schema = "thru.result/2"

// Document is everything one command measured: the stable JSON of `--json`,
// described in docs/result.md and docs/result.schema.json.
type Document struct {
	Schema    string            `json:"schema"`
	Thru      string            `json:"thru_version"`
	Command   string            `json:"command"`             // "test", "ladder"
	Arguments []string          `json:"arguments,omitempty"` // as given, secrets redacted
	Labels    map[string]string `json:"labels,omitempty"`    // labels of the result (--label), to find it by
	StartedAt time.Time         `json:"started_at"`
	ElapsedNs int64             `json:"elapsed_ns"`
	Error     *Error            `json:"error"`
	EndPoints []EndPoint        `json:"end_points"`
	Paths     []Path            `json:"paths,omitempty"`  // network paths between the end points
	Gates     []Gate            `json:"gates,omitempty"`  // conditions, the worst first
	Forced    bool              `json:"forced,omitempty"` // --force: measured although a gate failed
	Cells     []Cell            `json:"cells"`
	Findings  []Finding         `json:"findings,omitempty"` // causes that limit the whole, the binding one first
	Steps     []Step            `json:"steps,omitempty"`    // steps of an explanation, in order
	Plan      *Planned          `json:"plan,omitempty"`     // the plan that it came from
	Groups    []Group           `json:"groups,omitempty"`   // for a plan: totals of the cells that ran at the same time
	Ladder    *Ladder           `json:"ladder,omitempty"`   // for several rungs
	Targets   []Target          `json:"targets,omitempty"`  // targets of the plan

	Recommended []Recommended `json:"recommended,omitempty"` // where streams, windows or lengths were varied
	Comparisons []Comparison  `json:"comparisons,omitempty"` // for a plan with variants
	Tuning      *Tuning       `json:"tuning,omitempty"`      // of `thru tune`
	Transfer    *Transfer     `json:"transfer,omitempty"`    // of `thru transfer`
	Disks       []DiskTest    `json:"disks,omitempty"`       // of `thru disk`
	Inventories []Inventory   `json:"inventories,omitempty"` // of `thru inventory`; for a test with --hypervisor, the hypervisors of its end points
	Relations   []Relation    `json:"relations,omitempty"`   // for a test with --hypervisor: how its pairs are placed

	Ended    string       `json:"ended,omitempty"` // for an explanation: why it stopped
	Verdict  *Verdict     `json:"verdict,omitempty"`
	Advice   []string     `json:"advice,omitempty"`
	Warnings []string     `json:"warnings,omitempty"`
	Missing  []NotChecked `json:"not_checked,omitempty"`
}

// Error is why a command failed: a line and a hint for people, the exit code of the process for programs.
type Error struct {
	Message     string `json:"message"`
	Hint        string `json:"hint,omitempty"`
	ExitCode    int    `json:"exit_code"`
	Interrupted bool   `json:"interrupted,omitempty"` // the user ended it
}

// exitVerdict is the exit code of a measurement that is complete but does not pass.
const exitVerdict = 3

// EndPoint returns the end point of that name; nil where there is none.
func (d *Document) EndPoint(name string) *EndPoint {
	for i := range d.EndPoints {
		if d.EndPoints[i].Name == name {
			return &d.EndPoints[i]
		}
	}
	return nil
}

// FactsOf returns the facts of the end point of that name; nil where they are not known.
func (d *Document) FactsOf(name string) *Facts {
	if e := d.EndPoint(name); e != nil {
		return e.Facts
	}
	return nil
}

// BrokeOff reports whether the command failed other than by its verdict. Then what it measured until then has not passed.
func (d *Document) BrokeOff() bool { return d.Error != nil && d.Error.ExitCode != exitVerdict }

// Local is the end point name of the machine that runs the command.
const Local = "local"

// PairName returns the name of a pair in messages.
func PairName(from, to string) string { return from + " -> " + to }

// EndPoint is a host that took part.
type EndPoint struct {
	Name   string `json:"name"` // `local` is where the command ran
	Addr   string `json:"addr,omitempty"`
	Thru   string `json:"thru_version,omitempty"`
	Speaks string `json:"program,omitempty"` // where it runs no agent: "iperf3 3.12"
	Facts  *Facts `json:"facts,omitempty"`

	Labels  map[string]string `json:"labels,omitempty"`
	ClockNs *int64            `json:"clock_ahead_ns,omitempty"` // its wall clock minus the controller's
	Lost    string            `json:"lost,omitempty"`           // why the connection to it was lost

	Captures  bool   `json:"captures,omitempty"`   // it can capture the packets of a test
	NoCapture string `json:"no_capture,omitempty"` // why not; both absent: not asked

	Knobs  []KnobState `json:"knobs,omitempty"`   // knobs that can be set there
	NoTune string      `json:"no_tune,omitempty"` // why none can be set; both absent: not asked

	Placement *Placement `json:"placement,omitempty"`    // for a test with --hypervisor: its virtual machine or host
	NoPlace   string     `json:"no_placement,omitempty"` // why that is not known; both absent: not asked

	NoPlaceCode string `json:"no_placement_code,omitempty"` // NoHypervisorRead; empty for all other reasons
}

// NoHypervisorRead is NoPlaceCode of a test whose hypervisors all failed: a warning names the reason of each.
const NoHypervisorRead = "no_hypervisor_read"

// Figure is a measured value with its uncertainty. Low and High are the smallest and greatest run, or for a single run its 1 s bins. The interval is absent
// where there are too few values for one.
type Figure struct {
	Value    float64  `json:"value"`
	Low      float64  `json:"low"`
	High     float64  `json:"high"`
	CI95Low  *float64 `json:"ci95_low,omitempty"`
	CI95High *float64 `json:"ci95_high,omitempty"`
	Runs     int      `json:"runs"`
	Basis    string   `json:"basis"`            // "runs" or "bins of a single run"
	Stable   *bool    `json:"stable,omitempty"` // absent: too short to decide
}

// CPUFigure is the CPU time that a cell cost at one end.
type CPUFigure struct {
	Pct         float64  `json:"machine_pct"`                // of the whole machine
	Cores       float64  `json:"cores_used"`                 // less the idle baseline
	MaxCore     int      `json:"busiest_core"`               // number of the busiest core
	MaxCorePct  float64  `json:"busiest_core_pct"`           // its utilization
	PctPerGbps  *float64 `json:"pct_per_gbps,omitempty"`     // percent of one core per Gb/s
	WorkerCores *float64 `json:"worker_cores_used,omitzero"` // of the worker process alone
	OtherCores  *float64 `json:"other_cores_used,omitzero"`  // of other processes; absent: there is no idle baseline of the host
}

// MemFigure is the memory of one end: of the whole machine at the end of the measured time, and the peak resident size of the worker process.
type MemFigure struct {
	Used   *int64 `json:"machine_used_bytes,omitempty"`
	Total  *int64 `json:"machine_total_bytes,omitempty"`
	Worker *int64 `json:"worker_peak_bytes,omitempty"`
}

// RFC6349 holds the three metrics of RFC 6349, section 4.
type RFC6349 struct {
	TransferTimeRatio *float64 `json:"transfer_time_ratio,omitempty"`
	EfficiencyPct     *float64 `json:"tcp_efficiency_pct,omitempty"`
	BufferDelayPct    *float64 `json:"buffer_delay_pct,omitempty"`
	BaseRTT           *int64   `json:"base_rtt_ns,omitempty"` // base of the buffer delay: the kernel's minimum RTT, else the idle one
}

// Reconciled compares the figures of both ends.
type Reconciled struct {
	SenderBps     float64 `json:"sender_bps"`
	ReceiverBps   float64 `json:"receiver_bps"`
	SentBytes     int64   `json:"sent_total_bytes"`
	AckedBytes    *int64  `json:"acked_total_bytes,omitempty"`
	ReceivedBytes int64   `json:"received_total_bytes"`
	DifferencePct float64 `json:"difference_pct"`     // of the totals
	OfRates       bool    `json:"of_rates,omitempty"` // the difference is that of the rates: a foreign end's bytes cover another span
	Note          string  `json:"note"`               // the difference in words
}

// Cell is one flow of the plan with all its runs and the figures over them.
type Cell struct {
	From     string  `json:"from"`
	To       string  `json:"to"`
	Label    string  `json:"name,omitempty"` // "4 streams, 800K"
	Group    int     `json:"group"`          // cells of one group ran at the same time
	Protocol string  `json:"protocol"`
	Streams  int     `json:"streams"`
	Window   Pair    `json:"window_bytes,omitzero"` // requested
	Length   Pair    `json:"length_bytes,omitzero"`
	IO       string  `json:"io,omitempty"` // data path used
	Spec     Spec    `json:"spec"`
	Baseline bool    `json:"beside,omitempty"`             // baseline: a short figure for comparison with the main one
	AtOnce   int     `json:"cells_at_once"`                // how many cells ran at the same time, this one included
	AskedPct float64 `json:"precision_asked_pct,omitzero"` // half-width of the 95% interval that the repeats aim for

	Goodput      *Figure          `json:"goodput_bps,omitempty"` // at the receiver
	Ceiling      *Ceiling         `json:"ceiling,omitempty"`
	RTTIdle      *int64           `json:"rtt_idle_ns,omitempty"`
	RTTLoaded    *int64           `json:"rtt_loaded_ns,omitempty"`
	SenderCPU    *CPUFigure       `json:"sender_cpu,omitempty"`
	ReceiverCPU  *CPUFigure       `json:"receiver_cpu,omitempty"`
	SenderMem    *MemFigure       `json:"sender_memory,omitempty"`
	ReceiverMem  *MemFigure       `json:"receiver_memory,omitempty"`
	Datagrams    *DatagramFigures `json:"datagrams,omitempty"`          // UDP
	LossPlaces   []LossPlace      `json:"loss_places,omitempty"`        // UDP: where datagrams were lost, largest first
	Transactions *Figure          `json:"transactions_per_s,omitempty"` // request/response
	Latency      *Latency         `json:"latency,omitempty"`            // request/response: all streams and runs that count
	UnderLoad    *UnderLoad       `json:"latency_under_load,omitempty"` // --latency
	Search       *Search          `json:"search,omitempty"`             // --search
	Checked      *Checked         `json:"verified,omitempty"`           // --verify: all streams and runs
	Retransmits  *int64           `json:"retransmits_segments,omitempty"`
	RFC6349      *RFC6349         `json:"rfc6349,omitempty"`
	Fairness     *float64         `json:"jain_fairness,omitempty"`
	MeanPacket   *float64         `json:"mean_packet_bytes,omitempty"`
	BDP          *int64           `json:"bdp_bytes,omitempty"`
	NeededWindow *int64           `json:"required_window_bytes,omitempty"`
	Scaling      *float64         `json:"stream_scaling,omitempty"` // T(P)/T(1) where T(1) was measured too
	Reconciled   *Reconciled      `json:"reconciled,omitempty"`
	Steady       *Steady          `json:"steady_state,omitempty"` // of the run shown
	Experiment   string           `json:"experiment,omitempty"`   // for an explanation: the experiment that this cell belongs to
	Rung         string           `json:"rung,omitempty"`         // for a ladder
	Axes         []Axis           `json:"axes,omitempty"`         // for a plan: the values that distinguish this cell
	Diagnosis
	Missing  []NotChecked `json:"not_checked,omitempty"`
	Warnings []string     `json:"warnings,omitempty"`
	Coded    []Warning    `json:"coded_warnings,omitempty"` // those of Warnings that have a code for programs
	Error    *Error       `json:"error,omitempty"`
	Runs     []Run        `json:"runs"`
}

// Warning is a warning with a code: its text, and what it means for the figures.
type Warning struct {
	Code  string `json:"code"`
	Text  string `json:"text"`
	Means string `json:"means"`
}

// Codes of warnings. All but WindowCut reduce a verdict to an indication.
const (
	SingleRun  = "single_run"
	FewRuns    = "few_runs"
	TwoGroups  = "two_groups"
	NotStable  = "not_stable"
	TooShort   = "too_short"
	EndedEarly = "ended_early"
	BusyHost   = "busy_host"
	WindowCut  = "window_cut"
)

// String returns the warning in words.
func (w Warning) String() string { return w.Text + ": " + w.Means }

// CodeOf returns the code of a warning of the cell; "" for a warning without a code.
func (c *Cell) CodeOf(warning string) string {
	for _, w := range c.Coded {
		if w.String() == warning {
			return w.Code
		}
	}
	return ""
}

// DatagramFigures cover all streams in the measured time of the runs that count. Rates are means of the runs; counts are sums.
type DatagramFigures struct {
	Bytes       int64    `json:"datagram_bytes"` // payload of one
	SentPps     *float64 `json:"sent_packets_per_s,omitempty"`
	ReceivedPps float64  `json:"received_packets_per_s"`
	OfferedBps  *float64 `json:"sent_bps,omitempty"` // payload, by the sender
	AskedBps    int64    `json:"asked_bps,omitzero"` // requested; 0: unlimited
	LossPct     float64  `json:"loss_pct"`           // of the datagrams that were sent over the life of the streams
	Sent        int64    `json:"sent_packets"`       // over the life of the streams, of all runs
	Received    int64    `json:"received_packets"`   // the same, without duplicates
	Lost        int64    `json:"lost_packets"`       // sent and never received
	Duplicates  int64    `json:"duplicate_packets"`
	Reordered   int64    `json:"reordered_packets"`
	ReorderMost int64    `json:"reorder_extent_packets"`
	JitterNs    *int64   `json:"jitter_ns,omitempty"`               // mean IPDV without sign; where an end reports no IPDV, its RFC 3550 jitter at the end
	DelayMeanNs *int64   `json:"delay_variation_mean_ns,omitempty"` // PDV (RFC 5481): one-way delay minus the least one, corrected for clock skew
	DelayP50Ns  *int64   `json:"delay_variation_p50_ns,omitempty"`  // PDV, as the next ones
	DelayP99Ns  *int64   `json:"delay_variation_p99_ns,omitempty"`
	DelayP999Ns *int64   `json:"delay_variation_p99_9_ns,omitempty"`
	DelayMaxNs  *int64   `json:"delay_variation_max_ns,omitempty"`
	SkewPPM     *float64 `json:"clock_skew_ppm,omitempty"`        // removed from the PDV: how much faster the receiver's clock runs than the sender's
	Fragments   int      `json:"fragments_per_datagram,omitzero"` // above 1 where a datagram does not fit the MTU
}

// Places where datagrams are lost, in the order in which they pass them.
const (
	LossSender   = "sender socket"
	LossQdisc    = "sender qdisc"
	LossSendNIC  = "sender interface"
	LossPath     = "path"
	LossRing     = "receiver ring"
	LossRecvNIC  = "receiver interface"
	LossBacklog  = "receiver backlog"
	LossFragment = "receiver reassembly"
	LossSocket   = "receiver socket"
	// Where an end has no agent, its counters are not known, and the remaining loss may be at that end.
	LossSenderOrPath   = "sender or path"
	LossPathOrReceiver = "path or receiver"
)

// LossPlace is one place of loss with its counter.
type LossPlace struct {
	Place    string `json:"place"`
	EndPoint string `json:"end_point,omitempty"` // none for the path
	Packets  int64  `json:"packets"`
	Counter  string `json:"counter"`            // "Udp.RcvbufErrors", or "the rest" for the path
	Estimate bool   `json:"estimate,omitempty"` // packets is an estimate: each count stands for several datagrams
	Fix      string `json:"remedy,omitempty"`
}

// UnderLoad compares request latency on an idle path with request latency during the traffic, on separate connections.
type UnderLoad struct {
	Idle           *Latency `json:"idle,omitempty"`
	Loaded         *Latency `json:"loaded,omitempty"`
	AddedNs        *int64   `json:"added_p50_ns,omitempty"`           // loaded median minus idle median: the queueing delay
	Grade          string   `json:"grade,omitempty"`                  // grade of AddedNs, "A+" to "F"; absent where AddedNs is not known
	Responsiveness *float64 `json:"round_trips_per_minute,omitempty"` // 60 s over the mean of the loaded ones
}

// Search is the outcome of a search for the capacity of a path with UDP.
type Search struct {
	CapacityBps   *float64 `json:"capacity_bps,omitempty"`    // payload received in the best second (RFC 9097, section 5)
	IPCapacityBps *float64 `json:"ip_capacity_bps,omitempty"` // the same with IP and UDP headers
	LossPct       *float64 `json:"loss_pct,omitempty"`        // loss in that second
	LosslessBps   *float64 `json:"lossless_bps,omitempty"`    // the highest payload rate of a trial that lost nothing
	Rising        bool     `json:"still_rising,omitempty"`    // the rate still rose at the end of the time: the capacity may be higher
	Trials        []Trial  `json:"trials,omitempty"`
	Why           string   `json:"why,omitempty"` // what ended the search, or why it found no figure
}

// IsConfirmed reports whether the rate without loss rests on a longer trial. That trial is the only one that repeats a rate that has passed before.
func (s *Search) IsConfirmed() bool {
	passed := map[float64]bool{}
	for _, t := range s.Trials {
		if t.Pass && passed[t.AskedBps] {
			return true
		}
		passed[t.AskedBps] = passed[t.AskedBps] || t.Pass
	}
	return false
}

// Trial is one step of the search for the highest rate without loss.
type Trial struct {
	AskedBps    float64 `json:"asked_bps"`
	ReceivedBps float64 `json:"received_bps"`
	Sent        int64   `json:"sent_packets"`
	Lost        int64   `json:"lost_packets"`
	Seconds     float64 `json:"seconds"`
	Pass        bool    `json:"pass"` // nothing was lost, and the sender held the rate
}

// Ceiling is the most TCP payload that the link can carry (methods.md, formula 4).
type Ceiling struct {
	Bps       float64 `json:"bps"`
	LinkBps   int64   `json:"link_bps"`
	LinkFrom  string  `json:"link_rate_from"`               // "stated" or "interface NAME at END POINT"
	LinkLayer string  `json:"link_layer"`                   // "l1": with preamble and gap; "l2": frames only
	MTU       int     `json:"mtu_bytes"`                    // inside a tunnel the inner one
	VLANs     int     `json:"vlan_tags,omitzero"`           // on each frame, of 4 bytes
	Encap     int     `json:"encapsulation_bytes,omitzero"` // headers of tunnels on each frame
	SharePct  float64 `json:"share_pct"`                    // goodput as a share of Bps
}

// Steady describes the stability of a run over time.
type Steady struct {
	Checked   bool      `json:"checked"` // false: under 5 bins
	Truncated int       `json:"truncated_bins"`
	SlopePct  float64   `json:"slope_pct,omitzero"`   // slope over the remaining bins, as a share of their mean (Theil-Sen)
	HalvesPct float64   `json:"halves_pct,omitzero"`  // difference between the halves
	Levels    []float64 `json:"levels_bps,omitempty"` // two levels, where the rate changed during the run
	Steady    bool      `json:"steady"`
	Why       string    `json:"why,omitempty"`
}

// Run is one repetition of a cell.
type Run struct {
	Index     int       `json:"index"`
	StartedAt time.Time `json:"started_at"`
	WaitedNs  int64     `json:"waited_for_others_ns,omitzero"`
	// MeasuredFrom is when the measured time began: the start of the traffic plus its ramp, by the controller's clock.
	MeasuredFrom *time.Time `json:"measured_from,omitempty"`
	Goodput      *float64   `json:"goodput_bps,omitempty"`
	Partial      bool       `json:"partial,omitempty"` // ended early: the figures cover the time until then
	Flows        []Flow     `json:"flows"`
	Timing       *Timing    `json:"timing,omitempty"` // where several cells ran at once on synchronised clocks
	Error        *Error     `json:"error,omitempty"`
}

// Span returns the measured time by the controller's clock, to align readings from elsewhere. ok is false where nothing was measured.
func (r *Run) Span() (begin, end time.Time, ok bool) {
	for _, f := range r.Flows {
		for _, e := range []*Evidence{f.Receiver, f.Sender} {
			if e == nil || e.MeasuredNs <= 0 {
				continue
			}
			begin = r.StartedAt.Add(time.Duration(r.WaitedNs + e.RampNs))
			if r.MeasuredFrom != nil {
				begin = *r.MeasuredFrom
			}
			return begin, begin.Add(time.Duration(e.MeasuredNs)), true
		}
	}
	return begin, end, false
}

// Flow is the traffic of one run with the evidence of both ends.
type Flow struct {
	From     string    `json:"from"`
	To       string    `json:"to"`
	Sender   *Evidence `json:"sender,omitempty"`
	Receiver *Evidence `json:"receiver,omitempty"`
	// Captures are the packets of the flow at each capture point.
	Captures []Capture    `json:"captures,omitempty"`
	Crossing *Crossing    `json:"crossing,omitempty"`    // where two of them can be compared
	Missing  []NotChecked `json:"not_checked,omitempty"` // of captures
}

// Verdict compares the main cells with a known link rate.
type Verdict struct {
	Pass bool `json:"pass"`
	// Inconclusive is set where the hosts, the traffic generator or its control could not have shown the rate. Then Pass is false and means nothing for the
	// path.
	Inconclusive bool   `json:"inconclusive,omitempty"`
	Undecided    string `json:"undecided_by,omitempty"` // why, without the share; Reason has both
	Do           string `json:"do,omitempty"`           // what would decide it
	// Judged is how many of Rungs with a link between their ends were judged; 0 without a ladder.
	Judged   int     `json:"judged_rungs,omitempty"`
	Rungs    int     `json:"rungs,omitempty"`
	Required float64 `json:"required_share_pct"` // share of the ceiling
	Share    float64 `json:"worst_share_pct"`
	Reason   string  `json:"reason"`
}
