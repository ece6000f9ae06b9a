package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"thru/internal/agent"
	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/fault"
	"thru/internal/node"
	"thru/internal/remote"
)

// memberFlags let an agent serve under a controller.
type memberFlags struct {
	Controller string   `group:"Fleet" name:"controller" placeholder:"NAME" help:"Serve under this controller, which this host dials: a name of thru join, a file with its join string, the string itself, or - for stdin. Without -p and --bind no control port is open here."`
	Name       string   `group:"Fleet" name:"name" help:"Name in the fleet (default: that of the host)."`
	Label      []string `group:"Fleet" name:"label" sep:"none" placeholder:"KEY=VALUE" help:"Label that plans select hosts by, such as site=east. Can be repeated."`
	natsFlags
}

// member is the agent's membership in a fleet; nil without a controller.
type member struct {
	under  string // the controller as the user named it
	conf   bus.AttachConfig
	spool  *agent.Spool
	events *console.EventLog

	agent  *agent.Agent
	post   *bus.Post
	unlock func() // unlocks the state folder
}

// member reads the flags; nil if the agent serves under no controller.
func (c *serveCmd) member(e *env, state *bus.State) (*member, error) {
	f := c.memberFlags
	nats, err := f.natsFlags.config()
	switch {
	case err != nil:
		return nil, err
	case nats != nil && f.Controller != "":
		return nil, fault.Usagef("take --controller or --nats", "two controllers are named")
	case nats == nil && f.Controller == "":
		if f.Name != "" || len(f.Label) > 0 {
			return nil, fault.Usagef("name it with --controller or --nats", "--name and --label need a controller")
		}
		return nil, nil
	}
	m := &member{under: f.NATS, events: &console.EventLog{On: e.Console, JSON: c.JSON}}
	to := remote.Route{NATS: nats}
	if nats == nil {
		if m.under, to, err = e.controllerGiven(f.Controller); err != nil {
			return nil, err
		}
	}
	m.conf = bus.AttachConfig{
		Join: to.Join, NATS: to.NATS, State: state, Name: cmp.Or(f.Name, node.Hostname()), Version: e.Version,
		DataAddrs: c.DataAddr, Allow: c.Allow, Device: c.BindDev, Addrs: bus.HostAddrs(c.BindDev),
	}
	if m.conf.Labels, err = f.labels(); err != nil {
		return nil, err
	}
	if !bus.ValidHostName(m.conf.Name) {
		return nil, fault.Usagef("--name takes letters, digits and . _ - , up to 64, beginning with a letter or digit", "%q is not a valid name of a host", m.conf.Name)
	}
	if err := m.lock(state); err != nil {
		return nil, err
	}
	m.spool = agent.OpenSpool(filepath.Join(state.Dir(), "spool"), m.events.Warn)
	return m, nil
}

// lock locks the state folder, which holds the identity of this host: of two processes with one identity the
// bus would end one, and both would deliver the spooled results.
func (m *member) lock(state *bus.State) (err error) {
	m.unlock, err = bus.LockFile(filepath.Join(state.Dir(), "serve.lock"))
	if errors.Is(err, bus.ErrLocked) {
		return fault.Failf("stop that one, or give this one its own folder: --state DIR, and another --name",
			"cli: another `thru serve` of a fleet uses the state folder %s", state.Dir())
	}
	return err
}

// labels returns the labels of the flags, and refuses invalid ones.
func (f memberFlags) labels() (map[string]string, error) {
	labels, err := readLabels(f.Label)
	if err != nil {
		return nil, err
	}
	for k, v := range labels {
		if err := bus.CheckLabel(k, v); err != nil {
			return nil, fault.Usagef("--label takes KEY=VALUE such as site=east, without spaces", "--label: %w", err)
		}
	}
	return labels, nil
}

// config adds the membership to the agent's configuration.
func (m *member) config(c *agent.Config) {
	if m == nil {
		return
	}
	c.Name, c.Labels, c.Spool = m.conf.Name, m.conf.Labels, m.spool
	c.Addrs = func() []string { return bus.HostAddrs(m.conf.Device) }
}

// attach joins the fleet. The agent's events go to both kinds of clients.
func (m *member) attach(ctx context.Context, a *agent.Agent, own bus.Publish) error {
	m.agent, m.conf.Busy = a, a.Busy
	m.conf.Spool = func() (int, string) { return m.spool.Waiting(), m.spool.Trouble() }
	hello, err := a.Hello(ctx, "", bus.HelloRequest{})
	if err != nil {
		return err
	}
	m.conf.CPUs = hello.CPUs
	if m.post, err = bus.Attach(ctx, m.conf, a); err != nil {
		return err
	}
	a.Publisher(func(client string, e bus.Event) {
		own(client, e)
		m.post.Publish(client, e)
	})
	a.OnBusy(m.post.Announce)
	m.spool.OnChange(m.post.Announce)
	return nil
}

// run reports the state of the membership, and delivers spooled results, until the context ends or the
// membership is lost for good.
func (m *member) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	delivered := make(chan struct{})
	go func() {
		defer close(delivered)
		m.spool.Deliver(ctx, m.deliver)
	}()
	defer func() { cancel(); <-delivered }()
	var settled <-chan time.Time // fires when the controller has not refused the name
	for ready := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-settled:
			settled, ready = nil, m.status(bus.Status{Connected: true}, ready)
		case s := <-m.post.Status():
			if !ready && (errors.Is(s.Err, bus.ErrSecret) || errors.Is(s.Err, bus.ErrCertificate)) {
				return s.Err // waiting cannot fix this
			}
			if s.Ended {
				return s.Err
			}
			if settled = nil; s.Connected && s.Err == nil {
				settled = time.After(settleTime)
				continue
			}
			ready = m.status(s, ready)
		}
	}
}

// settleTime is how long a host waits for the controller to refuse its name before it reports ready: the
// controller does not report acceptance.
const settleTime = 500 * time.Millisecond

// mostShown limits how many addresses of a controller a line names.
const mostShown = 3

// status reports a changed state once, and returns whether the agent has ever been ready.
func (m *member) status(s bus.Status, ready bool) bool {
	where := m.under
	if j := m.conf.Join; j != nil {
		where += " at " + strings.Join(j.Control[:min(len(j.Control), mostShown)], " ")
	}
	as := map[string]any{"controller": m.under, "name": m.conf.Name, "connected": s.Connected, "error": nil}
	if s.Err != nil {
		as["error"], as["hint"] = fault.Unsecret(s.Err.Error()), fault.Unsecret(fault.Hint(s.Err))
	}
	kind, text := "disconnected", "waits for "+where+": "+fault.WithHint(s.Err)
	serves := s.Connected && s.Err == nil
	switch {
	case serves:
		kind, text = "connected", fmt.Sprintf("serves under %s as %s; ready", where, m.conf.Name)
	case s.Connected:
		kind, text = "refused", "is refused: "+fault.WithHint(s.Err)
	case ready:
		text = "disconnected, retrying: " + fault.WithHint(s.Err)
	}
	m.events.Once("link", kind, text, as)
	showStatus(text)
	if serves {
		m.spool.Wake()
	}
	return ready || serves
}

// deliver sends one document to the controller.
func (m *member) deliver(ctx context.Context, s bus.Spooled) error {
	err := m.post.Deliver(ctx, s)
	switch {
	case err == nil:
		m.events.Forget("spool")
		m.events.Notify("delivered", "delivered to the controller, since its client did not fetch it: "+s.ID, map[string]any{"result": s.ID})
	case ctx.Err() == nil:
		m.events.Once("spool", "warning", "results that clients did not fetch stay here for now: "+fault.WithHint(err), nil)
	}
	return err
}

// leave leaves the fleet and unlocks the state folder.
func (m *member) leave() {
	if m != nil && m.post != nil {
		m.post.Close()
		m.unlock()
	}
}
