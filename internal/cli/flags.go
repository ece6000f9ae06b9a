package cli

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/stat"
	"thru/internal/unit"
)

// flowFlags say how data is moved. They mean what they mean in iperf3, where iperf3 has them.
type flowFlags struct {
	Time       string `group:"How much" short:"t" placeholder:"SECONDS" help:"Measured time of a run; the ramp comes on top."`
	Window     string `group:"Sockets" short:"w" placeholder:"SIZE" help:"Socket buffer of both ends, or SENDER/RECEIVER (default: the kernel tunes it)."`
	Length     string `group:"How much" short:"l" aliases:"len" placeholder:"SIZE" help:"Bytes per send and receive call, or SEND/RECEIVE (default 128K)."`
	Omit       string `group:"How much" short:"O" placeholder:"SECONDS" help:"Ramp that is not counted (default: 20 round trips, at least 1 s)."`
	Congestion string `group:"Sockets" short:"C" aliases:"linux-congestion,tcp-congestion" placeholder:"NAME" help:"Congestion control of both ends, such as cubic, reno or bbr."`
	MSS        int    `group:"Sockets" short:"M" name:"set-mss" aliases:"mss" placeholder:"BYTES" help:"Maximum segment size."`
	NoDelay    bool   `group:"Sockets" short:"N" name:"no-delay" aliases:"nodelay" help:"Switch Nagle's algorithm off."`
	ZeroCopy   bool   `group:"CPU" short:"Z" name:"zerocopy" help:"Send without copying (sendfile), as iperf3 does."`
	Lean       bool   `group:"CPU" name:"lean" help:"Copy at neither end: sendfile, and a receiver that drops the data. Shows what the path carries without the hosts' copying."`
	Affinity   string `group:"CPU" short:"A" placeholder:"N[,M]" help:"CPU for the local end, and for the peer's; off leaves both to the scheduler."`
	DSCP       string `group:"Sockets" name:"dscp" placeholder:"VALUE" help:"0 to 63, or a name such as ef, af41, cs1."`
	IPv4       bool   `group:"Sockets" short:"4" name:"version4" xor:"family" help:"Only IPv4."`
	IPv6       bool   `group:"Sockets" short:"6" name:"version6" xor:"family" help:"Only IPv6."`
	IO         string `group:"CPU" name:"io" placeholder:"NAME" help:"Force a data path: copy, sendfile, lean or portable; with -u gso, mmsg or portable."`
	LinkRate   string `group:"Output" name:"link-rate" type:"joined" placeholder:"RATE" help:"Nominal rate of the link, such as 10G, for ceiling and verdict (1G/l2: counted in frames, as shapers do). Of several rungs: of the topmost, or RUNG=RATE,RUNG=RATE."`
	Together   bool   `group:"Ends and directions" name:"together" help:"Do not queue behind other clients of the end point that say so too."`
	formFlags
	storeFlags
}

// trafficFlags are those and how often it is measured.
type trafficFlags struct {
	flowFlags
	Interval  string `group:"Output" short:"i" default:"1" placeholder:"SECONDS" help:"Spacing of the live figures; 0 for none."`
	Repeat    int    `group:"How much" name:"repeat" placeholder:"N" help:"Runs of each cell (default 1)."`
	Precision string `group:"How much" name:"precision" placeholder:"PCT" help:"Repeat until the 95% interval is this narrow, such as 2.5%: 5 to 15 runs."`
	Force     bool   `group:"Output" name:"force" help:"Measure although a gate fails (thru check), and say so in the result."`
	silent    bool
}

// request turns the flags into plan's terms.
func (f *trafficFlags) request(defaultTime time.Duration) (plan.Request, error) {
	r, err := f.flowFlags.request(defaultTime)
	if err != nil {
		return r, err
	}
	r.Repeat, r.Interval = f.Repeat, 0
	err = readAll([]reading{
		{"-i", f.Interval, "1 or 0.5", func(s string) (err error) { r.Interval, err = unit.ParseDuration(s); return }},
		{"--precision", f.Precision, "2.5%", func(s string) (err error) { r.PrecisionPct, err = unit.ParsePercent(s); return }},
	})
	if r.Interval == 0 { // iperf3's "no reports on the way"
		r.Interval, f.silent = time.Second, true
	}
	return r, err
}

// request turns the flags into plan's terms.
func (f *flowFlags) request(defaultTime time.Duration) (r plan.Request, err error) {
	r = plan.Request{Duration: defaultTime, Interval: time.Second, Congestion: f.Congestion, MSS: f.MSS, NoDelay: f.NoDelay, IO: f.IO, Together: f.Together, RampSet: f.Omit != ""}
	if f.IPv4 {
		r.Family = 4
	}
	if f.IPv6 {
		r.Family = 6
	}
	if err := f.path(&r); err != nil {
		return r, err
	}
	return r, readAll([]reading{
		{"-t", f.Time, "10, 0.5 or 1m", func(s string) (err error) { r.Duration, err = unit.ParseDuration(s); return }},
		{"-O", f.Omit, "2 or 0.5", func(s string) (err error) { r.Ramp, err = unit.ParseDuration(s); return }},
		{"-w", f.Window, "4M, 800K or 1M/256K", func(s string) (err error) { r.Window, err = sizePair(s); return }},
		{"-l", f.Length, "128K, 1M or 64K/128K", func(s string) (err error) { r.Length, err = sizePair(s); return }},
		{"--dscp", f.DSCP, "46, ef or af41", func(s string) (err error) { r.DSCP, err = plan.ParseDSCP(s); return }},
		{"-A", f.Affinity, "0, 0,1 or off", func(s string) (err error) {
			if r.Unplaced = s == "off"; !r.Unplaced {
				r.LocalCPU, r.PeerCPU, err = parseAffinity(s)
			}
			return
		}},
	})
}

// reading is the text of a flag and what reads it.
type reading struct {
	flag, text, like string
	parse            func(string) error
}

// readAll reads those that were given.
func readAll(flags []reading) error {
	for _, f := range flags {
		if f.text == "" {
			continue
		}
		if err := f.parse(f.text); err != nil {
			return fault.Usagef(fmt.Sprintf("%s takes a value such as %s", f.flag, f.like), "%s %s: %w", f.flag, f.text, err)
		}
	}
	return nil
}

// path is the data path that the flags ask for: -Z and --lean wish for one,
// --io insists on it.
func (f *flowFlags) path(r *plan.Request) error {
	switch {
	case f.ZeroCopy && f.Lean, (f.ZeroCopy || f.Lean) && f.IO != "":
		return fault.Usagef("take one of -Z, --lean and --io NAME", "more than one data path is asked for")
	case f.ZeroCopy:
		r.IO = measure.IOSendfile
	case f.Lean:
		r.IO = measure.IOLean
	default:
		r.IOForced = f.IO != ""
	}
	return nil
}

// sizePair reads SIZE or SENDER/RECEIVER; zero is no size that can be set.
func sizePair(s string) (measure.Pair, error) {
	tx, rx, err := unit.ParseSizePair(s)
	if err == nil && (tx == 0 || rx == 0) {
		err = fmt.Errorf("zero is no size; leave the flag out for the default")
	}
	return measure.Pair{Send: tx, Recv: rx}, err
}

// linkRate reads the nominal rate that the user states of a link.
func linkRate(text string) (stat.Link, error) {
	if text == "" {
		return stat.Link{}, nil
	}
	if strings.ContainsAny(text, ",=") {
		return stat.Link{}, fault.Usagef("state one rate, such as 10G; RUNG=RATE,RUNG=RATE is for a ladder of several rungs", "--link-rate %s: this is of one path", text)
	}
	rate, layer, err := unit.ParseLinkRate(text)
	if err == nil && rate == 0 {
		err = fmt.Errorf("a link of rate zero carries nothing")
	}
	if err != nil {
		return stat.Link{}, fault.Usagef("--link-rate takes a value such as 10G, 2.5G or 1G/l2", "--link-rate %s: %w", text, err)
	}
	return stat.Link{RateBps: rate, Layer: layer}, nil
}

// parseAffinity reads iperf3's n or n,m: the local CPU, then the peer's.
func parseAffinity(s string) (local, peer *int, err error) {
	first, second, both := strings.Cut(s, ",")
	a, err := strconv.Atoi(first)
	if err != nil || a < 0 || a > 1023 {
		return nil, nil, fmt.Errorf("%q is no CPU number", first)
	}
	if !both {
		return &a, nil, nil
	}
	b, err := strconv.Atoi(second)
	if err != nil || b < 0 || b > 1023 {
		return nil, nil, fmt.Errorf("%q is no CPU number", second)
	}
	return &a, &b, nil
}

// typedFlags are the flags of a command line in order, each once, by their short
// names where they have one.
func typedFlags(k *kong.Context) (names []string) {
	for _, p := range k.Path {
		if p.Flag == nil {
			continue
		}
		name := "--" + p.Flag.Name
		if p.Flag.Short != 0 {
			name = "-" + string(p.Flag.Short)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// typedOf are the typed flags that are some of these, typedBut the others.
func (e *env) typedOf(these ...string) []string {
	return slices.DeleteFunc(slices.Clone(e.typed), func(name string) bool { return !slices.Contains(these, name) })
}

func (e *env) typedBut(these ...string) []string {
	return slices.DeleteFunc(slices.Clone(e.typed), func(name string) bool { return slices.Contains(these, name) })
}

// flagsDo begins a sentence about flags: "-P and -t do".
func flagsDo(names []string) string {
	if len(names) == 1 {
		return names[0] + " does"
	}
	return list(names) + " do"
}

// joinedFlag reads a flag whose values add up, by commas or by naming it again.
func joinedFlag(ctx *kong.DecodeContext, to reflect.Value) error {
	before := to.String()
	if err := readOnce(ctx, to); err != nil || before == "" {
		return err
	}
	to.SetString(before + "," + to.String())
	return nil
}

// onceFlag reads a flag of which a second value would mean another path.
func onceFlag(ctx *kong.DecodeContext, to reflect.Value) error {
	before := to.String()
	if err := readOnce(ctx, to); err != nil || before == "" || before == to.String() {
		return err
	}
	return fmt.Errorf("it is given as %s and as %s", before, to)
}

func readOnce(ctx *kong.DecodeContext, to reflect.Value) error {
	var value string
	if err := ctx.Scan.PopValueInto("string", &value); err != nil {
		return err
	}
	if value == "" {
		return errors.New("it is empty")
	}
	to.SetString(value)
	return nil
}

// dropRepeats leaves out of lists of flags what was given before: twice says no more than once.
func dropRepeats(k *kong.Context) {
	for _, f := range k.Flags() {
		all, _ := f.Target.Interface().([]string)
		for i := len(all) - 1; i > 0; i-- {
			if slices.Contains(all[:i], all[i]) {
				all = slices.Delete(all, i, i+1)
				f.Target.Set(reflect.ValueOf(all))
			}
		}
	}
}
