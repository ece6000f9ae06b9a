package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"thru/internal/bus"
	"thru/internal/engine"
	"thru/internal/engine/iperf2"
	"thru/internal/engine/iperf3"
	"thru/internal/engine/native"
	"thru/internal/engine/worker"
	"thru/internal/fault"
)

// iperfFlags let clients of other programs measure with this host.
type iperfFlags struct {
	IPerf      bool   `name:"iperf" help:"Also answer iperf3 and iperf2 clients, several at once; the result of each test is kept. Implied by --no-auth."`
	IPerf3Port int    `name:"iperf3-port" default:"5201" placeholder:"PORT" help:"TCP and UDP port for iperf3 clients (default 5201); 0 for none."`
	IPerf2Port int    `name:"iperf2-port" default:"5001" placeholder:"PORT" help:"TCP and UDP port for iperf2 clients (default 5001); 0 for none."`
	Results    string `name:"results" type:"path" placeholder:"DIR" help:"Folder for their results, the newest 1000 (default: results in the state folder)."`
	iperfLogin
}

// iperfLogin is what iperf3 calls them: who may measure.
type iperfLogin struct {
	Users      string `name:"authorized-users-path" type:"path" placeholder:"FILE" help:"iperf3's file of users: its clients must log in, and iperf2's, which cannot, are not answered."`
	PrivateKey string `name:"rsa-private-key-path" type:"path" placeholder:"FILE" help:"The private RSA key that opens their logins."`
	PKCS1      bool   `name:"use-pkcs1-padding" help:"Logins have the older padding, of iperf3 before 3.17."`
	Skew       int    `name:"time-skew-threshold" default:"10" placeholder:"SECONDS" help:"How far the clock of who logs in may be away."`
}

// desks are where clients of other programs call.
type desks struct {
	three      *iperf3.Desk // nil: none is open
	threePorts *iperf3.Ports
	two        *iperf2.Desk
	twoTCP     []net.Listener
	twoUDP     []*net.UDPConn
}

// engines are all that there are; without a desk they call, and are not called.
func (d desks) engines(p *worker.Program) engine.Table {
	t := engine.Table{}
	for _, e := range []engine.Engine{native.Engine{Program: p}, iperf3.Engine{Program: p, Desk: d.three}, iperf2.Engine{Program: p, Desk: d.two}} {
		t[e.Name()] = e
	}
	return t
}

// open opens the desks. A port that cannot be had is a warning: the rest works.
func (f iperfFlags) open(ctx context.Context, at engine.Listen, l bus.Limits, refused func(addr string, reason error)) (d desks, warnings []string, err error) {
	for _, p := range []int{f.IPerf3Port, f.IPerf2Port} {
		if p < 0 || p > 65535 {
			return d, nil, fault.Usagef("--iperf3-port and --iperf2-port take 1 to 65535, or 0 for none", "port %d is none", p)
		}
	}
	most := time.Duration(l.DurationNs)
	conf := iperf3.DeskConfig{Limits: iperf3.Limits{Streams: l.Streams, Duration: most, RateBps: l.RateBps}, Refused: refused}
	if err := f.iperfLogin.into(&conf); err != nil {
		return d, nil, err
	}
	if f.IPerf3Port > 0 {
		if d.three, err = iperf3.NewDesk(conf); err != nil {
			return d, nil, err
		}
		if d.threePorts, err = iperf3.Listen(ctx, at.Addrs, at.Device, f.IPerf3Port); err != nil {
			d.three, warnings = nil, append(warnings, fmt.Sprintf("iperf3 clients are not answered: %v", err))
		}
	}
	if f.IPerf2Port > 0 && len(conf.PrivateKey) == 0 {
		d.two = iperf2.NewDesk(iperf2.DeskConfig{Limits: iperf2.Limits{Streams: l.Streams, Duration: most, RateBps: l.RateBps}, Refused: refused})
		if d.twoTCP, d.twoUDP, err = iperf2.Listen(ctx, at.Addrs, f.IPerf2Port, at.Device); err != nil {
			warnings = append(warnings, fmt.Sprintf("not all iperf2 clients are answered: %v", err))
		}
		if len(d.twoTCP)+len(d.twoUDP) == 0 {
			d.two = nil
		}
	}
	return d, warnings, nil
}

// into reads who may measure.
func (f iperfLogin) into(c *iperf3.DeskConfig) error {
	if f.Users == "" && f.PrivateKey == "" {
		return nil
	}
	if f.Skew < 1 {
		return fault.Usagef("--time-skew-threshold takes seconds, such as 10", "no clock is that close")
	}
	if f.Users == "" || f.PrivateKey == "" {
		return fault.Usagef("give both --authorized-users-path FILE and --rsa-private-key-path FILE", "half of a login is missing")
	}
	var err error
	if c.PrivateKey, err = bus.ReadKey(f.PrivateKey); err != nil {
		return fault.Usagef("--rsa-private-key-path wants a PEM file", "reading the key: %w", err)
	}
	users, err := os.Open(f.Users)
	if err != nil {
		return fault.Usagef("--authorized-users-path wants a file with lines of NAME,HASH", "reading the users: %w", err)
	}
	defer users.Close()
	c.PKCS1, c.Skew = f.PKCS1, time.Duration(f.Skew)*time.Second
	c.Users, err = iperf3.ParseUsers(users)
	return err
}

// serve takes calls until the context ends.
func (d desks) serve(ctx context.Context, took func(engine.Call)) error {
	var wg sync.WaitGroup
	var errs [2]error
	if d.three != nil {
		wg.Go(func() { errs[0] = d.three.Serve(ctx, d.threePorts, took) })
	}
	if d.two != nil {
		wg.Go(func() { errs[1] = d.two.Serve(ctx, d.twoTCP, d.twoUDP, took) })
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}

// list says where clients of other programs are answered.
func (d desks) list() (addrs []string) {
	if d.three != nil {
		for _, l := range d.threePorts.TCP {
			addrs = append(addrs, "iperf3 "+l.Addr().String())
		}
	}
	if d.two != nil {
		for _, l := range d.twoTCP {
			addrs = append(addrs, "iperf2 "+l.Addr().String())
		}
	}
	return addrs
}
