package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"thru/internal/cli/console"
	"thru/internal/fault"
	"thru/internal/hypervisor"
	"thru/internal/measure"
	"thru/internal/unit"
)

// belowFlags name the hypervisors that may have the end points of a test.
type belowFlags struct {
	Hypervisor []string `group:"Below the end points" name:"hypervisor" sep:"none" placeholder:"URL" help:"Say which virtual machines the end points are, and what their hosts do meanwhile: vsphere://USER@HOST (vCenter or ESXi), ssh://root@HOST (ESXi), or an end point that runs QEMU. Repeat for more."`
	vsphereFlags
}

// onto has a dialer connect what the flags name.
func (f belowFlags) onto(d dialer) dialer {
	d.Insecure = f.Insecure
	if d.Passwords == nil {
		d.Passwords = console.NewPasswords(d.env.Console, f.PasswordStdin)
	}
	return d
}

// reachTime bounds the connection of a hypervisor: it may not keep a test from beginning.
const reachTime = 30 * time.Second

// reach connects a hypervisor, says that it does, and gives up in time. The time
// stands still while a person is asked for a password.
func (d dialer) reach(ctx context.Context, at string) (hypervisor.Source, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	limit := cmp.Or(d.ReachTime, reachTime)
	errLate := errors.New("no answer in time")
	timer := time.AfterFunc(limit, func() { cancel(errLate) })
	p := d.env.Board(false)
	defer p.Clear()
	p.Checking("connecting to " + console.Unsecret(cmp.Or(at, "this machine")))
	d.Asking = func(ask func() (string, error)) (string, error) {
		p.Clear()
		if timer.Stop() {
			defer timer.Reset(limit)
		}
		return d.env.Interruptible(ctx, ask)
	}
	s, err := d.hypervisor(ctx, at)
	timer.Stop()
	late := context.Cause(ctx) == errLate
	if err != nil && !late && ctx.Err() != nil {
		err = ctx.Err() // an interrupt
	}
	if err == nil && !late {
		return closing{s, func() { cancel(nil) }}, nil // what is connected lives as long as its context
	}
	if err == nil {
		s.Close()
	}
	cancel(nil)
	if late {
		err = fault.Failf("is it a hypervisor that listens there, and is it not overloaded?", "%s: no answer within %s", fault.Named(console.Unsecret(at)), unit.Duration(int64(limit)))
	}
	return nil, err
}

// below connects the hypervisors that URLs name. A URL that is none ends the
// command; one that cannot be reached says so in the result, and costs no figure.
func (d dialer) below(ctx context.Context, urls []string) ([]hypervisor.Source, func(), error) {
	var all []hypervisor.Source
	closeAll := func() {
		for _, s := range slices.Backward(all) {
			s.Close()
		}
	}
	known := map[string]bool{}
	for _, at := range urls {
		if known[sourceKey(at)] {
			continue
		}
		known[sourceKey(at)] = true
		s, err := d.reach(ctx, at)
		switch {
		case err == nil:
		case ctx.Err() != nil, fault.Code(err) == fault.Usage:
			closeAll()
			return nil, nil, err
		default:
			s = unreachable{console.Unsecret(at), err}
			d.env.Warn(s.Name()+" cannot be asked", err) // at once: who wants its figures need not wait for the end
		}
		all = append(all, s)
	}
	return all, closeAll, nil
}

// sourceKey is the same for every spelling of one vSphere server.
func sourceKey(at string) string {
	scheme, _, _ := strings.Cut(at, "://")
	if user, addr, err := vsphereTarget(at); err == nil && strings.EqualFold(scheme, vsphereScheme) {
		return vsphereScheme + "://" + user + "@" + strings.TrimSuffix(strings.ToLower(addr), ":443")
	}
	return at
}

// unreachable is a hypervisor that could not be connected: who asks it hears why.
type unreachable struct {
	name string
	err  error
}

// Name implements hypervisor.Source.
func (u unreachable) Name() string { return u.name }

// Inventory implements hypervisor.Source.
func (u unreachable) Inventory(context.Context, func(*measure.Guest) bool, func(*measure.GuestHost) bool) (measure.Inventory, error) {
	return measure.Inventory{}, u.err
}

// Watch implements hypervisor.Source.
func (u unreachable) Watch(context.Context, []string) (hypervisor.Watch, error) { return nil, u.err }

// Close implements hypervisor.Source.
func (u unreachable) Close() error { return nil }

// above connects the ends of a pair, and the hypervisors below them.
func (f belowFlags) above(ctx context.Context, d dialer, name string) (pair, func(), error) {
	ends, closeEnds, err := d.pair(ctx, name)
	if err != nil {
		return pair{}, nil, err
	}
	sources, closeBelow, err := f.onto(d).below(ctx, f.Hypervisor)
	if err != nil {
		closeEnds()
		return pair{}, nil, err
	}
	ends.below = sources
	return ends, func() { closeBelow(); closeEnds() }, nil
}

// connectBelow connects the hypervisors of a plan, unless they are. Its passwords
// are asked for once.
func (r *planRun) connectBelow(ctx context.Context, d dialer, named []string) (err error) {
	if r.below != nil {
		return nil
	}
	d.Passwords = r.passwords
	d = r.under.onto(d)
	r.passwords = d.Passwords
	if r.below, r.unbelow, err = d.below(ctx, slices.Concat(r.options.Hypervisors, named)); r.below == nil {
		r.below = []hypervisor.Source{}
	}
	return err
}

// closeBelow ends them; a block that follows connects them anew, since a host may
// have been started anew meanwhile.
func (r *planRun) closeBelow() {
	if r.unbelow != nil {
		r.unbelow()
	}
	r.below, r.unbelow = nil, nil
}
