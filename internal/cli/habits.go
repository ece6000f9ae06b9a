package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"thru/internal/fault"
	"thru/internal/unit"
)

// habit is a flag of iperf3 or iperf2 that thru spells otherwise or does not have, with the hint for a user
// who types it. In advice, {WORD} stands for the given value, or for WORD if there was none.
type habit struct {
	flags  string // all spellings, separated by spaces
	of     string // the programs that have the flag
	verb   string // only for this command; empty: for any
	advice string
}

// Programs of a habit.
const (
	three = "iperf3"
	two   = "iperf2"
	both  = "iperf3 and iperf2"
)

// Habits of both roles and of the server come first: there the same letter can mean something else.
var (
	ownHabits = slices.Concat(rolesAndOutput, serveHabits)
	farHabits = slices.Concat(trafficHabits, oldTraffic) // for the end that measures
)

// rolesAndOutput are the habits about client, server and output.
var rolesAndOutput = []habit{
	{"-c --client", both, "", "name only the end point: thru test {HOST}; for an iperf3 server iperf3://{HOST}, for iperf2 iperf2://{HOST}"},
	{"-s --server", both, "serve", "leave it out: `thru serve` is the server"},
	{"-s --server", both, "", "run `thru serve` as the server; also for iperf3 and iperf2 clients: thru serve --iperf"},
	{"-D --daemon", both, "", "leave it out: `thru serve` stays in the foreground, for a service manager; as iperf3 does it: thru iperf3 -s -D"},
	{"-1 --one-off --singleclient", both, "", "leave it out: `thru serve` serves until it is stopped; as iperf3 does it: thru iperf3 -s -1"},
	{"-f --format", both, "", "leave it out: text chooses the unit, --json has bit/s"},
	{"--verbose", three, "", "leave it out: all that was measured is in --json and in the report of --html FILE"},
	{"-V --ipv6_domain", both, "", "for iperf2's -V (IPv6): -6; for iperf3's -V (more detail): --html FILE or --json"},
	{"-J", three, "", "take thru's own document of a ladder: --json; for iperf3's: thru test -J"},
	{"--json-stream --json-stream-full-output", three, "", "for iperf3's lines of JSON: thru test --json-stream; with -J the whole document too; thru's own: --json"},
	{"--logfile -o --output", both, "", "redirect the output: thru test ... > {FILE}; for a report: --html FILE"},
	{"--forceflush", three, "", "leave it out: every line is written at once"},
	{"--timestamps", three, "", "leave it out: --json has all times; as iperf3 prints them: thru iperf3 --timestamps"},
	{"--debug", three, "", "leave it out: each error names its cause and what to do"},
	{"--title", three, "", "leave it out: the report names both ends; as iperf3 prints it: thru iperf3 -T {TITLE}"},
	{"-T --ttl", both, "", "for iperf2's -T (time to live): leave it out, thru has no multicast; for iperf3's -T (title): thru iperf3 -T {TITLE}"},
	{"--extra-data", three, "", "leave it out, or keep it in the name of the report: --html FILE; in iperf3's JSON: thru iperf3 --extra-data"},
	{"-v --version", both, "", "run thru version"},
	{"-I --pidfile --stdin", both, "", "for iperf3's -I (pid file): thru iperf3 -s -I {FILE}; iperf2's -I (send stdin): thru sends from memory only"},
	{"-e --enhanced", two, "", "leave it out: retransmits, window, RTT, CPU and more are always shown"},
	{"-E", two, "", "leave it out: retransmits, window, RTT, CPU and more are always shown"},
	{"-x --reportexclude", two, "", "leave it out; for the figures alone: --json"},
	{"-y --reportstyle", two, "", "for programs: --json"},
	{"-m --print_mss --mptcp", both, "", "the report shows the MSS (iperf2's -m); thru has no MPTCP (iperf3's -m): measure plain TCP, or with iperf3 itself"},
	{"--hide-ips", two, "", "leave it out: take joined names (thru join NAME), which the report shows"},
	{"--sum-only", two, "", "leave it out: thru prints sums; each stream is in --json and --html FILE"},
	{"--histograms --udp-histogram", two, "", "leave it out: --latency and --rr store the whole distribution"},
}

// trafficHabits are of both programs, or of iperf3 only.
var trafficHabits = []habit{
	{"-S --tos", both, "", "take the code point: {TOS}"},
	{"--flowlabel", three, "", "leave it out: thru sets no IPv6 flow label; the kernel gives each connection its own"},
	{"-L --listenport", both, "", "leave it out: both directions use the connections that this end opens (iperf2's -L), and thru sets no flow label (iperf3's -L)"},
	{"--xbind", three, "", "leave it out: thru measures TCP and UDP, no SCTP"},
	{"-X --peer-detect --peerdetect", both, "", "leave it out: thru's ends always exchange their versions (iperf2's -X), and thru has no SCTP (iperf3's -X)"},
	{"--sctp --nstreams", three, "", "thru measures TCP and UDP (-u), no SCTP: leave it out, or measure with iperf3 itself"},
	{"-F --file --fileinput", both, "", "leave it out: thru measures the network, and sends from memory"},
	{"--fq-rate", both, "", "take -b {RATE}: the kernel paces TCP at that rate"},
	{"--no-fq-socket-pacing --pacing-timer", three, "", "leave it out: the kernel paces TCP (-b), and thru sends UDP in bursts of at most 250 us"},
	{"--connect-timeout --rcv-timeout --snd-timeout --cntl-ka --idle-timeout", three, "", "leave it out: thru limits every wait"},
	{"--repeating-payload", three, "", "leave it out: thru's data does not compress; --verify compares every byte"},
	{"--udp-counters-64bit", three, "", "leave it out: thru always counts datagrams with 64 bits"},
	{"--gsro", three, "", "leave it out: thru uses GSO and GRO where they work; --io mmsg disables them"},
	{"--skip-rx-copy", three, "", "take --lean: the receiver discards the data without copying it, and the sender does not copy either"},
}

// oldTraffic is of iperf2 only.
var oldTraffic = []habit{
	{"--dualtest", two, "", "take --bidir for both directions at once"},
	{"-d", both, "", "for iperf2's -d (both directions at once): --bidir; for iperf3's -d (debug): leave it out"},
	{"-r --tradeoff", two, "", "leave it out: both directions are measured, one after the other"},
	{"--full-duplex", two, "", "take --bidir --one-connection for both directions on one connection"},
	{"-C --compatibility", two, "", "leave it out: thru detects what the other end supports; -C NAME sets the congestion control"},
	{"--bounceback --bounceback-period --bounceback-hold --bounceback-no-quickack", two, "", "take --rr for requests and responses, with -l REQUEST/RESPONSE and --rate N per second"},
	{"--bounceback-congest", two, "", "take --latency for latency under load"},
	{"--trip-times", two, "", "leave it out: --rr and --latency measure round trips, which need no common clock"},
	{"--isochronous --ipg --burst-size --burst-period", two, "", "take -u -b RATE -l SIZE: thru sends at an even rate, not in frames"},
	{"--connect-only", two, "", "take --crr for connections one after the other"},
	{"--connect-retries", two, "", "leave it out: run thru again when the far end is up"},
	{"--near-congestion --tcp-write-prefetch --tcp-write-times --tcp-quickack", two, "", "leave it out: thru always measures how long a sender blocks in its calls"},
	{"--tcp-rx-window-clamp", two, "", "take -w SENDER/RECEIVER: a small receive buffer limits the window"},
	{"--txdelay-time --txstart-time --no-connect-sync", two, "", "leave it out: all streams start together once all are connected; to delay the test, start thru later"},
	{"--no-udp-fin", two, "", "leave it out: the ends agree on the end of the test over the control connection"},
	{"--incr-dstip --incr-dstport --incr-srcip --incr-srcport --sum-dstip", two, "", "leave it out: --cport PORT counts source ports up from there; each stream of -P has its own port"},
	{"--local-only", two, "", "leave it out, or bind to the device: --bind-dev DEVICE"},
	{"--permit-key --permit-key-timeout", two, "", "leave it out: the join string admits a client: thru join NAME"},
	{"-z --realtime", two, "", "leave it out, or start thru with chrt; -A N gives it a CPU"},
	{"-U --single_udp", two, "", "leave it out: each stream has its own thread"},
	{"-H --ssm-host", two, "", "leave it out: thru has no multicast"},
	{"--tap-dev", two, "", "leave it out: thru receives by sockets"},
}

// serveHabits are of iperf servers; the others are for the end that measures.
var serveHabits = []habit{
	{"--server-bitrate-limit", three, "serve", "take --max-rate {RATE}, the limit of one test"},
	{"--server-max-duration", three, "serve", "take --max-time {SECONDS}"},
	{"--server-bitrate-limit --server-max-duration --rsa-private-key-path --authorized-users-path --time-skew-threshold", three, "", "give it at the serving end: thru serve --help"},
}

// habitOf returns the habit of an unknown flag, or nil.
func habitOf(list []habit, verb, flag string) *habit {
	for i := range list {
		if h := &list[i]; (h.verb == "" || h.verb == verb) && slices.Contains(strings.Fields(h.flags), flag) {
			return h
		}
	}
	return nil
}

// hint returns the advice with the given value.
func (h *habit) hint(value string) string {
	before, rest, found := strings.Cut(h.advice, "{")
	if !found {
		return h.advice
	}
	word, _, _ := strings.Cut(rest, "}")
	switch {
	case word == "TOS":
		value = "--dscp " + codePoint(value)
	case value == "":
		value = word
	}
	return strings.ReplaceAll(before+"{"+rest, "{"+word+"}", value)
}

// codePoint converts a type-of-service byte to its upper six bits, the code point (RFC 2474); names stay as
// they are.
func codePoint(tos string) string {
	n, err := strconv.ParseUint(tos, 0, 8)
	switch {
	case err == nil:
		return strconv.FormatUint(n>>2, 10)
	case tos != "":
		return tos
	}
	return "N, a quarter of the byte"
}

// valueOf returns the value given to a flag: -xVALUE, -abx VALUE, --long=VALUE or --long VALUE.
func valueOf(args []string, flag string) string {
	for i, a := range args {
		tail, is := strings.CutPrefix(a, flag)
		if long := strings.HasPrefix(flag, "--"); !long && strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") {
			_, tail, is = strings.Cut(a, flag[1:])
		} else if tail != "" {
			tail, is = strings.CutPrefix(tail, "=")
		}
		switch {
		case is && tail != "":
			return tail
		case is && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			return args[i+1]
		}
	}
	return ""
}

// algorithms are names of congestion controls that can follow iperf2's -Z.
var algorithms = []string{"cubic", "reno", "bbr", "bbr2", "bbr3", "dctcp", "htcp", "vegas", "westwood", "bic", "cdg", "highspeed",
	"hybla", "illinois", "lp", "nv", "scalable", "veno", "yeah", "newreno", "prague"}

// misread refuses what kong would misread: iperf2's -Z ALGORITHM. Here -Z takes no value, so the name would
// become the end point.
func misread(args []string) error {
	for i, a := range args[:max(len(args)-1, 0)] {
		if name := args[i+1]; a == "-Z" && slices.Contains(algorithms, name) {
			return fault.Usagef("set the congestion control by -C "+name, "-Z %s is iperf2's spelling", name)
		}
	}
	return nil
}

// usage adds a hint to a parse error: the right spelling if the flag is a habit, else where to look.
func usage(args []string, err error) error {
	var p *kong.ParseError
	all, verb := &kong.Application{Node: &kong.Node{}}, ""
	if errors.As(err, &p) && p.Context != nil {
		all = p.Context.Model
		verb, _, _ = strings.Cut(p.Context.Command(), " ")
	}
	if f := (*fault.Error)(nil); errors.As(err, &f) {
		return f
	}
	flag, unknown := unknownFlag(err)
	if value := badValue(p, err); value != nil {
		return value
	}
	switch name := dashed(args); {
	case unknown && name != "":
		return fault.Usagef("write ./"+name+" for the file of that name", "%s begins like a flag", name)
	case unknown:
		return unknownFlagUsage(all, args, verb, flag, err)
	}
	if unknown := unknownCommand(p, err); unknown != nil {
		return unknown
	}
	if verb == "" {
		return fault.Usagef("see `thru --help`", "%w", err)
	}
	return fault.Usagef("see `thru "+verb+" --help`", "%w", err)
}

// unknownCommand words kong's error about a word in place of a command; nil for any other error.
func unknownCommand(p *kong.ParseError, err error) error {
	rest, unexpected := strings.CutPrefix(err.Error(), "unexpected argument ")
	if !unexpected || p == nil || p.Context == nil {
		return nil
	}
	at, path := p.Context.Model.Node, "thru "
	for _, x := range p.Context.Path {
		if x.Command != nil {
			at, path = x.Command, path+x.Command.Name+" "
		}
	}
	var names []string
	for _, n := range at.Children {
		if !n.Hidden {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	word, _, _ := strings.Cut(rest, ",")
	hint := "see `" + path + "--help`"
	if near := fault.Nearest(word, names); near != "" {
		hint = "did you mean `" + path + near + "`? Or " + hint
	}
	return fault.Usagef(hint, "unknown command: %s%s", path, word)
}

// misvalued matches kong's errors about a flag's value: it is missing, it is another flag, or it is no
// number.
var misvalued = unit.Pattern(`^--([a-z0-9-]+): (?:missing value|expected .* but got "(.*?)"( \(<EOL>\))?)`)

// badValue words an error about a flag's value; nil for any other error.
func badValue(p *kong.ParseError, err error) error {
	m := misvalued().FindStringSubmatch(err.Error())
	if m == nil || p == nil {
		return nil
	}
	all := p.Context.Flags()
	i := slices.IndexFunc(all, func(f *kong.Flag) bool { return f.Name == m[1] })
	if i < 0 {
		return nil
	}
	name, value := flagName(all[i]), m[2]
	hint := name + " " + all[i].FormatPlaceHolder() + ": " + all[i].Help
	_, number := strconv.ParseFloat(value, 64)
	switch {
	case value == "", m[3] != "":
		return fault.Usagef(hint, "%s needs a value", name)
	case number == nil && value[0] == '-':
		return fault.Usagef(hint, "%s takes no negative number such as %s", name, value)
	case value[0] == '-':
		return fault.Usagef(hint, "%s needs a value, and %s is a flag", name, value)
	}
	return fault.Usagef(hint, "%s %s is not a number", name, value)
}

// dashed returns an argument that is the name of an existing file, such as -x.pcap, and no flag.
func dashed(args []string) string {
	for _, a := range args {
		if info, err := os.Stat(a); len(a) > 2 && a[0] == '-' && err == nil && !info.IsDir() {
			return a
		}
	}
	return ""
}

// unknownFlag extracts the flag from kong's message; kong offers no other access to it.
func unknownFlag(err error) (flag string, unknown bool) {
	rest, unknown := strings.CutPrefix(err.Error(), "unknown flag ")
	flag, _, _ = strings.Cut(rest, ",")
	return flag, unknown
}

func unknownFlagUsage(all *kong.Application, args []string, verb, flag string, err error) error {
	command := strings.TrimSpace("thru " + verb)
	if verb == "service" && (hasFlag(all, "serve", flag) || hasFlag(all, "control", flag)) {
		return fault.Usagef("flags of the service go after --: thru service install -- "+flag+" ...", "%s is a flag of the service, not of %s", flag, command)
	}
	if verb != "test" && hasFlag(all, "test", flag) {
		return fault.Usagef(elsewhere(verb, flag), "%s is a flag of thru test, not of %s", flag, command)
	}
	lead := ""
	h := habitOf(ownHabits, verb, flag)
	if h == nil {
		if h = habitOf(farHabits, verb, flag); verb == "serve" {
			lead = "leave it out here; at the client: "
		}
	}
	if h != nil {
		return fault.Usagef(lead+h.hint(valueOf(args, flag)), "%s is a flag of %s, not of %s", flag, h.of, command)
	}
	if !strings.HasPrefix(flag, "--") { // kong would list every letter
		return fault.Usagef("see `"+command+" --help`", "unknown flag %s", flag)
	}
	return fault.Usagef("see `"+command+" --help`", "%w", err)
}

// elsewhere returns the hint for a flag that another command has.
func elsewhere(verb, flag string) string {
	switch verb {
	case "":
		return fmt.Sprintf("begin with a command: thru test %s ...", flag)
	case "serve":
		return fmt.Sprintf("leave it out here, and give it at the client: thru test %s ...", flag)
	default:
		return fmt.Sprintf("for one test: thru test %s ...", flag)
	}
}

// hasFlag tells whether a command has a flag.
func hasFlag(all *kong.Application, verb, flag string) bool {
	for _, n := range all.Children {
		for _, f := range n.Flags {
			names := append([]string{f.Name}, f.Aliases...)
			short := flag == "-"+string(f.Short)
			if n.Name == verb && (short || slices.Contains(names, strings.TrimLeft(flag, "-"))) {
				return true
			}
		}
	}
	return false
}
