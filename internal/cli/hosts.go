package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/doc"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/remote"
	"thru/internal/report/facts"
	"thru/internal/report/fleet"
	"thru/internal/unit"
)

type hostsCmd struct {
	Controller string `arg:"" optional:"" name:"controller" help:"Name of the controller (thru join), or CONTROLLER/NAME for one host and its facts; may be left out if only one is joined."`
	Facts      bool   `name:"facts" help:"Also ask each host for its facts: system, CPUs, memory, interfaces."`
	Forget     string `name:"forget" placeholder:"NAME" help:"Forget a host, and free its name for another one."`
	Watch      bool   `name:"watch" help:"Print the list again whenever it changes, until Ctrl-C."`
	JSON       bool   `name:"json" help:"Print JSON."`
	natsFlags
}

// listed is what --json prints.
type listed struct {
	Controller string       `json:"controller"`
	At         time.Time    `json:"at"`
	Hosts      []listedHost `json:"hosts"`
}

// listedHost is a host, with its facts if they were asked for.
type listedHost struct {
	bus.Host
	Facts *measure.Facts `json:"facts,omitempty"`
	Error string         `json:"error,omitempty"` // why the facts are missing
}

// Run lists the hosts of a fleet.
func (c *hostsCmd) Run(ctx context.Context, e *env) error {
	controller, name, one := remote.MemberOf(c.Controller)
	if !one {
		controller = c.Controller
	}
	if one && (name == "" || c.Forget != "") {
		return fault.Usagef("thru hosts CONTROLLER --forget NAME, or thru hosts CONTROLLER/NAME", "%q does not go here", c.Controller)
	}
	controller, fleet, err := c.dial(ctx, e, controller)
	if err != nil {
		return err
	}
	defer fleet.Close()
	switch {
	case c.Forget != "":
		if err := fleet.Forget(ctx, c.Forget); err != nil {
			return err
		}
		return c.forgotten(e)
	case c.Watch:
		return c.watch(ctx, e, fleet, controller, name)
	}
	hosts, err := c.list(ctx, fleet, controller, name)
	if err != nil {
		return err
	}
	if err := c.print(ctx, e, fleet, controller, hosts, c.Facts || one); err != nil {
		return err
	}
	if one { // the exit code tells whether it can be used
		if _, err := remote.FindHost(hosts, controller, name, time.Now()); err != nil {
			e.ErrorLines(err)
			return console.Printed(err)
		}
	}
	if len(hosts) == 0 {
		e.Line("hint: " + remote.NoHosts)
	}
	return nil
}

// dial connects to the named controller, or to the only one.
func (c *hostsCmd) dial(ctx context.Context, e *env, controller string) (string, *bus.Fleet, error) {
	nats, err := c.natsFlags.config()
	switch {
	case err != nil:
		return "", nil, err
	case nats != nil && controller != "":
		return "", nil, fault.Usagef("take the name or --nats", "two controllers are named")
	case nats != nil:
		f, err := bus.DialFleet(ctx, bus.FleetConfig{NATS: nats, Version: e.Version})
		return nats.URL, f, err
	case controller == "":
		if controller, err = onlyController(); err != nil {
			return "", nil, err
		}
	}
	f, err := e.network.DialFleet(ctx, controller, bus.FleetConfig{})
	return controller, f, err
}

// onlyController returns the only stored controller, or an error.
func onlyController() (string, error) {
	keys, err := bus.DefaultKeyring()
	if err != nil {
		return "", err
	}
	switch all := remote.Controllers(keys, bus.PrivilegeOperate); len(all) {
	case 1:
		return all[0], nil
	case 0:
		return "", fault.Usagef("store the string that `thru control` prints for operators: thru join NAME", "no controller is joined")
	default:
		return "", fault.Usagef("thru hosts "+all[0], "there are several controllers: %s", strings.Join(all, ", "))
	}
}

// list returns the hosts sorted by name; with a name, all hosts that claim it.
func (c *hostsCmd) list(ctx context.Context, fleet *bus.Fleet, controller, name string) ([]bus.Host, error) {
	hosts, err := fleet.Hosts(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(hosts, func(a, b bus.Host) int { return strings.Compare(a.Name, b.Name) })
	if name == "" {
		return hosts, nil
	}
	same := slices.DeleteFunc(slices.Clone(hosts), func(h bus.Host) bool { return h.Name != name })
	if len(same) == 0 {
		_, err := remote.FindHost(hosts, controller, name, time.Now())
		return nil, err
	}
	return same, nil
}

// print writes the list in the form asked for.
func (c *hostsCmd) print(ctx context.Context, e *env, members *bus.Fleet, controller string, hosts []bus.Host, known bool) error {
	now := time.Now()
	out := listed{Controller: controller, At: now, Hosts: make([]listedHost, len(hosts))}
	for i, h := range hosts {
		out.Hosts[i].Host = h
	}
	if known {
		readFacts(ctx, members, out.Hosts)
	}
	if c.JSON {
		return json.NewEncoder(e.Out).Encode(out)
	}
	options := e.text()
	rows := unit.Mapped(hosts, func(h bus.Host) fleet.HostRow { return hostRow(h, now) })
	if err := fleet.HostsTable(e.Out, rows, options); err != nil {
		return err
	}
	for _, h := range hosts {
		if h.Waiting > 0 || h.Problem != "" {
			fmt.Fprintf(e.Out, "\n%s: %s\n", h.Name, fault.Printable(keeping(h)))
		}
	}
	if !known {
		return nil
	}
	doc := &measure.Document{Schema: measure.Schema, Command: "hosts"}
	for _, h := range out.Hosts {
		if h.Error != "" {
			e.Line(h.Name + ": " + h.Error)
			continue
		}
		doc.EndPoints = append(doc.EndPoints, measure.EndPoint{Name: h.Name, Addr: strings.Join(h.Addrs, " "), Thru: h.Thru, Facts: h.Facts, Labels: h.Labels})
	}
	return facts.Print(e.Out, doc, options)
}

// keeping words how many results wait at a host for the controller, and what keeps them there.
func keeping(h bus.Host) string {
	waits := unit.Plural(h.Waiting, "result") + doc.Verb(h.Waiting, " waits", " wait") + " there for the controller"
	switch {
	case h.Problem == "":
		return waits
	case h.Waiting == 0:
		return h.Problem
	}
	return waits + "; " + h.Problem
}

// hostRow converts a host to a row of the report.
func hostRow(h bus.Host, now time.Time) fleet.HostRow {
	r := fleet.HostRow{
		Name: h.Name, Labels: h.Labels, Thru: h.Thru, Addrs: h.DataAddrs, CPUs: h.CPUs,
		Online: h.Online, Busy: h.Busy, Refused: h.Refused,
	}
	if len(r.Addrs) == 0 {
		r.Addrs = h.Addrs
	}
	if h.WireMajor > 0 {
		r.Wire = fmt.Sprintf("%d.%d", h.WireMajor, h.WireMinor)
	}
	if !h.SeenAt.IsZero() {
		r.Ago = max(now.Sub(h.SeenAt), 0)
	}
	return r
}

// factsAtOnce limits how many hosts are asked for facts concurrently.
const factsAtOnce = 32

// readFacts asks the hosts that are online.
func readFacts(ctx context.Context, fleet *bus.Fleet, hosts []listedHost) {
	places := make(chan struct{}, factsAtOnce)
	done := make(chan struct{})
	for i := range hosts {
		go func() {
			places <- struct{}{}
			defer func() { <-places; done <- struct{}{} }()
			h := &hosts[i]
			if !h.Online || h.Refused != "" {
				h.Error = "it is offline or refused: no facts"
				return
			}
			r, err := bus.Call(ctx, fleet.Client(h.ID), bus.Facts, bus.FactsRequest{})
			if err != nil {
				h.Error = fault.Plain(err.Error())
				return
			}
			h.Facts = &r.Facts
		}()
	}
	for range hosts {
		<-done
	}
}

// watchEvery is the interval between two requests for a watched list.
const watchEvery = 2 * time.Second

// watch prints the list whenever it changes.
func (c *hostsCmd) watch(ctx context.Context, e *env, fleet *bus.Fleet, controller, name string) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	last := ""
	for {
		hosts, err := c.list(ctx, fleet, controller, name)
		if err != nil && (ctx.Err() != nil || fleet.Err() != nil || fault.Code(err) == fault.Usage) {
			return errors.Join(fleet.Err(), err)
		}
		if now := state(hosts); err == nil && now != last {
			last = now
			if !c.JSON {
				fmt.Fprintf(e.Out, "\n%s\n", time.Now().Format("15:04:05"))
			}
			if err := c.print(ctx, e, fleet, controller, hosts, c.Facts); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-fleet.Lost():
			return fleet.Err()
		case <-tick.C:
		}
	}
}

// state returns the list as text without the fields that change all the time.
func state(hosts []bus.Host) string {
	still := slices.Clone(hosts)
	for i := range still {
		still[i].SeenAt = time.Time{}
	}
	b, _ := json.Marshal(still) // strings and numbers always marshal
	return string(b)
}

func (c *hostsCmd) forgotten(e *env) error {
	if c.JSON {
		return json.NewEncoder(e.Out).Encode(map[string]string{"forgotten": c.Forget})
	}
	_, err := fmt.Fprintf(e.Out, "%s is forgotten: its name is free for the next host\n", c.Forget)
	return err
}

// natsFlags reach a controller over a NATS cluster instead of by a join string.
type natsFlags struct {
	NATS  string `group:"NATS cluster" name:"nats" placeholder:"URL" help:"NATS cluster that the controller is on, such as tls://nats.example.com:4222."`
	Nkey  string `group:"NATS cluster" name:"nkey" type:"path" placeholder:"FILE" help:"File of the nkey seed (thru control --nats-key makes one)."`
	Creds string `group:"NATS cluster" name:"creds" type:"path" placeholder:"FILE" help:"Credentials file, as nsc writes it."`
	CA    string `group:"NATS cluster" name:"tls-ca" type:"path" placeholder:"FILE" help:"Certificates to trust (default: the system's)."`
}

// config converts the flags to a bus.NATSConfig; nil if they name no cluster.
func (f natsFlags) config() (*bus.NATSConfig, error) {
	switch key := f.Nkey != "" || f.Creds != ""; {
	case f.NATS == "" && (key || f.CA != ""):
		return nil, fault.Usagef("name it: --nats tls://HOST:4222", "--nkey, --creds and --tls-ca are for a NATS cluster, and none is named")
	case f.NATS == "":
		return nil, nil
	case !key || f.Nkey != "" && f.Creds != "":
		return nil, fault.Usagef("give --nkey FILE or --creds FILE", "--nats needs a key or credentials")
	}
	return &bus.NATSConfig{URL: f.NATS, CA: f.CA, Nkey: f.Nkey, Creds: f.Creds}, nil
}

// controllerGiven returns the route to the controller that --controller names: a stored name, the join string
// itself, a file with it, or - for a string on stdin. It also returns a name, which is never the string.
func (e *env) controllerGiven(text string) (string, remote.Route, error) {
	const ask = "ask for the string that `thru control` prints for agents"
	var err error
	switch {
	case text == "-":
		b, rerr := io.ReadAll(io.LimitReader(e.In, maxJoin))
		if rerr != nil {
			return "", remote.Route{}, fmt.Errorf("cli: reading the join string: %w", rerr)
		}
		text = string(b)
	case strings.ContainsAny(text, `/\`): // no name or string has these
		b, rerr := bus.ReadKey(text)
		if rerr != nil {
			return "", remote.Route{}, fault.Usagef("name the file with the join string for hosts", "--controller: %w", rerr)
		}
		text = string(b)
	case !strings.HasPrefix(text, "thru") || len(text) <= remote.MostName: // a string is longer than any name
		w, err := remote.ControllerString(text, bus.PrivilegeAgent)
		return text, w, err
	}
	j, err := bus.ParseJoin(text)
	if err != nil {
		return "", remote.Route{}, err
	}
	name := cmp.Or(j.Name, j.Control[0])
	return name, remote.Route{Join: &j}, remote.ForController(name, j, bus.PrivilegeAgent, ask)
}
