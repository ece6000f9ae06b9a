package iperf3

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/plan/option"
	"thru/internal/unit"
)

// original is a parsed command line of iperf3.
type original struct {
	help, version bool
	server        bool
	host          string // of the server, at the client
	port          int
	Request       plan.Request // what the client measures

	// Output.
	format     byte   // of rates: one of kmgtKMGT, 0 for automatic
	timestamps string // strftime(3) layout; empty: none
	verbose    bool
	json       bool
	jsonStream bool
	jsonFull   bool // with jsonStream: also the whole document at the end
	silent     bool // -i 0
	logFile    string
	pidFile    string

	// Flags of the server.
	daemon, oneOff     bool
	privateKey, users  string
	skew               int // seconds
	maxRate            int64
	maxTime            time.Duration
	given              []option.Given
	clientOnly, served string // an option of one role that was given
	fqRate             int64
}

// Defaults of iperf3 that differ from thru's.
const (
	originalPort = 5201
	originalSkew = 10 // seconds
)

// Parse reads the arguments of `thru iperf3`. Its errors end the command with exit code 1, as in iperf3.
func Parse(args []string) (*original, error) {
	o := &original{port: originalPort, skew: originalSkew}
	o.Request = plan.Request{
		Engine: measure.IPerf3, Protocol: measure.TCP, Streams: 1, Duration: plan.TestTime, Interval: time.Second,
		RampSet: true, EachStream: true,
	}
	_, err := getopt( // iperf3 ignores operands, too
		args, o.options(), func(x *flagRow, value string) error {
			switch x.side {
			case ofClient:
				o.clientOnly = x.String()
			case ofServer:
				o.served = x.String()
			}
			if err := x.set(value); err != nil {
				return fmt.Errorf("%s: %w", strings.TrimSpace(x.String()+" "+value), err)
			}
			return nil
		})
	if err == nil && !o.help && !o.version {
		err = o.consistent()
	}
	if err = option.Spelled(err, option.AsIPerf); err != nil {
		return o, fault.Failf("see `thru iperf3 --help`; thru's own command line is `thru test --help`", "%w", err)
	}
	return o, nil
}

// consistent checks what depends on several options.
func (o *original) consistent() error {
	r := &o.Request
	if slices.Contains(o.given, option.Given{ID: "direction", Value: plan.Reverse}) && slices.Contains(o.given, option.Given{ID: "direction", Value: plan.Bidir}) {
		return errors.New("cannot be both reverse and bidirectional")
	}
	given := slices.DeleteFunc(slices.Clone(o.given), func(g option.Given) bool { return g.ID == "ip" }) // the last one counts
	if option.Clash(given) != nil {                                                                      // only a clash of two end conditions is left
		return errors.New("only one test end condition (-t, -n, -k) may be specified")
	}
	switch {
	case o.server && o.host != "":
		return errors.New("cannot be both server and client")
	case !o.server && o.host == "":
		return errors.New("must either be a client (-c) or server (-s)")
	case o.server && o.clientOnly != "":
		return fmt.Errorf("%s is for the client only", o.clientOnly)
	case !o.server && o.served != "":
		return fmt.Errorf("%s is for the server only", o.served)
	case (r.Login.User == "") != (r.Login.PublicKey == ""):
		return errors.New("--username and --rsa-public-key-path go together")
	case (o.users == "") != (o.privateKey == ""):
		return errors.New("--rsa-private-key-path and --authorized-users-path go together")
	case o.jsonFull && !o.jsonStream:
		return errors.New("--json-stream-full-output needs --json-stream")
	}
	r.OneWay = !r.Reverse && !r.Bidir
	if r.Protocol == measure.UDP { // without effect in iperf3, too
		r.Congestion, r.MSS, r.NoDelay, r.IO = "", 0, false, ""
	} else {
		r.DontFragment = false
	}
	if o.silent = r.Interval == 0; o.silent { // one interval for the whole test
		r.Interval = min(r.Duration, time.Hour)
	}
	if o.fqRate > 0 && (r.Rate == 0 || o.fqRate < r.Rate) && (r.Protocol == measure.TCP || r.RateSet) {
		r.Rate, r.RateSet = o.fqRate, true // in thru the kernel also paces -b
	}
	return nil
}

// options returns the grammar: iperf3's names, what each sets, and which are refused.
func (o *original) options() []flagRow {
	return append(append(o.commonOptions(), o.serverOptions()...), append(o.clientOptions(), o.testOptions()...)...)
}

// testOptions returns the rows of option's table that iperf3 has.
func (o *original) testOptions() (rows []flagRow) {
	for _, x := range option.Table() {
		for _, f := range x.IPerf {
			short, long := f.Spellings()
			row := flagRow{short: byte(short), long: long[0], aliases: long[1:], takes: f.Place, help: f.Help, side: ofClient}
			if f.Place != "" {
				row.value = needsValue
			}
			if f.Serve {
				row.side = ofBoth
			}
			row.set = func(value string) error {
				o.given = append(o.given, option.Given{ID: x.ID, Value: f.Value})
				return f.Apply(&x, &o.Request, value)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func (o *original) commonOptions() []flagRow {
	return []flagRow{
		{short: 'p', long: "port", value: needsValue, takes: "PORT", help: "of the server (default 5201)", set: number(&o.port, 1, 65535)},
		{short: 'f', long: "format", value: needsValue, takes: "[kmgtKMGT]", help: "unit of rates; capitals are bytes", set: o.setFormat},
		{short: 'I', long: "pidfile", value: needsValue, takes: "FILE", help: "write the process id to it", set: text(&o.pidFile)},
		{short: 'F', long: "file", value: needsValue, takes: "FILE", set: refuse("thru measures the network: it sends from memory, and reads and writes no file")},
		{short: 'V', long: "verbose", help: "more detail", set: on(&o.verbose)},
		{short: 'J', long: "json", help: "print iperf3's JSON document", set: on(&o.json)},
		{long: "json-stream", help: "print JSON, a line for each event", set: on(&o.jsonStream)},
		{long: "json-stream-full-output", help: "also the whole document at the end", set: on(&o.jsonFull)},
		{long: "logfile", value: needsValue, takes: "FILE", help: "write the output there", set: text(&o.logFile)},
		{long: "forceflush", help: "always so: each line is written at once", set: nothing},
		{long: "timestamps", value: optionalValue, takes: "FORMAT", help: "time before each line, in strftime(3) format", set: o.setTimestamps},
		{short: 'd', long: "debug", value: optionalValue, help: "accepted: errors always name their cause", set: nothing},
		{long: "rcv-timeout", value: needsValue, takes: "MS", help: "accepted: thru limits every wait", set: number(new(int), 100, math.MaxInt32)},
		{long: "snd-timeout", value: needsValue, takes: "MS", help: "accepted, likewise", set: number(new(int), 0, math.MaxInt32)},
		{long: "cntl-ka", value: optionalValue, takes: "N/N/N", help: "accepted: a lost connection is noticed", set: nothing},
		{short: 'm', long: "mptcp", set: refuse("thru has no MPTCP")},
		{short: 'v', long: "version", help: "print the version", set: on(&o.version)},
		{short: 'h', long: "help", help: "print this help", set: on(&o.help)},
	}
}

func (o *original) serverOptions() []flagRow {
	return []flagRow{
		{short: 's', long: "server", help: "run as server", set: on(&o.server)},
		{short: 'D', long: "daemon", side: ofServer, help: "run in the background", set: on(&o.daemon)},
		{short: '1', long: "one-off", side: ofServer, help: "exit after one test", set: on(&o.oneOff)},
		{long: "server-bitrate-limit", value: needsValue, side: ofServer, takes: "RATE[/SECONDS]", help: "bound of a test", set: o.setLimit},
		{long: "server-max-duration", value: needsValue, side: ofServer, takes: "SECONDS", help: "bound of a test", set: into(&o.maxTime, unit.ParseDuration)},
		{long: "idle-timeout", value: needsValue, side: ofServer, takes: "SECONDS", help: "accepted: thru needs no restart", set: number(new(int), 1, 86400)},
		{long: "rsa-private-key-path", value: needsValue, side: ofServer, takes: "FILE", help: "key that decrypts logins", set: text(&o.privateKey)},
		{long: "authorized-users-path", value: needsValue, side: ofServer, takes: "FILE", help: "who may log in", set: text(&o.users)},
		{long: "time-skew-threshold", value: needsValue, side: ofServer, takes: "SECONDS", help: "largest clock difference (default 10)", set: number(&o.skew, 1, 86400)},
	}
}

// clientOptions returns the client's options of server, amount and sockets.
func (o *original) clientOptions() []flagRow {
	return []flagRow{
		{short: 'c', long: "client", value: needsValue, takes: "HOST[%DEV]", help: "run as client of that server", set: o.setHost},
		{long: "sctp", side: ofClient, set: refuse("thru has no SCTP")},
		{short: 'X', long: "xbind", value: needsValue, side: ofClient, takes: "NAME", set: refuse("thru has no SCTP")},
		{long: "nstreams", value: needsValue, side: ofClient, takes: "N", set: refuse("thru has no SCTP")},
		{long: "connect-timeout", value: needsValue, side: ofClient, takes: "MS", help: "accepted: thru limits every wait", set: number(new(int), 1, math.MaxInt32)},
		{short: 'L', long: "flowlabel", value: needsValue, side: ofClient, takes: "N", set: refuse("thru sets no IPv6 flow label")},
		{long: "skip-rx-copy", side: ofClient, set: refuse("thru cannot request it from an iperf3 server; between two thru: thru test --lean")},
		{long: "gsro", side: ofClient, help: "always so where it works", set: nothing},
		{long: "udp-counters-64bit", side: ofClient, help: "always so", set: nothing},
		{long: "repeating-payload", side: ofClient, set: refuse("what thru sends does not repeat")},
		{long: "fq-rate", value: needsValue, side: ofClient, takes: "RATE", help: "of each stream, by the kernel's pacing", set: into(&o.fqRate, unit.ParseRate)},
		{long: "no-fq-socket-pacing", side: ofClient, help: "accepted: no --fq-rate", set: func(string) error { o.fqRate = 0; return nil }},
		{long: "pacing-timer", value: needsValue, side: ofClient, takes: "N", help: "accepted: thru paces by itself", set: into(new(int64), unit.ParseSize)},
	}
}

// Setters of plain values.

func nothing(string) error { return nil }

func on(b *bool) func(string) error { return func(string) error { *b = true; return nil } }

func text(s *string) func(string) error {
	return func(v string) error {
		if v == "" {
			return errors.New("it is empty")
		}
		*s = v
		return nil
	}
}

func refuse(why string) func(string) error { return func(string) error { return errors.New(why) } }

func number(n *int, least, most int) func(string) error {
	return func(s string) error {
		v, err := strconv.Atoi(s)
		if err != nil || v < least || v > most {
			return fmt.Errorf("it takes %d to %d", least, most)
		}
		*n = v
		return nil
	}
}

// into returns a setter that parses a text into place.
func into[T any](place *T, parse func(string) (T, error)) func(string) error {
	return func(s string) (err error) {
		*place, err = parse(s)
		return err
	}
}

// Setters of values with iperf3's own syntax.

func (o *original) setFormat(s string) error {
	if len(s) != 1 || !strings.Contains("kmgtKMGT", s) {
		return errors.New("it takes one of k m g t K M G T")
	}
	o.format = s[0]
	return nil
}

func (o *original) setHost(s string) error {
	host, dev, _ := strings.Cut(s, "%")
	o.Request.BindDev = cmp.Or(dev, o.Request.BindDev)
	return text(&o.host)(host)
}

// setTimestamps sets the layout, by default that of iperf3.
func (o *original) setTimestamps(s string) error {
	o.timestamps = cmp.Or(s, "%c ")
	return nil
}

func (o *original) setLimit(s string) error {
	r, _, _ := strings.Cut(s, "/") // averaged over the test, not over seconds
	return into(&o.maxRate, unit.ParseRate)(r)
}
