package remote

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"thru/internal/bus"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/plan/planfile"
)

// MemberOf splits CONTROLLER/NAME; ok is false for a name with :// or without a slash.
func MemberOf(at string) (controller, name string, ok bool) {
	if strings.Contains(at, "://") {
		return "", "", false
	}
	return strings.Cut(at, "/")
}

// fleets holds the connections of this process to controllers: one to each,
// however many of its hosts are end points.
type fleets struct {
	mu   sync.Mutex
	open map[string]*fleet // by the name of the controller
}

// fleet is the connection to one controller.
type fleet struct {
	*bus.Fleet
	once  sync.Once // connects, and reads the list
	hosts []bus.Host
	err   error
	users int
}

// find returns a host by name. One that the list of the first time does not have online may have come since.
func (f *fleet) find(ctx context.Context, controller, name string) (bus.Host, error) {
	h, err := FindHost(f.hosts, controller, name, time.Now())
	if err == nil {
		return h, nil
	}
	hosts, lerr := f.Hosts(ctx)
	if lerr != nil {
		return h, err
	}
	return FindHost(hosts, controller, name, time.Now())
}

// use returns the connection to a controller and the hosts that it listed when this
// process first asked. The returned function releases it.
func (f *fleets) use(ctx context.Context, controller string, dial func(context.Context) (*bus.Fleet, error)) (*fleet, func(), error) {
	f.mu.Lock()
	if f.open == nil {
		f.open = map[string]*fleet{}
	}
	one := f.open[controller]
	if one == nil {
		one = &fleet{}
		f.open[controller] = one
	}
	one.users++
	f.mu.Unlock()
	one.once.Do(func() {
		if one.Fleet, one.err = dial(ctx); one.err == nil {
			one.hosts, one.err = one.Hosts(ctx)
		}
	})
	back := sync.OnceFunc(func() { f.giveBack(controller, one) })
	if one.err != nil {
		back()
		return nil, nil, one.err
	}
	return one, back, nil
}

func (f *fleets) giveBack(controller string, one *fleet) {
	f.mu.Lock()
	one.users--
	last := one.users == 0
	if last && f.open[controller] == one {
		delete(f.open, controller)
	}
	f.mu.Unlock()
	if last && one.Fleet != nil {
		one.Close()
	}
}

// Own gives the route to the controller that this process is. It goes before a joined one of that name. It is called before anything is connected.
func (n *Network) Own(controller string, route func() (Route, error)) {
	n.own = map[string]func() (Route, error){controller: route}
}

// DialFleet connects to a joined controller as an operator.
func (n *Network) DialFleet(ctx context.Context, controller string, c bus.FleetConfig) (*bus.Fleet, error) {
	route := n.own[controller]
	if route == nil {
		route = func() (Route, error) { return ControllerString(controller, bus.PrivilegeOperate) }
	}
	w, err := route()
	if err != nil {
		return nil, err
	}
	c.Join, c.NATS, c.Version = w.Join, w.NATS, n.version
	return bus.DialFleet(ctx, c)
}

// Ledger returns the runs that the operators of a controller's fleet share. The returned function
// releases the connection.
func (n *Network) Ledger(ctx context.Context, controller string) (*bus.Ledger, func(), error) {
	f, back, err := n.fleets.use(ctx, controller, func(ctx context.Context) (*bus.Fleet, error) {
		return n.DialFleet(ctx, controller, bus.FleetConfig{})
	})
	if err != nil {
		return nil, nil, err
	}
	l, err := f.Ledger()
	if err != nil {
		back()
	}
	return l, back, err
}

// member connects a host of a fleet as an end point.
func (d Dialer) member(ctx context.Context, at, controller, name string) (*control.EndPoint, func(), error) {
	if strings.Trim(controller, ".") == "" { // /tmp/x, ./x
		return nil, nil, fault.Usagef("give HOST, a name of thru join, or CONTROLLER/NAME", "%s: neither a file nor an end point", at)
	}
	if d.Port != bus.DefaultPort && d.Port != 0 {
		return nil, nil, fault.Usagef("omit -p: the controller knows the port", "-p %d cannot be combined with %s", d.Port, at)
	}
	f, back, err := d.fleets.use(ctx, controller, func(ctx context.Context) (*bus.Fleet, error) {
		return d.DialFleet(ctx, controller, bus.FleetConfig{Device: d.Device, LocalAddr: d.Source})
	})
	if err != nil {
		return nil, nil, err
	}
	h, err := f.find(ctx, controller, name)
	if err != nil {
		back()
		return nil, nil, err
	}
	e, err := d.greet(ctx, at, f.Client(h.ID), h, controller)
	if err != nil {
		back()
		return nil, nil, err
	}
	return e, back, nil // the client ends with the connection: other names may share it
}

// greet makes the Hello exchange with a host of a fleet.
func (d Dialer) greet(ctx context.Context, at string, client *bus.Client, h bus.Host, controller string) (*control.EndPoint, error) {
	hctx, cancel := context.WithTimeout(ctx, helloTime)
	defer cancel()
	hello, err := client.Hello(hctx)
	if err != nil {
		return nil, fmt.Errorf("remote: identifying %s: %w", at, err)
	}
	e := &control.EndPoint{Name: at, Client: client, Hello: hello, Labels: h.Labels, Via: controller}
	if len(e.Hello.DataAddrs) == 0 { // there is no control address to use instead
		e.Hello.DataAddrs = hello.Addrs
	}
	if len(e.Hello.DataAddrs) == 0 {
		return nil, fault.Failf("set one there: thru serve --data-addr ADDRESS", "remote: %s reports no data address", at)
	}
	if e.DataHosts, err = d.dataHosts(e); err == nil {
		e.Addr = e.DataHosts[0] // control goes through the controller
	}
	return e, err
}

// FindHost returns the host of a name; its error lists the names that exist.
func FindHost(hosts []bus.Host, controller, name string, now time.Time) (bus.Host, error) {
	var names []string
	refused := ""
	for _, h := range hosts {
		switch {
		case h.Refused != "":
			if h.Name == name {
				refused = h.Refused
			}
		case h.Name == name && h.Online:
			return h, nil
		case h.Name == name:
			return h, fault.Failf("check that `thru serve` runs there and reaches the controller: thru hosts "+controller,
				"remote: %s/%s is not connected: it was last seen %s", controller, name, seen(h, now))
		default:
			names = append(names, h.Name)
		}
	}
	switch {
	case refused != "":
		return bus.Host{}, fault.Failf("show it: thru hosts "+controller, "remote: %s/%s is refused: %s", controller, name, refused)
	case len(hosts) == 0:
		return bus.Host{}, fault.Failf(NoHosts, "remote: %s has no hosts yet", controller)
	}
	return bus.Host{}, fault.Failf(cmp.Or(fault.Suggest("did you mean ", name, names), "list the hosts: thru hosts "+controller),
		"remote: %s has no host named %q", controller, name)
}

// seen returns when a host was last heard, as text.
func seen(h bus.Host, now time.Time) string {
	if h.SeenAt.IsZero() {
		return "never"
	}
	return fmt.Sprintf("%s ago (%s)", max(now.Sub(h.SeenAt), 0).Round(time.Second), h.SeenAt.Local().Format("2006-01-02 15:04:05"))
}

// FleetHosts lists the hosts of controllers as they are now, including offline ones: connecting shows
// that a host is offline. It omits refused hosts.
func (n *Network) FleetHosts(ctx context.Context, controllers []string) (map[string][]planfile.Host, error) {
	all := map[string][]planfile.Host{}
	for _, name := range controllers {
		f, back, err := n.fleets.use(ctx, name, func(ctx context.Context) (*bus.Fleet, error) {
			return n.DialFleet(ctx, name, bus.FleetConfig{})
		})
		if err != nil {
			return nil, err
		}
		hosts, err := f.Hosts(ctx)
		if back(); err != nil {
			return nil, err
		}
		all[name] = []planfile.Host{}
		for _, h := range hosts {
			if h.Refused == "" {
				all[name] = append(all[name], planfile.Host{Name: h.Name, Labels: h.Labels, CPUs: h.CPUs})
			}
		}
	}
	return all, nil
}

// NoHosts is the hint for an empty fleet.
const NoHosts = "run `thru serve --controller NAME` on each host, with the join string for agents that `thru control` prints"
