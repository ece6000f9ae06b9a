package remote

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"thru/internal/fault"
	"thru/internal/hypervisor"
	"thru/internal/measure"
	"thru/internal/unit"
)

// reachTime bounds the connection of a hypervisor, so that it cannot delay a test for long.
const reachTime = 30 * time.Second

// Reach connects a hypervisor, prints that it does, and gives up in time. The time
// limit does not run while the user is asked for a password.
func (d Dialer) Reach(ctx context.Context, at string) (hypervisor.Source, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	limit := cmp.Or(d.ReachTime, reachTime)
	errLate := errors.New("no answer in time")
	timer := time.AfterFunc(limit, func() { cancel(errLate) })
	p := d.person.Progress()
	defer p.Clear()
	p.Checking("connecting to " + fault.Unsecret(cmp.Or(at, "this machine")))
	d.Asking = func(ask func() (string, error)) (string, error) {
		p.Clear()
		if timer.Stop() {
			defer timer.Reset(limit)
		}
		return d.person.Interruptible(ctx, ask)
	}
	s, err := d.hypervisor(ctx, at)
	timer.Stop()
	late := context.Cause(ctx) == errLate
	if err != nil && !late && ctx.Err() != nil {
		err = ctx.Err() // an interrupt
	}
	if err == nil && !late {
		return closing{s, func() { cancel(nil) }}, nil // the connection lives as long as its context
	}
	if err == nil {
		s.Close()
	}
	cancel(nil)
	if late {
		err = fault.Failf("check that a hypervisor listens there and is not overloaded", "%s: no answer within %s", fault.Named(fault.Unsecret(at)), unit.Duration(int64(limit)))
	}
	return nil, err
}

// Hypervisors connects the hypervisors of a list of URLs. An invalid URL ends the
// command; one that cannot be reached is reported in the result, and does not affect other figures.
func (d Dialer) Hypervisors(ctx context.Context, urls []string) ([]hypervisor.Source, func(), error) {
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
		s, err := d.Reach(ctx, at)
		switch {
		case err == nil:
		case ctx.Err() != nil, fault.Code(err) == fault.Usage:
			closeAll()
			return nil, nil, err
		default:
			s = unreachable{fault.Unsecret(at), err}
			d.person.Warn(s.Name()+" does not answer", err) // at once: a user who needs its figures can interrupt
		}
		all = append(all, s)
	}
	return all, closeAll, nil
}

// sourceKey returns the same key for every spelling of one vSphere server.
func sourceKey(at string) string {
	scheme, _, _ := strings.Cut(at, "://")
	if user, addr, err := vsphereTarget(at); err == nil && strings.EqualFold(scheme, VsphereScheme) {
		return VsphereScheme + "://" + user + "@" + strings.TrimSuffix(strings.ToLower(addr), ":443")
	}
	return at
}

// unreachable is a hypervisor that could not be connected: its methods return the error.
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
