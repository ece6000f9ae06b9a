package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"thru/internal/agent"
	"thru/internal/bus"
	"thru/internal/engine"
	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/unit"
)

type serveCmd struct {
	Allow       []string `name:"allow" placeholder:"PRIVILEGE" help:"What else a client may do, by a join string of its own: capture (the packets of its tests; needs root)."`
	NoAuth      bool     `name:"no-auth" help:"Serve measuring to anybody who can reach the port: for a closed lab."`
	Port        int      `short:"p" default:"5200" help:"Control port."`
	Bind        []string `short:"B" name:"bind" placeholder:"ADDRESS" help:"Addresses for control (default: all)."`
	BindDev     string   `name:"bind-dev" placeholder:"DEVICE" help:"Device or VRF for control and data."`
	DataAddr    []string `name:"data-addr" placeholder:"ADDRESS" help:"Addresses for data, if not where control goes."`
	DataPorts   string   `name:"data-ports" default:"5202-5233" placeholder:"FIRST-LAST" help:"Ports for data."`
	State       string   `name:"state" type:"path" placeholder:"DIR" help:"Folder for certificate and secret (default: thru in the user's state folder)."`
	Rotate      bool     `name:"rotate" help:"Make a new secret and certificate first; old join strings no longer work."`
	MaxRate     string   `name:"max-rate" placeholder:"RATE" help:"Upper bound of a test's rate, such as 1G."`
	MaxStreams  int      `name:"max-streams" default:"128" help:"Upper bound of a test's streams."`
	MaxTime     string   `name:"max-time" default:"24h" placeholder:"TIME" help:"Upper bound of a test's measured time."`
	MaxSessions int      `name:"max-sessions" default:"32" help:"Upper bound of flow ends at a time, of all clients."`
	JSON        bool     `name:"json" help:"Print one JSON line when ready, and one for each test of an iperf client."`
	iperfFlags
}

// serving is what --json prints when the agent is ready.
type serving struct {
	Ready      bool     `json:"ready"`
	Thru       string   `json:"thru_version"`
	Control    []string `json:"control"`
	DataAddrs  []string `json:"data_addrs,omitempty"`
	DataPorts  string   `json:"data_ports"`
	Cert       string   `json:"certificate_sha256"`
	JoinString string   `json:"join_string,omitempty"`
	// Those for more than measuring, by privilege.
	More     map[string]string `json:"join_strings,omitempty"`
	IPerf    []string          `json:"iperf,omitempty"` // where clients of iperf3 and iperf2 are answered
	Warnings []string          `json:"warnings,omitempty"`
}

// Run serves until SIGTERM or SIGINT.
func (c *serveCmd) Run(ctx context.Context, e *env) error {
	limits, listen, err := c.parse()
	if err != nil {
		return err
	}
	if err := c.known(); err != nil {
		return err
	}
	state, err := c.openState()
	if err != nil {
		return err
	}
	prog, err := worker.Self()
	if err != nil {
		return err
	}
	defer prog.Close()
	conf := bus.ServerConfig{Device: c.BindDev, State: state, NoAuth: c.NoAuth, Allow: c.Allow, Addrs: c.controlAddrs()}
	server, warnings, err := bus.Listen(ctx, conf)
	if err != nil {
		return err
	}
	defer server.Close()
	calls, more, err := c.desks(ctx, e, listen, limits)
	if err != nil {
		return err
	}
	warnings = append(warnings, more...)
	a := newAgent(e.version, hostname(), calls.engines(prog), limits, c.DataAddr, listen)
	service, err := bus.Serve(server, a)
	if err != nil {
		return err
	}
	a.Publisher(service.Publish)
	busy, err := busyPorts(listen)
	if err != nil {
		return err
	}
	c.announce(e, server, state, calls, slices.Concat(warnings, busy, c.inVain()))
	r := &reception{version: e.version, connect: server.Client, keep: c.results(state), told: tellCalls(e, c.JSON), most: limits.Sessions - limits.Sessions/4}
	err = calls.serve(ctx, func(call engine.Call) { r.take(ctx, call) })
	<-ctx.Done()
	r.wait()
	service.Close()
	a.Close()
	return err
}

// known refuses privileges that there are not.
func (c *serveCmd) known() error {
	for _, p := range c.Allow {
		if !slices.Contains(bus.Privileges(), p) {
			return fault.Usagef("--allow takes "+strings.Join(bus.Privileges(), ", ")+"; measuring is always allowed", "--allow %s: no such privilege", p)
		}
	}
	return nil
}

// inVain warns of privileges that this host could not follow up.
func (c *serveCmd) inVain() []string {
	if slices.Contains(c.Allow, bus.PrivilegeCapture) {
		if err := (kernelRing{}).Possible(); err != nil {
			return []string{"capturing is allowed, but cannot be: " + err.Error()}
		}
	}
	return nil
}

// desks opens those that were asked for.
func (c *serveCmd) desks(ctx context.Context, e *env, listen engine.Listen, l bus.Limits) (desks, []string, error) {
	if !c.IPerf && !c.NoAuth {
		return desks{}, nil, nil
	}
	return c.iperfFlags.open(ctx, listen, l, func(addr string, reason error) {
		tellRefused(e, addr, reason)
	})
}

// results is the folder in which those of foreign clients are kept.
func (c *serveCmd) results(s *bus.State) string {
	return cmp.Or(c.Results, filepath.Join(s.Dir(), "results"))
}

// parse reads limits and data ports.
func (c *serveCmd) parse() (bus.Limits, engine.Listen, error) {
	l := agent.DefaultLimits()
	l.Streams, l.Sessions = c.MaxStreams, c.MaxSessions
	listen := engine.Listen{Device: c.BindDev, Addrs: c.DataAddr}
	if len(listen.Addrs) == 0 {
		listen.Addrs = c.Bind
	}
	var err error
	if listen.First, listen.Last, err = parsePorts(c.DataPorts); err != nil {
		return l, listen, err
	}
	if c.MaxStreams < 1 || c.MaxStreams > measure.MaxStreams || c.MaxSessions < 1 {
		return l, listen, fault.Usagef(fmt.Sprintf("--max-streams takes 1 to %d, --max-sessions 1 or more", measure.MaxStreams), "the limits leave nothing to serve")
	}
	longest, err := unit.ParseDuration(c.MaxTime)
	if err != nil || longest < measure.MinDuration {
		return l, listen, fault.Usagef("--max-time takes a value such as 60s or 1h", "--max-time %s: no length of a test", c.MaxTime)
	}
	l.DurationNs = int64(min(longest, measure.MaxDuration))
	if c.MaxRate != "" {
		if l.RateBps, err = unit.ParseRate(c.MaxRate); err != nil || l.RateBps == 0 {
			return l, listen, fault.Usagef("--max-rate takes a value such as 1G or 500M", "--max-rate %s: no rate", c.MaxRate)
		}
	}
	for _, addr := range append(append([]string{}, c.Bind...), c.DataAddr...) {
		if net.ParseIP(strings.SplitN(addr, "%", 2)[0]) == nil {
			return l, listen, fault.Usagef("--bind and --data-addr take addresses of this host, such as 10.0.0.2", "%q is no address", addr)
		}
	}
	return l, listen, nil
}

func parsePorts(s string) (first, last int, err error) {
	a, b, isRange := strings.Cut(s, "-")
	if !isRange {
		b = a
	}
	first, err1 := strconv.Atoi(a)
	last, err2 := strconv.Atoi(b)
	if err1 != nil || err2 != nil || first < 1 || last > 65535 || first > last {
		return 0, 0, fault.Usagef("--data-ports takes a range such as 5202-5233, or one port", "--data-ports %s: no range of ports", s)
	}
	return first, last, nil
}

func (c *serveCmd) openState() (*bus.State, error) {
	dir := c.State
	if dir == "" {
		var err error
		if dir, err = defaultState(); err != nil {
			return nil, err
		}
	}
	state, err := bus.OpenState(dir)
	if err == nil && c.Rotate {
		err = state.Rotate()
	}
	return state, err
}

// defaultState follows the XDG base directory specification.
func defaultState() (string, error) {
	if d := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "thru"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fault.Failf("name a folder with --state", "cli: finding the state folder: %w", err)
	}
	return filepath.Join(home, ".local", "state", "thru"), nil
}

func (c *serveCmd) controlAddrs() []string {
	if len(c.Bind) == 0 {
		return []string{net.JoinHostPort("", strconv.Itoa(c.Port))}
	}
	var as []string
	for _, a := range c.Bind {
		as = append(as, net.JoinHostPort(a, strconv.Itoa(c.Port)))
	}
	return as
}

// busyPorts says which data ports other programs hold; only all of them is an error.
func busyPorts(l engine.Listen) ([]string, error) {
	host := ""
	for _, host = range l.Addrs {
		x, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			return nil, fault.Failf("see `ip addr` for the addresses of this host", "cli: data cannot listen at %s: %w", host, err)
		}
		x.Close()
	}
	var busy []string
	var last error
	for p := l.First; p <= l.Last; p++ {
		x, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(p)))
		if err != nil {
			busy, last = append(busy, strconv.Itoa(p)), err
			continue
		}
		x.Close()
	}
	switch {
	case len(busy) == 0:
		return nil, nil
	case len(busy) > l.Last-l.First:
		return nil, fault.Failf("end the program that holds them, or choose others: --data-ports FIRST-LAST",
			"cli: no data port of %d-%d can be used: %w", l.First, l.Last, last)
	}
	return []string{"data ports in use by others, left out: " + strings.Join(busy, " ")}, nil
}

// announce prints the join string and that the agent is ready.
func (c *serveCmd) announce(e *env, server *bus.Server, state *bus.State, calls desks, warnings []string) {
	j := server.Join(c.DataAddr)
	s := serving{
		Ready: true, Thru: e.version, Control: j.Control, DataAddrs: c.DataAddr, DataPorts: c.DataPorts,
		Cert: fmt.Sprintf("%x", j.CertSHA256), Warnings: warnings, IPerf: calls.list(), More: map[string]string{},
	}
	if !c.NoAuth {
		s.JoinString = j.String()
	}
	for _, p := range c.Allow {
		s.More[p] = server.JoinFor(p, c.DataAddr).String()
	}
	if c.JSON {
		json.NewEncoder(e.out).Encode(s)
		return
	}
	for _, w := range warnings {
		fmt.Fprintf(e.err, "warning: %s\n", w)
	}
	fmt.Fprintf(e.out, "thru %s serves measuring at %s; data ports %s\n", e.version, strings.Join(s.Control, " "), c.DataPorts)
	if len(s.IPerf) > 0 {
		fmt.Fprintf(e.out, "answers %s; results go to %s\n", strings.Join(s.IPerf, ", "), c.results(state))
	}
	if c.NoAuth {
		fmt.Fprintf(e.out, "no authentication: anybody who can reach these ports can measure\ncertificate sha256:%s\n", s.Cert)
	} else {
		fmt.Fprintf(e.out, "on the other host run `thru join %s` and paste this line (it lets measure, nothing else):\n%s\n", joinName(), s.JoinString)
	}
	for _, p := range bus.Privileges() {
		if s.More[p] != "" {
			fmt.Fprintf(e.out, "or this one, which lets measure and %s:\n%s\n", p, s.More[p])
		}
	}
	fmt.Fprintf(e.out, "ready %s\n", time.Now().Format("15:04:05"))
}

// joinName is a name to suggest: the first label of the host's.
func joinName() string {
	name, _, _ := strings.Cut(hostname(), ".")
	return name
}
