package planfile

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/unit"
)

// Directions of a pair.
const (
	forward = "forward" // from -> to
	reverse = "reverse"
	both    = "both"  // one after the other
	bidir   = "bidir" // at the same time
)

// traffic is what each pair moves.
type traffic struct {
	plan.Request
	direction string
	endPoints int // flows of a pair at once, each with its own workers
}

// setting is a key of the traffic: what it takes, and how it changes a request.
type setting struct {
	key, example string
	read         func(v reading, t *traffic) error
}

// reading is the value of a setting in the file.
type reading struct {
	*source
	n             *node
	what, example string
}

// settings are the keys of `traffic`, of a variant, and of the axes.
func settings() []setting {
	return []setting{
		{"protocol", "udp", words(func(t *traffic) *string { return &t.Protocol }, measure.TCP, measure.UDP)},
		{"kind", "bulk", readKind},
		{"direction", "both", words(func(t *traffic) *string { return &t.direction }, forward, reverse, both, bidir)},
		{"time", "10s", by(unit.ParseDuration, func(t *traffic, d time.Duration) { t.Duration = d })},
		{"ramp", "2s", by(unit.ParseDuration, func(t *traffic, d time.Duration) { t.Ramp, t.RampSet = d, true })},
		{"streams", "4", whole(func(t *traffic) *int { return &t.Streams })},
		{"window", "800K", size(func(t *traffic) *measure.Pair { return &t.Window })},
		{"length", "64K", size(func(t *traffic) *measure.Pair { return &t.Length })},
		{"bitrate", "500M", by(unit.ParseRate, func(t *traffic, n int64) { t.Rate, t.RateSet, t.TotalRate = n, true, 0 })},
		{"total_bitrate", "2G", by(positive(unit.ParseRate), func(t *traffic, n int64) { t.TotalRate, t.Rate, t.RateSet = n, 0, false })},
		{"bytes", "10G", by(positive(unit.ParseSize), func(t *traffic, n int64) { t.Amount, t.Blocks = n, 0 })},
		{"blocks", "1000", by(positive(parseInt), func(t *traffic, n int64) { t.Blocks, t.Amount = n, 0 })},
		{"rate", "1000", by(parsePerSecond, func(t *traffic, n float64) { t.PerSecond = n })},
		{"latency", "true", truth(func(t *traffic) *bool { return &t.Latency })},
		{"search", "true", truth(func(t *traffic) *bool { return &t.Search })},
		{"verify", "true", truth(func(t *traffic) *bool { return &t.Verify })},
		{"one_connection", "true", truth(func(t *traffic) *bool { return &t.OneConnection })},
		{"dont_fragment", "true", truth(func(t *traffic) *bool { return &t.DontFragment })},
		{"io", "sendfile", readIO},
		{"congestion", "bbr", by(parseCongestion, func(t *traffic, s string) { t.Congestion = s })},
		{"mss", "1460", whole(func(t *traffic) *int { return &t.MSS })},
		{"no_delay", "true", truth(func(t *traffic) *bool { return &t.NoDelay })},
		{"dscp", "ef", by(plan.ParseDSCP, func(t *traffic, n int) { t.DSCP = n })},
		{"ip", "6", whole(func(t *traffic) *int { return &t.Family })},
		{"affinity", "0,1", readAffinity},
		{"cpus", "2", whole(func(t *traffic) *int { return &t.CPUs })},
		{"end_points", "4", whole(func(t *traffic) *int { return &t.endPoints })},
		{"client_port", "40000", whole(func(t *traffic) *int { return &t.BindPort })},
		{"together", "true", truth(func(t *traffic) *bool { return &t.Together })},
	}
}

// settingKeys lists the keys in their order.
func settingKeys() (keys []string) {
	for _, s := range settings() {
		keys = append(keys, s.key)
	}
	return keys
}

// apply changes a request by one key and its value.
func (s *source) apply(t *traffic, key string, n *node) error {
	for _, x := range settings() {
		if x.key == key {
			return x.read(reading{s, n, key, x.example}, t)
		}
	}
	return s.errorf(n, meant(key, settingKeys()), "there is no traffic %q", clip(key))
}

// by reads a value by the parser of its text.
func by[T any](parse func(string) (T, error), set func(*traffic, T)) func(reading, *traffic) error {
	return func(v reading, t *traffic) error {
		x, err := parsed(v.source, v.n, v.what, v.example, parse)
		if err == nil {
			set(t, x)
		}
		return err
	}
}

// words reads one of a few words.
func words(place func(*traffic) *string, allowed ...string) func(reading, *traffic) error {
	return func(v reading, t *traffic) error {
		text, err := v.oneOf(v.n, v.what, allowed...)
		if err == nil {
			*place(t) = text
		}
		return err
	}
}

// whole reads a whole number above 0.
func whole(place func(*traffic) *int) func(reading, *traffic) error {
	return func(v reading, t *traffic) error {
		n, err := v.whole(v.n, v.what, v.example)
		if err == nil {
			*place(t) = n
		}
		return err
	}
}

// whole reads a whole number above 0, such as a count or a port.
func (s *source) whole(n *node, what, example string) (int, error) {
	i, err := strconv.Atoi(n.text)
	if n.kind != numberNode || err != nil || i < 1 || i > 1<<20 {
		return 0, s.errorf(n, fmt.Sprintf("%s takes a whole number such as %s", what, example), "%s is %s", what, n.value())
	}
	return i, nil
}

func truth(place func(*traffic) *bool) func(reading, *traffic) error {
	return func(v reading, t *traffic) error {
		if v.n.kind != boolNode {
			return v.errorf(v.n, v.what+" takes true or false", "%s is %s", v.what, v.n.value())
		}
		*place(t) = strings.EqualFold(v.n.text, "true")
		return nil
	}
}

// byDefault is the word for what the system chooses.
const byDefault = "default"

// size reads SIZE, SENDER/RECEIVER, or default.
func size(place func(*traffic) *measure.Pair) func(reading, *traffic) error {
	return by(func(text string) (p measure.Pair, err error) {
		if text == byDefault {
			return p, nil
		}
		p.Send, p.Recv, err = unit.ParseSizePair(text)
		if err == nil && (p.Send == 0 || p.Recv == 0) {
			err = fmt.Errorf("zero is no size: %s is what the system chooses", byDefault)
		}
		return p, err
	}, func(t *traffic, p measure.Pair) { *place(t) = p })
}

func readKind(v reading, t *traffic) error {
	text, err := v.oneOf(v.n, v.what, "bulk", measure.RR, measure.CRR)
	if t.Traffic = text; text == "bulk" {
		t.Traffic = measure.Bulk
	}
	return err
}

// readIO reads a data path. As on the command line sendfile and lean are
// wishes, which fall back where a host has them not.
func readIO(v reading, t *traffic) error {
	text, err := v.oneOf(v.n, v.what, measure.IOCopy, measure.IOSendfile, measure.IOLean, measure.IOGSO, measure.IOBatch, measure.IOPortable)
	t.IO, t.IOForced = text, text != measure.IOSendfile && text != measure.IOLean
	return err
}

// readAffinity reads off, one CPU for both ends, or FROM,TO.
func readAffinity(v reading, t *traffic) error {
	t.Unplaced, t.LocalCPU, t.PeerCPU = false, nil, nil
	if v.n.kind == textNode && v.n.text == "off" {
		t.Unplaced = true
		return nil
	}
	_, err := parsed(v.source, v.n, v.what, "0, \"0,1\" or off", func(text string) (none struct{}, err error) {
		first, second, two := strings.Cut(text, ",")
		if !two {
			second = first
		}
		for _, c := range []struct {
			text  string
			place **int
		}{{first, &t.LocalCPU}, {second, &t.PeerCPU}} {
			n, err := strconv.ParseUint(strings.TrimSpace(c.text), 10, 10)
			if err != nil {
				return none, fmt.Errorf("%q is no CPU number", clip(c.text))
			}
			*c.place = new(int(n))
		}
		return none, nil
	})
	return err
}

func parseInt(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 48)
	if err != nil {
		err = fmt.Errorf("it is no whole number")
	}
	return n, err
}

func parsePerSecond(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0 && n <= measure.MaxPerSecond) {
		err = fmt.Errorf("it is not above 0 and up to %d a second", measure.MaxPerSecond)
	}
	return n, err
}

// mostCongestion is the longest name that Linux has of an algorithm (TCP_CA_NAME_MAX, tcp.h).
const mostCongestion = 15

func parseCongestion(text string) (string, error) {
	if text == byDefault {
		return "", nil
	}
	if len(text) > mostCongestion || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("it is no name of an algorithm")
	}
	return text, nil
}

// positive refuses zero.
func positive(parse func(string) (int64, error)) func(string) (int64, error) {
	return func(text string) (int64, error) {
		n, err := parse(text)
		if err == nil && n <= 0 {
			err = fmt.Errorf("nothing would pass")
		}
		return n, err
	}
}

// twoWays tells whether the traffic of a pair goes in both directions.
func (t traffic) twoWays() bool { return t.direction == both || t.direction == bidir }

// request is the traffic as plan takes it, in the direction asked for.
func (t traffic) request() plan.Request {
	r := t.Request
	r.Reverse, r.Bidir, r.OneWay = t.direction == reverse, t.direction == bidir, t.direction == forward
	return r
}

// flagNames are the flags that plan's messages name, by the keys of a plan file.
func flagNames() map[string]string {
	return map[string]string{
		"-P": "streams", "-w": "window", "-l": "length", "-t": "time", "-O": "ramp", "-i": "interval", "-M": "mss", "-N": "no_delay",
		"-C": "congestion", "-b": "bitrate", "-n": "bytes", "-k": "blocks", "-A": "affinity", "-u": "protocol: udp", "-Z": "io: sendfile",
		"-R": "direction: reverse", "-B": "a source address", "--one-way": "direction: forward", "--bidir": "direction: bidir",
		"--lean": "io: lean", "--io": "io", "--rr": "kind: rr", "--crr": "kind: crr", "--rate": "rate", "--total-bitrate": "total_bitrate",
		"--verify": "verify", "--search": "search", "--latency": "latency", "--one-connection": "one_connection",
		"--dont-fragment": "dont_fragment", "--dscp": "dscp", "--cport": "client_port", "--bind-dev": "a device", "--repeat": "repeat",
		"--precision": "precision", "--acceptance": "acceptance", "--data-addr": "data", "--get-server-output": "the far end's output",
		"--capture": "capture", "--capture-packets": "capture",
	}
}

// flagPattern finds a flag, and the value behind it if it is one.
var flagPattern = regexp.MustCompile(`(^|[ (,])(--?[a-zA-Z][a-z-]*)( [0-9N][0-9A-Za-z.]*%?\b)?`)

// inKeys says a message of plan, which names flags, in the words of a plan file.
func inKeys(text string) string {
	names := flagNames()
	return flagPattern.ReplaceAllStringFunc(text, func(found string) string {
		part := flagPattern.FindStringSubmatch(found)
		name, known := names[part[2]]
		switch {
		case !known:
			return found
		case part[3] == "":
			return part[1] + name
		default:
			return part[1] + name + ":" + part[3]
		}
	})
}

// blame puts an error of plan where the key stands that it is about: the first
// key of the mappings, the last one first, that the message names.
func (s *source) blame(err error, where *node, mappings ...*node) error {
	message, hint := inKeys(err.Error()), inKeys(fault.Hint(err))
	at := where
	for _, m := range slices.Backward(mappings) {
		if k := named(m, message+" "+hint); k != nil {
			at = k
			break
		}
	}
	return s.errorf(at, hint, "%s", message)
}

// named is the first key of a mapping that a text names.
func named(m *node, text string) *node {
	if m == nil {
		return nil
	}
	said := strings.FieldsFunc(text, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') })
	for _, k := range m.keys {
		if slices.Contains(said, k.text) {
			return k
		}
	}
	return nil
}
