package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"thru/internal/agent"
	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/engine"
	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/hypervisor"
	"thru/internal/hypervisor/kvm"
	"thru/internal/plan"
)

// dialer connects the end points of a command.
type dialer struct {
	env       *env
	Family    int
	Port      int
	Device    string
	Source    string
	DataAddr  string
	Login     func() (*bus.Login, error)                       // who we are, where a foreign end point asks
	Tunes     bool                                             // settings are changed: what an earlier tuning has left is undone first
	VMkernel  bool                                             // an ESXi host may answer with its own iperf3
	Firewall  bool                                             // and a rule set of its firewall be enabled for that
	Passwords *console.Passwords                               // where a hypervisor's come from; nil: the environment, or a person
	Insecure  bool                                             // any certificate of a hypervisor is accepted
	Asking    func(ask func() (string, error)) (string, error) // asks a person for a password; nil: at once
	ReachTime time.Duration                                    // for a hypervisor to answer; 0: reachTime
	Checks    bool                                             // facts alone are wanted: a system that is read by its own commands is refused
}

// pair is the local end and its peer, which may be the same, and what may lie below them.
type pair struct {
	local, peer *control.EndPoint
	below       []hypervisor.Source
}

func (p pair) all() map[string]*control.EndPoint {
	return map[string]*control.EndPoint{p.local.Name: p.local, p.peer.Name: p.peer}
}

// peerCPUs is how many CPUs the peer has; of a foreign one it is taken to be as many as here.
func (p pair) peerCPUs() int {
	if p.peer.Foreign {
		return p.local.Hello.CPUs
	}
	return p.peer.Hello.CPUs
}

// settle takes into a request who the ends are, and what only connecting has told:
// an ESXi host's iperf3 answers at the address where it was told to.
func (p pair) settle(r *plan.Request) {
	r.Local, r.Peer = control.Local, p.peer.Name
	if p.peer.Engine != "" {
		r.Engine, r.DataAddr = p.peer.Engine, ""
	}
}

// helloTime bounds the first exchange with an end point.
const helloTime = 5 * time.Second

// pair starts the agent in this process and connects the peer.
func (d dialer) pair(ctx context.Context, name string) (pair, func(), error) {
	alone := name == "" || name == control.Local
	local, closeLocal, err := d.local(ctx, alone)
	if err != nil {
		return pair{}, nil, err
	}
	if alone {
		return pair{local: local, peer: local}, closeLocal, nil
	}
	peer, closePeer, err := d.endPoint(ctx, name)
	if err != nil {
		closeLocal()
		return pair{}, nil, err
	}
	return pair{local: local, peer: peer}, func() { closePeer(); closeLocal() }, nil
}

// endPoint connects one that is not this machine, by what is said of where it
// is: a joined name, CONTROLLER/NAME, HOST[:PORT], or SCHEME://...
func (d dialer) endPoint(ctx context.Context, at string) (*control.EndPoint, func(), error) {
	if scheme, where, ok := strings.Cut(at, "://"); ok {
		if scheme == sshScheme {
			return d.overSSH(ctx, at)
		}
		e, err := d.foreign(at, scheme, where)
		return e, func() {}, err
	}
	if controller, name, ok := memberOf(at); ok {
		return d.member(ctx, at, controller, name)
	}
	return d.remote(ctx, at)
}

// local is an agent in this process behind an in-memory control plane. It
// takes data connections on loopback only, and only from itself.
func (d dialer) local(ctx context.Context, alone bool) (*control.EndPoint, func(), error) {
	prog, err := worker.Self()
	if err != nil {
		return nil, nil, err
	}
	desk, err := ownDesk(d.env.Version, prog)
	if err != nil && d.Tunes {
		prog.Close()
		return nil, nil, err
	}
	if d.Tunes {
		for _, s := range undidTuning(desk) {
			d.env.Line("warning: " + s)
		}
	}
	hosts := d.loopback()
	listen := engine.Listen{Addrs: hosts[:1]} // any free port
	a := newAgent(d.env.Version, "local", desks{}.engines(prog), agent.DefaultLimits(), nil, listen, by(desk))
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
		return nil, nil, fmt.Errorf("cli: starting the local agent: %w", err)
	}
	return &control.EndPoint{Name: control.Local, Client: client, Hello: hello, DataHosts: hosts}, stop, nil
}

func (d dialer) loopback() []string {
	switch {
	case d.DataAddr != "":
		return []string{d.DataAddr}
	case d.Family == 6:
		return []string{"::1"}
	}
	return []string{"127.0.0.1"}
}

// newAgent is an agent with the engines of this program; more changes what it is told.
func newAgent(version, name string, engines engine.Table, l bus.Limits, dataAddrs []string, listen engine.Listen, more ...func(*agent.Config)) *agent.Agent {
	c := agent.Config{
		Name: name, Version: version, Engines: engines, Host: host.New(),
		Limits: l, DataAddrs: dataAddrs, Addrs: func() []string { return bus.HostAddrs("") }, Listen: listen, Capture: kernelRing{}, Below: kvm.New(name),
	}
	for _, set := range more {
		set(&c)
	}
	return agent.New(c)
}

// remote connects an end point that was joined, or a host by its address.
func (d dialer) remote(ctx context.Context, name string) (*control.EndPoint, func(), error) {
	conf, err := d.target(name)
	if err != nil {
		return nil, nil, err
	}
	client, err := bus.Dial(ctx, conf)
	if err != nil {
		return nil, nil, err
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

// target finds how to reach a name: a join string, or HOST[:PORT] whose
// certificate is pinned on first use.
func (d dialer) target(name string) (bus.DialConfig, error) {
	conf := bus.DialConfig{Version: d.env.Version, Device: d.Device, LocalAddr: d.Source, Family: d.Family}
	keys, err := bus.DefaultKeyring()
	if err != nil {
		return conf, err
	}
	if j, err := keys.Load(name); err == nil {
		if d.Port != bus.DefaultPort && d.Port != 0 {
			return conf, fault.Usagef("leave -p out: the join string of "+name+" names the port", "-p %d does not go with a joined name", d.Port)
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

// noController refuses a controller, which is no end point itself.
func noController(name string, j bus.Join) error {
	switch j.Privilege {
	case bus.PrivilegeOperate:
		return fault.Usagef("thru hosts "+name+" lists its hosts; name one: "+name+"/NAME", "%s is a controller, no end point", name)
	case bus.PrivilegeAgent:
		return fault.Usagef("thru serve --controller "+name+" is what its string lets do", "%s is a controller, no end point", name)
	}
	return nil
}

// pinFirst trusts a certificate on first use, and says so.
func (d dialer) pinFirst(keys *bus.Keyring) func(string, [32]byte) error {
	return func(addr string, sum [32]byte) error {
		first, err := keys.CheckPin(addr, sum)
		if err == nil && first {
			fmt.Fprintf(d.env.Err, "first contact with %s: its certificate sha256:%x... is kept\n", addr, sum[:6])
		}
		return err
	}
}

// hostPort reads HOST, HOST:PORT, [V6]:PORT or a bare IPv6 address.
func hostPort(s string, port int) (string, error) {
	h, p, err := net.SplitHostPort(s)
	if err != nil {
		h, p = strings.Trim(s, "[]"), strconv.Itoa(port)
	}
	n, err := strconv.Atoi(p)
	if err == nil && (n < 1 || n > 65535) {
		return "", fault.Usagef("-p takes 1 to 65535", "port %d is none", n)
	}
	if h == "" || err != nil || strings.ContainsAny(h, " /\\@") {
		return "", fault.Usagef("an end point is a joined name, CONTROLLER/NAME or HOST[:PORT], such as 10.0.0.2 or [fd00::2]:5200", "%q is no end point", s)
	}
	return net.JoinHostPort(h, p), nil
}

// dataHosts are where the peer takes data connections: what its operator
// set, else the address that control has reached.
func (d dialer) dataHosts(e *control.EndPoint) ([]string, error) {
	hosts := e.Hello.DataAddrs
	if len(hosts) == 0 {
		h, _, err := net.SplitHostPort(e.Addr)
		if err != nil {
			return nil, fmt.Errorf("cli: reading the address of %s: %w", e.Name, err)
		}
		hosts = []string{h}
	}
	if d.DataAddr != "" || d.Family == 0 {
		return hosts, nil
	}
	fit := slices.DeleteFunc(slices.Clone(hosts), func(h string) bool {
		ip := net.ParseIP(h)
		return ip != nil && (ip.To4() != nil) != (d.Family == 4)
	})
	if len(fit) == 0 {
		return nil, fault.Failf("name one with --data-addr", "cli: %s has no IPv%d data address, only %s", e.Name, d.Family, strings.Join(hosts, " "))
	}
	return fit, nil
}

// hostname of this machine, or its system's name.
func hostname() string {
	if h, err := os.Hostname(); err == nil && h != "" {
		return h
	}
	return runtime.GOOS
}
