package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/fault"
	"thru/internal/library"
	"thru/internal/plan/planfile"
	"thru/internal/store"
	"thru/internal/store/postgres"
	"thru/internal/watch/metrics"
)

type controlCmd struct {
	Port    int      `short:"p" placeholder:"PORT" help:"Port for hosts and operators (default 5200)."`
	Bind    []string `short:"B" name:"bind" placeholder:"ADDRESS" help:"Addresses to listen on (default: all)."`
	BindDev string   `name:"bind-dev" placeholder:"DEVICE" help:"Device or VRF to listen on."`
	Name    string   `name:"name" default:"fleet" help:"Name of the fleet in the join strings."`
	State   string   `name:"state" type:"path" placeholder:"DIR" help:"Folder for identity, names and results (default: thru/control in the user's state folder)."`
	Results string   `name:"results" type:"path" placeholder:"DIR" help:"Folder for results that hosts deliver (default: results in the state folder)."`
	storeFile
	Watch   string   `name:"watch" type:"path" placeholder:"PLAN" help:"Watch the pairs of this plan (thru help watch). Its end points are hosts of this fleet, by their names or labels."`
	Metrics string   `name:"metrics" placeholder:"ADDRESS:PORT" help:"Offer figures of the fleet and the watch to Prometheus (OpenMetrics) at http://ADDRESS:PORT/metrics."`
	Rotate  bool     `name:"rotate" help:"Make new secrets and a new certificate first; old join strings no longer work."`
	JSON    bool     `name:"json" help:"Print one JSON line when ready, and one for each event."`
	signed  []string // keys that have signed the audit log before
	Print   string   `name:"print-join" enum:",agent,operate,user" default:"" placeholder:"agent|operate|user" help:"Print the join string for hosts (agent), for operators (operate) or for those who log in (user) of the thru control that runs on this host, and exit."`
	logFlags
	oidcFlags
	natsFlags
	permitFlags
}

// permitFlags are the keys that a NATS cluster accepts.
type permitFlags struct {
	NATSKeys   []string `group:"NATS cluster" name:"nats-key" type:"path" placeholder:"FILE" help:"Create a key for --nkey in this file if there is none, print its public part, and exit. Can be repeated."`
	NATSConfig bool     `group:"NATS cluster" name:"nats-config" help:"Print the part of the servers' configuration that admits these keys, and exit:"`
	Agents     []string `group:"NATS cluster" name:"agent" placeholder:"KEY" help:"Public nkey of a host (U...)."`
	Operators  []string `group:"NATS cluster" name:"operator" placeholder:"KEY" help:"Public nkey of an operator."`
	Registries []string `group:"NATS cluster" name:"registry" placeholder:"KEY" help:"Public nkey of a controller."`
}

// controlling is what --json prints when the controller is ready.
type controlling struct {
	Ready    bool              `json:"ready"`
	Thru     string            `json:"thru_version"`
	Control  []string          `json:"control"`
	NATS     string            `json:"nats,omitempty"`
	Cert     string            `json:"certificate_sha256,omitempty"`
	Joins    map[string]string `json:"join_strings,omitempty"` // by privilege
	Results  string            `json:"results"`
	Warnings []string          `json:"warnings,omitempty"`
}

// Run runs the controller until SIGTERM or SIGINT.
func (c *controlCmd) Run(ctx context.Context, e *env) error {
	switch {
	case len(c.NATSKeys) > 0:
		return c.keys(e)
	case c.NATSConfig:
		return c.permits(e)
	case c.Print != "":
		return printJoin(ctx, e, c.State, "control", c.Print, c.JSON)
	}
	c.JSON = c.begin(e, c.JSON)
	return c.control(ctx, e)
}

func (c *controlCmd) control(ctx context.Context, e *env) error {
	nats, err := c.natsFlags.config()
	if err != nil {
		return err
	}
	if err := c.fits(nats); err != nil {
		return err
	}
	state, unlock, err := c.openState()
	if err != nil {
		return err
	}
	defer unlock()
	events := &console.EventLog{On: e.Console, JSON: c.JSON}
	s := controlling{Ready: true, Thru: e.Version, Control: []string{}, Results: cmp.Or(c.Results, filepath.Join(state.Dir(), "results"))}
	keep := &library.Intake{Dir: s.Results, Notify: events}
	closeStore, err := c.store(ctx, keep, &s, state.Dir())
	if err != nil {
		return err
	}
	defer closeStore()
	conf := bus.RegistryConfig{NATS: nats, Intake: keep.Take}
	if conf.Book, err = bus.OpenNameBook(state.Dir()); err != nil {
		return err
	}
	if nats == nil {
		passed, err := passedSockets(e)
		if err != nil {
			return err
		}
		users, end, err := c.openUsers(state)
		if err != nil {
			return err
		}
		defer end()
		hub, warnings, err := bus.OpenHub(ctx, bus.HubConfig{Users: users, Addrs: controlAddrs(c.Bind, c.Port), Device: c.BindDev, State: state, Name: c.Name, Passed: passed})
		if err != nil {
			return err
		}
		defer hub.Close()
		conf.Hub, s.Warnings = hub, warnings
		if err := s.invite(hub); err != nil {
			return err
		}
	} else {
		s.NATS = nats.URL
	}
	registry, err := bus.OpenRegistry(ctx, conf)
	if err != nil {
		return err
	}
	defer registry.Close()
	ctx, end := s.among(ctx, registry, events)
	defer end()
	w := &fleetWatch{env: e, cmd: &watchCmd{What: []string{c.Watch}, TCP: planfile.Auto, Port: bus.DefaultPort}, events: events, state: state.Dir()}
	stop, err := offer(c.Metrics, func() []metrics.Family { return fleetFamilies(e.Version, registry.Hosts(), keep.Stored()) }, w.families)
	if err != nil {
		return err
	}
	defer stop()
	if err := keepJoin(state, s); err != nil {
		return err
	}
	defer forgetJoin(state)
	if err := w.open(ctx, c, conf.Hub); err != nil {
		return err
	}
	defer w.close()
	c.announce(e, s, state)
	defer e.supervise(ctx, c.status(s), func() { registry.Hosts(); w.alive(ctx) }, func(command) error {
		if conf.Hub != nil {
			if err := errors.Join(conf.Hub.Reload(), s.invite(conf.Hub), keepJoin(state, s)); err != nil {
				return err
			}
		}
		return w.reload(ctx)
	})()
	roll{events: events}.follow(ctx, registry.Hosts, w.follow)
	return registry.Err()
}

// among warns where the controllers of a cluster share nothing, and reports when that changes. The context ends
// when another controller with this key joins.
func (s *controlling) among(ctx context.Context, r *bus.Registry, events *console.EventLog) (context.Context, func()) {
	why := r.Alone()
	if s.NATS != "" && why != nil {
		s.Warnings = append(s.Warnings, "other controllers do not learn which names this one binds, and nobody takes runs over: "+fault.WithHint(why))
	}
	ctx, end := context.WithCancel(ctx)
	go func() {
		defer end()
		for tick := time.Tick(rollEvery); ; {
			select {
			case <-tick:
				if s.NATS != "" && why != nil && r.Alone() == nil {
					why = nil
					events.Notify("shared", "the controllers of this cluster share names and runs now", nil)
				}
			case <-r.Lost():
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, end
}

// store has the results of hosts stored in the file or the database of --store.
func (c *controlCmd) store(ctx context.Context, keep *library.Intake, s *controlling, folder string) (closeStore func(), err error) {
	switch {
	case c.Store == "":
		return func() {}, nil
	case !postgres.Is(c.Store):
		x, err := archiveOf(keepFlags{storeFile: c.storeFile}).Open(store.Options{})
		if err != nil {
			return nil, err
		}
		keep.Into, s.Results = x, c.Store
		return func() { x.Close() }, nil
	}
	x := library.NewSender(c.Store, folder)
	keep.Into, s.Results = x, postgres.Name(c.Store)
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { keep.Follow(ctx, x) })
	return func() {
		cancel()
		wg.Wait()
		x.Close()
	}, nil
}

// fits refuses flags that do not go together.
func (c *controlCmd) fits(nats *bus.NATSConfig) error {
	switch {
	case len(c.Agents)+len(c.Operators)+len(c.Registries) > 0:
		return fault.Usagef("thru control --nats-config --agent KEY ...", "--agent, --operator and --registry are for --nats-config")
	case nats != nil && c.Issuer != "":
		return fault.Clashing("leave it out: over a NATS cluster its servers decide who may what", "--oidc-issuer", "--nats")
	case nats != nil && (c.Port != 0 || len(c.Bind) > 0 || c.BindDev != "" || c.Rotate):
		return fault.Clashing("leave it out: the NATS cluster listens, and has its own keys", "-p -B --bind-dev --rotate", "--nats")
	case !bus.ValidHostName(c.Name):
		return fault.Usagef("--name takes letters, digits and . _ -", "%q is not a valid name of a fleet", c.Name)
	}
	return nil
}

// keys creates the missing key files and prints the public keys of all.
func (c *controlCmd) keys(e *env) error {
	public := map[string]string{}
	for _, file := range c.NATSKeys {
		key, err := bus.KeyFile(file)
		if err != nil {
			return err
		}
		switch public[file] = key; {
		case c.JSON:
		case len(c.NATSKeys) == 1: // K=$(thru control --nats-key FILE)
			fmt.Fprintln(e.Out, key)
		default:
			fmt.Fprintf(e.Out, "%s %s\n", key, file)
		}
	}
	if c.JSON {
		return json.NewEncoder(e.Out).Encode(map[string]any{"public_keys": public})
	}
	return nil
}

// permits prints the configuration of a NATS server that accepts the keys.
func (c *controlCmd) permits(e *env) error {
	if len(c.Agents)+len(c.Operators)+len(c.Registries) == 0 {
		return fault.Usagef("thru control --nats-config --agent UA... --operator UB... --registry UC...", "--nats-config needs the public keys to admit")
	}
	for _, key := range slices.Concat(c.Agents, c.Operators, c.Registries) {
		if len(key) != 56 || key[0] != 'U' { // github.com/nats-io/nkeys: a user's key in base32
			return fault.Usagef("give the key that begins with U: thru control --nats-key FILE prints it", "not a public nkey of a user")
		}
	}
	all := slices.Sorted(slices.Values(slices.Concat(c.Agents, c.Operators, c.Registries)))
	if len(slices.Compact(all)) < len(c.Agents)+len(c.Operators)+len(c.Registries) {
		return fault.Usagef("make a key for each: thru control --nats-key FILE", "a key is given twice: the server accepts each for one role only")
	}
	_, err := fmt.Fprint(e.Out, bus.NATSUsers(c.Agents, c.Operators, c.Registries))
	return err
}

// openState opens and locks the state folder: two controllers would each keep names that the other does not
// know.
func (c *controlCmd) openState() (*bus.State, func(), error) {
	dir, err := stateFolder(c.State, "control") // next to the folder of an agent on this host
	if err != nil {
		return nil, nil, err
	}
	state, err := bus.OpenState(dir)
	if err != nil {
		return nil, nil, err
	}
	unlock, err := bus.LockFile(filepath.Join(dir, "control.lock"))
	if errors.Is(err, bus.ErrLocked) {
		err = fault.Failf("stop that one, or give this one its own folder: --state DIR", "cli: another `thru control` uses the state folder %s", dir)
	}
	if err == nil && c.Rotate {
		if old, serr := state.Signer(); serr == nil {
			c.signed = []string{old.Key}
		}
		err = state.Rotate()
	}
	if err != nil {
		return nil, nil, err
	}
	return state, unlock, nil
}

// invite adds the join strings and addresses for hosts and operators.
func (s *controlling) invite(hub *bus.Hub) error {
	s.Joins = map[string]string{}
	if j, ok := hub.LoginJoin(); ok {
		s.Joins[bus.PrivilegeUser] = j.String()
	}
	for _, p := range []string{bus.PrivilegeAgent, bus.PrivilegeOperate} {
		j, err := hub.Join(p)
		if err != nil {
			return err
		}
		s.Joins[p], s.Control = j.String(), j.Control
		s.Cert = fmt.Sprintf("%x", j.CertSHA256)
	}
	return nil
}

// status describes the controller in one line.
func (c *controlCmd) status(s controlling) string {
	where := "over " + s.NATS
	if s.NATS == "" {
		where = "at " + strings.Join(s.Control, " ")
	}
	return fmt.Sprintf("is the controller %s; results that hosts deliver go to %s", where, s.Results)
}

// announce prints the join strings and that the controller is ready.
func (c *controlCmd) announce(e *env, s controlling, state *bus.State) {
	if c.JSON {
		if e.Log.Journal {
			s.Joins = nil // others may read the journal
		}
		json.NewEncoder(e.Out).Encode(s)
		return
	}
	for _, w := range s.Warnings {
		e.Say(console.Warning, e.Err, "warning: "+w)
	}
	e.Say(console.Info, e.Out, "thru "+e.Version+" "+c.status(s))
	switch {
	case s.Joins == nil || !e.Logs(console.Info):
	case e.Log.Journal:
		e.Say(console.Info, e.Out, "join strings: thru control --print-join agent --state "+state.Dir()+", and operate")
	default:
		e.Say(console.Info, e.Out, fmt.Sprintf("on each host run `thru join %s`, paste this line (it allows serving here, nothing else), then `thru serve --controller %s`:", c.Name, c.Name))
		fmt.Fprintln(e.Out, s.Joins[bus.PrivilegeAgent])
		e.Say(console.Info, e.Out, fmt.Sprintf("as operator run `thru join %s`, paste this line (it allows measuring between all hosts), then `thru hosts %s`:", c.Name, c.Name))
		fmt.Fprintln(e.Out, s.Joins[bus.PrivilegeOperate])
		if login := s.Joins[bus.PrivilegeUser]; login != "" {
			e.Say(console.Info, e.Out, fmt.Sprintf("as user run `thru join %s`, paste this line (it has no secret), then `thru login %s`:", c.Name, c.Name))
			fmt.Fprintln(e.Out, login)
		}
	}
	e.ready()
}

// roll reports hosts that join and leave.
type roll struct{ events *console.EventLog }

// rollEvery is the interval between two checks.
const rollEvery = time.Second

// follow checks the hosts until the context ends, and passes them on.
func (r roll) follow(ctx context.Context, hosts func() []bus.Host, pass func(context.Context, []bus.Host)) {
	was := map[string]bus.Host{}
	tick := time.NewTicker(rollEvery)
	defer tick.Stop()
	for {
		all := hosts()
		pass(ctx, all)
		for _, h := range all {
			old, known := was[h.ID]
			was[h.ID] = h
			if kind, text := turn(old, h, known); kind != "" {
				r.events.Notify(kind, text, map[string]any{"host": h})
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// turn words how a host changed; "" if the user need not know.
func turn(old, now bus.Host, known bool) (kind, text string) {
	switch {
	case now.Refused != "" && (old.Refused != now.Refused || !old.Online) && now.Online:
		return "refused", fmt.Sprintf("! a host that calls itself %s is refused: %s", now.Name, now.Refused)
	case now.Refused != "":
		return "", ""
	case now.Online && (!known || !old.Online || old.Refused != ""):
		return "host", "+ " + introduced(now)
	case !now.Online && known && old.Online:
		return "gone", "- " + now.Name + " is offline"
	case now.Problem != old.Problem && now.Problem != "":
		return "problem", fmt.Sprintf("! %s: %s", now.Name, now.Problem)
	}
	return "", ""
}

// introduced describes a host in one line.
func introduced(h bus.Host) string {
	parts := []string{h.Name}
	for _, k := range slices.Sorted(maps.Keys(h.Labels)) {
		parts = append(parts, k+"="+h.Labels[k])
	}
	if a := append(append([]string{}, h.DataAddrs...), h.Addrs...); len(a) > 0 {
		parts = append(parts, a[0])
	}
	if h.CPUs > 0 {
		parts = append(parts, fmt.Sprintf("%d CPUs", h.CPUs))
	}
	return strings.Join(append(parts, "thru "+h.Thru), "  ")
}
