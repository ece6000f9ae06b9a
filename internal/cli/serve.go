package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
	"thru/internal/cause/knob"
	"thru/internal/cli/console"
	"thru/internal/disk"
	"thru/internal/engine"
	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/hypervisor/kvm"
	"thru/internal/library"
	"thru/internal/measure"
	"thru/internal/node"
	"thru/internal/tune"
	"thru/internal/watch/metrics"
)

type serveCmd struct {
	Allow       []string      `name:"allow" placeholder:"PRIVILEGE" help:"More that a client may do, with a second join string: capture (the packets of its tests) and tune (change settings of this host, and undo them), which need root; files (below --files: measure the disks, and read, write and remove files); inventory (list the virtual machines of this host, and read their counters)."`
	TuneOnly    []string      `name:"tune-only" placeholder:"KNOB" help:"With --allow tune: only these (thru help knobs lists all)."`
	Files       []string      `name:"files" placeholder:"DIR" help:"With --allow files: folders below which clients may measure disks (with an unnamed file of at most half of the free space) and transfer files by thru://."`
	MaxFile     int64         `name:"max-file" type:"size" like:"16G" default:"16G" placeholder:"SIZE" help:"Largest file that a client may write there."`
	NoAuth      bool          `name:"no-auth" help:"Let anybody who can reach the port measure: for a closed lab."`
	Port        int           `short:"p" placeholder:"PORT" help:"Control port (default 5200)."`
	Bind        []string      `short:"B" name:"bind" placeholder:"ADDRESS" help:"Addresses for control (default: all)."`
	BindDev     string        `name:"bind-dev" placeholder:"DEVICE" help:"Device or VRF for control and data."`
	DataAddr    []string      `name:"data-addr" placeholder:"ADDRESS" help:"Addresses for data (default: those for control)."`
	DataPorts   string        `name:"data-ports" default:"5202-5233" placeholder:"FIRST-LAST" help:"Ports for data."`
	State       string        `name:"state" type:"path" placeholder:"DIR" help:"Folder for certificate and secret (default: thru in the user's state folder)."`
	Rotate      bool          `name:"rotate" help:"Make a new secret and certificate first; old join strings no longer work."`
	MaxRate     int64         `name:"max-rate" type:"rate" like:"1G or 500M" placeholder:"RATE" help:"Upper bound of a test's rate, such as 1G."`
	MaxStreams  int           `name:"max-streams" default:"128" help:"Upper bound of a test's streams."`
	MaxTime     time.Duration `name:"max-time" type:"time" like:"60s or 1h" default:"24h" placeholder:"TIME" help:"Upper bound of a test's measured time."`
	MaxSessions int           `name:"max-sessions" default:"32" help:"Upper bound of simultaneous flow ends of all clients."`
	Metrics     string        `name:"metrics" placeholder:"ADDRESS:PORT" help:"Offer figures of this end point to Prometheus (OpenMetrics) at http://ADDRESS:PORT/metrics."`
	JSON        bool          `name:"json" help:"Print one JSON line when ready, and one for each test."`
	PrintJoin   bool          `name:"print-join" help:"Print the join string of the thru serve that runs on this host, and exit; with --json all of them."`
	logFlags
	memberFlags
	iperfFlags
	keepFlags
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
	// Join strings for more than measuring, by privilege.
	More     map[string]string `json:"join_strings,omitempty"`
	IPerf    []string          `json:"iperf,omitempty"` // addresses of the iperf3 and iperf2 servers
	Warnings []string          `json:"warnings,omitempty"`
	// Under a controller: the agent is ready when a line reports the connection.
	Controller string            `json:"controller,omitempty"`
	Name       string            `json:"name,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
}

// Run serves until SIGTERM or SIGINT.
func (c *serveCmd) Run(ctx context.Context, e *env) error {
	if c.PrintJoin {
		return printJoin(ctx, e, c.State, "serve", bus.PrivilegeMeasure, c.JSON)
	}
	c.JSON = c.begin(e, c.JSON)
	return c.serve(ctx, e)
}

func (c *serveCmd) serve(ctx context.Context, e *env) error {
	limits, listen, err := c.parse()
	if err != nil {
		return err
	}
	if err := c.known(e); err != nil {
		return err
	}
	files, err := c.files()
	if err != nil {
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
	tuner, err := node.OpenTuner(e.Version, prog, state.Dir(), c.TuneOnly)
	if err != nil {
		return err
	}
	place, err := c.member(e, state)
	if err != nil {
		return err
	}
	server, warnings, err := c.listen(ctx, e, state, place)
	if err != nil {
		return err
	}
	defer server.Close()
	calls, more, err := c.iperfServers(ctx, e, listen, limits)
	if err != nil {
		return err
	}
	warnings = slices.Concat(warnings, more, node.Recovered(tuner))
	lines := newTestLines(e, c.JSON)
	a := node.NewAgent(e.Version, node.Hostname(), calls.Engines(prog), limits, c.DataAddr, listen, place.config, node.TunedBy(tuner), files, func(c *agent.Config) {
		c.Ended, c.Samples = lines.flows, filepath.Join(state.Dir(), "samples")
	})
	answering, err := bus.Serve(server, a)
	if err != nil {
		return err
	}
	a.Publisher(answering.Publish)
	stop, err := offer(c.Metrics, func() []metrics.Family { return agentFamilies(e.Version, a.Stats(), lines.lastTest()) })
	if err != nil {
		return err
	}
	defer stop()
	busy, err := busyPorts(listen)
	if err != nil {
		return err
	}
	s := c.serving(e, server, calls, place, slices.Concat(warnings, busy, c.inVain()))
	if err := keepJoin(state, s); err != nil {
		return err
	}
	defer forgetJoin(state)
	c.announce(e, s, state)
	if place != nil {
		if err := place.attach(ctx, a, answering.Publish); err != nil {
			return err
		}
	}
	defer e.supervise(ctx, c.status(s), func() { a.Busy() }, func(now command) error {
		return c.reload(now.(*serveCmd), a, server, place, state, &s) // the same line names the same command
	})()
	r := &node.Reception{Version: e.Version, Connect: server.Client, Keep: c.results(state), Archive: archiveOf(c.keepFlags).AtMost(library.MostResults), Warn: e.Warn, OnResult: lines.call, Most: limits.Sessions - limits.Sessions/4}
	err = calls.Serve(ctx, func(call engine.Call) { r.Take(ctx, call) })
	if place != nil {
		err = errors.Join(err, place.run(ctx))
	} else {
		<-ctx.Done()
	}
	r.Wait()
	place.leave()
	answering.Close()
	a.Close()
	return err
}

// listen opens the control plane for clients that connect here. Under a controller it opens none, unless
// flags name an address or a port.
func (c *serveCmd) listen(ctx context.Context, e *env, state *bus.State, place *member) (*bus.Server, []string, error) {
	passed, err := passedSockets(e)
	if err != nil {
		return nil, nil, err
	}
	if place != nil && len(c.Bind) == 0 && c.Port == 0 && len(passed) == 0 {
		server, err := bus.Memory()
		return server, nil, err
	}
	return bus.Listen(ctx, bus.ServerConfig{Device: c.BindDev, State: state, NoAuth: c.NoAuth, Allow: c.Allow, Addrs: controlAddrs(c.Bind, c.Port), Passed: passed})
}

// known refuses unknown privileges.
func (c *serveCmd) known(e *env) error {
	for _, p := range c.Allow {
		if !slices.Contains(bus.Privileges(), p) {
			return fault.Usagef("--allow takes "+strings.Join(bus.Privileges(), ", ")+"; measuring is always allowed", "--allow %s: no such privilege", p)
		}
	}
	if these := e.TypedOf("--iperf3-port", "--iperf2-port", "--results", "--authorized-users-path", "--rsa-private-key-path", "--use-pkcs1-padding", "--time-skew-threshold"); len(these) > 0 && !c.IPerf && !c.NoAuth {
		return fault.Usagef("add --iperf", "%s not go without --iperf", flagsDo(these))
	}
	if c.Port < 0 || c.Port > 65535 {
		return fault.Usagef("-p takes 1 to 65535", "%d is not a port", c.Port)
	}
	return c.checkTuneOnly(slices.Contains(c.Allow, bus.PrivilegeTune))
}

// inVain warns of privileges that this host cannot grant.
func (c *serveCmd) inVain() (said []string) {
	for privilege, possible := range map[string]func() error{
		bus.PrivilegeCapture: node.KernelRing{}.Possible, bus.PrivilegeTune: tune.Possible, bus.PrivilegeFiles: disk.Possible,
		bus.PrivilegeInventory: kvm.Possible,
	} {
		if !slices.Contains(c.Allow, privilege) {
			continue
		}
		if err := possible(); err != nil {
			said = append(said, "--allow "+privilege+" has no effect here: "+fault.Plain(err.Error()))
		}
	}
	slices.Sort(said)
	return said
}

// iperfServers opens the iperf servers that the flags ask for.
func (c *serveCmd) iperfServers(ctx context.Context, e *env, listen engine.Listen, l bus.Limits) (node.Answering, []string, error) {
	if !c.IPerf && !c.NoAuth {
		return node.Answering{}, nil, nil
	}
	calls := node.Calls{IPerf3Port: c.IPerf3Port, IPerf2Port: c.IPerf2Port, Login: node.Login(c.iperfLogin)}
	return calls.Open(ctx, listen, l, func(addr string, reason error) {
		e.Refused(addr, reason)
	})
}

// results returns the folder for the results of iperf clients.
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
		return l, listen, fault.Usagef(fmt.Sprintf("--max-streams takes 1 to %d, --max-sessions 1 or more", measure.MaxStreams), "the limits allow no test")
	}
	if c.MaxTime < measure.MinDuration {
		return l, listen, fault.Usagef("--max-time takes a value such as 60s or 1h", "--max-time %s is too short for a test", c.MaxTime)
	}
	l.DurationNs, l.RateBps = int64(min(c.MaxTime, measure.MaxDuration)), c.MaxRate
	for _, addr := range append(append([]string{}, c.Bind...), c.DataAddr...) {
		if net.ParseIP(strings.SplitN(addr, "%", 2)[0]) == nil {
			return l, listen, fault.Usagef("--bind and --data-addr take addresses of this host, such as 10.0.0.2", "%q is not an address", addr)
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
		return 0, 0, fault.Usagef("--data-ports takes a range such as 5202-5233, or one port", "--data-ports %s: not a range of ports", s)
	}
	return first, last, nil
}

func (c *serveCmd) openState() (*bus.State, error) {
	dir, err := stateFolder(c.State, "")
	if err != nil {
		return nil, err
	}
	state, err := bus.OpenState(dir)
	if err == nil && c.Rotate {
		err = state.Rotate()
	}
	return state, err
}

// stateFolder returns the named folder, else one in the user's state folder.
func stateFolder(named, within string) (string, error) {
	if named != "" {
		return named, nil
	}
	all, err := bus.DefaultState()
	return filepath.Join(all, within), err
}

// controlAddrs returns the addresses of the control plane: all unless some are named.
func controlAddrs(bind []string, port int) (as []string) {
	if len(bind) == 0 {
		bind = []string{""}
	}
	for _, a := range bind {
		as = append(as, net.JoinHostPort(a, strconv.Itoa(cmp.Or(port, bus.DefaultPort))))
	}
	return as
}

// busyPorts returns which data ports other programs hold; only if all are held it returns an error.
func busyPorts(l engine.Listen) ([]string, error) {
	host := ""
	for _, host = range l.Addrs {
		x, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			return nil, fault.Failf("see `ip addr` for the addresses of this host", "cli: data cannot listen on %s: %w", host, err)
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
		return nil, fault.Failf("stop the program that uses them, or choose others: --data-ports FIRST-LAST",
			"cli: no data port of %d-%d can be used: %w", l.First, l.Last, last)
	}
	return []string{"data ports in use by others, left out: " + strings.Join(busy, " ")}, nil
}

// serving describes this agent.
func (c *serveCmd) serving(e *env, server *bus.Server, calls node.Answering, place *member, warnings []string) serving {
	j := server.Join(c.DataAddr)
	s := serving{
		Ready: place == nil, Thru: e.Version, Control: append([]string{}, j.Control...), DataAddrs: c.DataAddr, DataPorts: c.DataPorts,
		Warnings: warnings, IPerf: calls.List(),
	}
	if place != nil {
		s.Controller, s.Name, s.Labels = place.under, place.conf.Name, place.conf.Labels
	}
	return c.invited(s, server)
}

// invited adds the certificate and the join strings of the moment.
func (c *serveCmd) invited(s serving, server *bus.Server) serving {
	s.Cert, s.More = fmt.Sprintf("%x", server.Join(nil).CertSHA256), map[string]string{}
	listens := len(s.Control) > 0
	if !c.NoAuth && listens {
		s.JoinString = server.Join(c.DataAddr).String()
	}
	for _, p := range c.Allow {
		if listens {
			s.More[p] = server.JoinFor(p, c.DataAddr).String()
		}
	}
	if all := bus.Together(c.Allow); listens && all != "" {
		s.More[all] = server.JoinFor(all, c.DataAddr).String()
	}
	return s
}

// status describes the agent in one line.
func (c *serveCmd) status(s serving) string {
	where := "as " + s.Name
	if len(s.Control) > 0 {
		where = "at " + strings.Join(s.Control, " ")
	}
	return fmt.Sprintf("serves measuring %s; data ports %s", where, c.DataPorts)
}

// announce prints the join strings, and that the agent is ready unless it waits for a controller.
func (c *serveCmd) announce(e *env, s serving, state *bus.State) {
	if c.JSON {
		if e.Log.Journal {
			s.JoinString, s.More = "", nil // others may read the journal
		}
		json.NewEncoder(e.Out).Encode(s)
		return
	}
	for _, w := range s.Warnings {
		e.Say(console.Warning, e.Err, "warning: "+w)
	}
	e.Say(console.Info, e.Out, "thru "+e.Version+" "+c.status(s))
	if len(s.IPerf) > 0 {
		e.Say(console.Info, e.Out, fmt.Sprintf("answers %s; results go to %s", strings.Join(s.IPerf, ", "), c.results(state)))
	}
	switch listens := len(s.Control) > 0; {
	case listens && e.Log.Journal:
		e.Say(console.Info, e.Out, "join string: thru serve --print-join --state "+state.Dir())
	case listens && e.Logs(console.Info):
		c.invite(e, s)
	}
	if s.Ready {
		e.ready()
	}
}

// invite prints how other hosts connect to this one.
func (c *serveCmd) invite(e *env, s serving) {
	if c.NoAuth {
		fmt.Fprintf(e.Out, "no authentication: anybody who can reach these ports can measure\ncertificate sha256:%s\n", s.Cert)
	} else {
		e.Say(console.Info, e.Out, fmt.Sprintf("on the other host run `thru join %s` and paste this line (it allows measuring, nothing else):", joinName()))
		fmt.Fprintln(e.Out, s.JoinString)
	}
	if all := bus.Together(c.Allow); all != "" {
		e.Say(console.Info, e.Out, "or this one, to measure"+also(all)+":")
		fmt.Fprintln(e.Out, s.More[all])
	}
}

// joinName returns a name to suggest: the first label of the host name.
func joinName() string {
	name, _, _ := strings.Cut(node.Hostname(), ".")
	return name
}

// checkTuneOnly refuses unknown knobs.
func (c *serveCmd) checkTuneOnly(tunes bool) error {
	if len(c.TuneOnly) > 0 && !tunes {
		return fault.Usagef("thru serve --allow tune --tune-only "+strings.Join(c.TuneOnly, ","), "--tune-only needs --allow tune")
	}
	for _, id := range c.TuneOnly {
		k, err := findKnob("--tune-only", id)
		if err != nil {
			return err
		}
		if k.Scope == knob.OfTest {
			return fault.Usagef("leave it out: it changes nothing of this host", "--tune-only %s: it is an option of a test, and always allowed", id)
		}
	}
	return nil
}

// iperfFlags let iperf clients measure with this host.
type iperfFlags struct {
	IPerf      bool   `name:"iperf" help:"Also answer iperf3 and iperf2 clients, several at once; the result of each test is stored. Implied by --no-auth."`
	IPerf3Port int    `name:"iperf3-port" default:"5201" placeholder:"PORT" help:"TCP and UDP port for iperf3 clients (default 5201); 0 for none."`
	IPerf2Port int    `name:"iperf2-port" default:"5001" placeholder:"PORT" help:"TCP and UDP port for iperf2 clients (default 5001); 0 for none."`
	Results    string `name:"results" type:"path" placeholder:"DIR" help:"Folder for their results, the newest 1000 (default: results in the state folder)."`
	iperfLogin
}

// iperfLogin names the users of iperf3's login, with iperf3's names.
type iperfLogin struct {
	Users      string `name:"authorized-users-path" type:"path" placeholder:"FILE" help:"iperf3's file of users: its clients must log in; iperf2's, which cannot, are not answered."`
	PrivateKey string `name:"rsa-private-key-path" type:"path" placeholder:"FILE" help:"Private RSA key that decrypts their logins."`
	PKCS1      bool   `name:"use-pkcs1-padding" help:"Logins use the padding of iperf3 before 3.17."`
	Skew       int    `name:"time-skew-threshold" default:"10" placeholder:"SECONDS" help:"Largest clock difference of a login."`
}

// files returns the function that configures the agent's folders for disk tests and transfers.
func (c *serveCmd) files() (func(*agent.Config), error) {
	allowed := slices.Contains(c.Allow, bus.PrivilegeFiles)
	switch {
	case allowed && len(c.Files) == 0:
		return nil, fault.Usagef("name the folders for measurements of disks and for transfers: --files DIR", "--allow files needs a folder")
	case !allowed && len(c.Files) > 0:
		return nil, fault.Usagef("thru serve --allow files --files "+c.Files[0], "--files needs --allow files")
	}
	f := agent.Files{MaxBytes: c.MaxFile}
	for _, name := range c.Files {
		dir, err := filepath.Abs(name)
		if err != nil {
			return nil, fmt.Errorf("cli: --files %s: %w", name, err)
		}
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			return nil, fault.Usagef("--files takes existing folders", "--files: %s is not a folder", dir)
		}
		if err != nil { // a file system that is mounted late: a service manager tries again
			return nil, fault.Failf("--files takes existing folders", "--files: %w", err)
		}
		f.Folders = append(f.Folders, dir)
	}
	return func(a *agent.Config) { a.Files = f }, nil
}
