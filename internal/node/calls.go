package node

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

// Calls configures the iperf servers and who may use them.
type Calls struct {
	IPerf3Port, IPerf2Port int // 0: no server
	Login
}

// Login configures iperf3's authentication: a users file, and the private key that decrypts logins.
type Login struct {
	Users, PrivateKey string
	PKCS1             bool
	Skew              int // allowed clock difference of the client, in seconds
}

// Answering holds the open iperf servers.
type Answering struct {
	Three      *iperf3.Server // nil: not open
	threePorts *iperf3.Ports
	two        *iperf2.Server
	twoTCP     []net.Listener
	twoUDP     []*net.UDPConn
}

// Engines returns all engines; those without a server only dial.
func (d Answering) Engines(p *worker.Program) engine.Table {
	t := engine.Table{}
	for _, e := range []engine.Engine{native.Engine{Program: p}, iperf3.Engine{Program: p, Server: d.Three}, iperf2.Engine{Program: p, Server: d.two}} {
		t[e.Name()] = e
	}
	return t
}

// Open opens the servers. A port that cannot be opened is a warning: the others work.
func (f Calls) Open(ctx context.Context, at engine.Listen, l bus.Limits, refused func(addr string, reason error)) (d Answering, warnings []string, err error) {
	for _, p := range []int{f.IPerf3Port, f.IPerf2Port} {
		if p < 0 || p > 65535 {
			return d, nil, fault.Usagef("--iperf3-port and --iperf2-port take 1 to 65535, or 0 for none", "%d is not a port", p)
		}
	}
	most := time.Duration(l.DurationNs)
	conf := iperf3.ServerConfig{Limits: iperf3.Limits{Streams: l.Streams, Duration: most, RateBps: l.RateBps}, Refused: refused}
	if err := f.Login.into(&conf); err != nil {
		return d, nil, err
	}
	if f.IPerf3Port > 0 {
		if d.Three, err = iperf3.NewServer(conf); err != nil {
			return d, nil, err
		}
		if d.threePorts, err = iperf3.Listen(ctx, at.Addrs, at.Device, f.IPerf3Port); err != nil {
			d.Three, warnings = nil, append(warnings, fmt.Sprintf("iperf3 clients are not answered: %v", err))
		}
	}
	if f.IPerf2Port > 0 && len(conf.PrivateKey) == 0 {
		d.two = iperf2.NewServer(iperf2.ServerConfig{Limits: iperf2.Limits{Streams: l.Streams, Duration: most, RateBps: l.RateBps}, Refused: refused})
		if d.twoTCP, d.twoUDP, err = iperf2.Listen(ctx, at.Addrs, f.IPerf2Port, at.Device); err != nil {
			warnings = append(warnings, fmt.Sprintf("not all iperf2 clients are answered: %v", err))
		}
		if len(d.twoTCP)+len(d.twoUDP) == 0 {
			d.two = nil
		}
	}
	return d, warnings, nil
}

// into sets the users and the key in an iperf3 configuration.
func (f Login) into(c *iperf3.ServerConfig) error {
	if f.Users == "" && f.PrivateKey == "" {
		return nil
	}
	if f.Skew < 1 {
		return fault.Usagef("--time-skew-threshold takes seconds, such as 10", "the threshold is less than 1 s")
	}
	if f.Users == "" || f.PrivateKey == "" {
		return fault.Usagef("give both --authorized-users-path FILE and --rsa-private-key-path FILE", "the login is incomplete")
	}
	var err error
	if c.PrivateKey, err = bus.ReadKey(f.PrivateKey); err != nil {
		return fault.Usagef("give --rsa-private-key-path a PEM file", "reading the key: %w", err)
	}
	users, err := os.Open(f.Users)
	if err != nil {
		return fault.Usagef("give --authorized-users-path a file with lines of NAME,HASH", "reading the users: %w", err)
	}
	defer users.Close()
	c.PKCS1, c.Skew = f.PKCS1, time.Duration(f.Skew)*time.Second
	c.Users, err = iperf3.ParseUsers(users)
	return err
}

// Serve accepts iperf clients until the context ends.
func (d Answering) Serve(ctx context.Context, took func(engine.Call)) error {
	var wg sync.WaitGroup
	var errs [2]error
	if d.Three != nil {
		wg.Go(func() { errs[0] = d.Three.Serve(ctx, d.threePorts, took) })
	}
	if d.two != nil {
		wg.Go(func() { errs[1] = d.two.Serve(ctx, d.twoTCP, d.twoUDP, took) })
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}

// List returns the addresses of the iperf servers, each with its protocol.
func (d Answering) List() (addrs []string) {
	if d.Three != nil {
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
