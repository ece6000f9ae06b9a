package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"thru/internal/agent"
	"thru/internal/bus"
	"thru/internal/control"
	"thru/internal/engine"
	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/hypervisor"
	"thru/internal/node"
	"thru/internal/plan"
)

// Pair is the local end and its peer, which may be the same, and their possible hypervisors.
type Pair struct {
	Local, Peer *control.EndPoint
	Hypervisors []hypervisor.Source
}

// All returns both by their names.
func (p Pair) All() map[string]*control.EndPoint {
	return map[string]*control.EndPoint{p.Local.Name: p.Local, p.Peer.Name: p.Peer}
}

// PeerCPUs returns the number of CPUs of the peer; for a foreign one that of this machine.
func (p Pair) PeerCPUs() int {
	if p.Peer.Foreign {
		return p.Local.Hello.CPUs
	}
	return p.Peer.Hello.CPUs
}

// Settle sets in a request what only the connection shows: the names of the ends, and
// the engine and address of an ESXi host's iperf3.
func (p Pair) Settle(r *plan.Request) {
	r.Local, r.Peer = control.Local, p.Peer.Name
	if p.Peer.Engine != "" {
		r.Engine, r.DataAddr = p.Peer.Engine, ""
	}
}

// Pair starts the agent in this process and connects the peer.
func (d Dialer) Pair(ctx context.Context, name string) (Pair, func(), error) {
	alone := name == "" || name == control.Local
	local, closeLocal, err := d.Local(ctx, alone)
	if err != nil {
		return Pair{}, nil, err
	}
	if alone {
		return Pair{Local: local, Peer: local}, closeLocal, nil
	}
	peer, closePeer, err := d.EndPoint(ctx, name)
	if err != nil {
		closeLocal()
		return Pair{}, nil, err
	}
	return Pair{Local: local, Peer: peer}, func() { closePeer(); closeLocal() }, nil
}

// EndPoint connects an end point that is not this machine, by its location: a joined
// name, CONTROLLER/NAME, HOST[:PORT], or SCHEME://...
func (d Dialer) EndPoint(ctx context.Context, at string) (*control.EndPoint, func(), error) {
	if scheme, where, ok := strings.Cut(at, "://"); ok {
		if scheme == SSHScheme {
			return d.overSSH(ctx, at)
		}
		e, err := d.foreign(at, scheme, where)
		return e, func() {}, err
	}
	if controller, name, ok := MemberOf(at); ok {
		return d.member(ctx, at, controller, name)
	}
	return d.remote(ctx, at)
}

// Local starts an agent in this process with an in-memory control plane. It accepts
// data connections on loopback only, and only from itself.
func (d Dialer) Local(ctx context.Context, alone bool) (*control.EndPoint, func(), error) {
	prog, err := worker.Self()
	if err != nil {
		return nil, nil, err
	}
	tuner, err := node.OwnTuner(d.version, prog)
	if err != nil && d.Tunes {
		prog.Close()
		return nil, nil, err
	}
	if d.Tunes {
		for _, s := range node.Recovered(tuner) {
			d.person.Line("warning: " + s)
		}
	}
	hosts := d.loopback()
	listen := engine.Listen{Addrs: hosts[:1]} // any free port
	a := node.NewAgent(d.version, "local", node.Answering{}.Engines(prog), agent.DefaultLimits(), nil, listen, node.TunedBy(tuner))
	client, err := bus.InProcess(a)
	if err != nil {
		prog.Close()
		return nil, nil, err
	}
	a.Publisher(client.Publish)
	stop := func() { client.Close(); a.Close(); prog.Close() }
	hello, err := client.Hello(ctx)
	if err != nil {
		stop()
		return nil, nil, fmt.Errorf("remote: starting the local agent: %w", err)
	}
	return &control.EndPoint{Name: control.Local, Client: client, Hello: hello, DataHosts: hosts}, stop, nil
}

func (d Dialer) loopback() []string {
	switch {
	case d.DataAddr != "":
		return []string{d.DataAddr}
	case d.Family == 6:
		return []string{"::1"}
	}
	return []string{"127.0.0.1"}
}

// remote connects a joined end point, or a host by its address.
func (d Dialer) remote(ctx context.Context, name string) (*control.EndPoint, func(), error) {
	conf, err := d.target(name)
	if err != nil {
		return nil, nil, err
	}
	client, err := bus.Dial(ctx, conf)
	if err != nil {
		return nil, nil, unknownName(name, err)
	}
	hctx, cancel := context.WithTimeout(ctx, helloTime)
	defer cancel()
	hello, err := client.Hello(hctx)
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	e := &control.EndPoint{Name: name, Addr: client.RemoteAddr(), Client: client, Hello: hello}
	if e.DataHosts, err = d.dataHosts(e); err != nil {
		client.Close()
		return nil, nil, err
	}
	return e, func() { client.Close() }, nil
}

// unknownName adds the joined names to the hint of an error about a name that is neither one of them nor a host.
func unknownName(name string, err error) error {
	keys, kerr := bus.DefaultKeyring()
	if kerr != nil || !errors.Is(err, bus.ErrUnknownHost) {
		return err
	}
	names, _ := keys.List() // without a folder of names there are none
	if len(names) == 0 || slices.Contains(names, name) {
		return err
	}
	return fault.Failf(fault.Joined(fault.Hint(err), "thru join --list prints the joined names"), "%w", err)
}

// target returns how to reach a name: by a join string, or HOST[:PORT] whose
// certificate is pinned on first use.
func (d Dialer) target(name string) (bus.DialConfig, error) {
	conf := bus.DialConfig{Version: d.version, Device: d.Device, LocalAddr: d.Source, Family: d.Family}
	keys, err := bus.DefaultKeyring()
	if err != nil {
		return conf, err
	}
	if j, err := keys.Load(name); err == nil {
		if d.Port != bus.DefaultPort && d.Port != 0 {
			return conf, fault.Usagef("omit -p: the join string of "+name+" names the port", "-p %d cannot be combined with a joined name", d.Port)
		}
		conf.Addrs, conf.Secret = j.Control, j.Secret
		conf.Pin = j.Pin
		return conf, noController(name, j)
	} else if !errors.Is(err, os.ErrNotExist) {
		return conf, err
	}
	addr, err := hostPort(name, d.Port)
	if err != nil {
		return conf, err
	}
	j, ok, err := keys.Find(addr)
	if err != nil {
		return conf, err
	}
	if ok {
		conf.Secret = j.Secret
		conf.Pin = j.Pin
		err = noController(name, j)
	} else {
		conf.Pin = d.pinFirst(keys)
	}
	conf.Addrs = []string{addr}
	return conf, err
}

// noController rejects a controller, which is not an end point itself.
func noController(name string, j bus.Join) error {
	switch j.Privilege {
	case bus.PrivilegeOperate, bus.PrivilegeUser:
		return fault.Usagef("name one of its hosts as "+name+"/NAME; list them: thru hosts "+name, "%s is a controller, not an end point", name)
	case bus.PrivilegeAgent:
		return fault.Usagef("use its join string for agents only: thru serve --controller "+name, "%s is a controller, not an end point", name)
	}
	return nil
}
