package remote

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/plan"
)

// mostDialled bounds concurrent connection attempts.
const mostDialled = 64

// unreached is an end point of a plan that could not be connected.
type unreached struct {
	Name string
	Err  error
}

// ConnectAll connects the end points of a plan at the same time, under the names
// that the plan gives them. It tries all of them; those that it cannot reach are
// returned in the order of the plan.
func (d Dialer) ConnectAll(ctx context.Context, ends []plan.EndPoint) (map[string]*control.EndPoint, []unreached, func()) {
	found, errs := make([]*control.EndPoint, len(ends)), make([]error, len(ends))
	closers := make([]func(), len(ends))
	var wg sync.WaitGroup
	room := make(chan struct{}, mostDialled)
	for i, e := range ends {
		wg.Go(func() {
			room <- struct{}{}
			found[i], closers[i], errs[i] = d.named(ctx, e)
			<-room
		})
	}
	wg.Wait()
	all := map[string]*control.EndPoint{}
	var missing []unreached
	for i, e := range ends {
		if errs[i] != nil {
			missing = append(missing, unreached{e.Name, errs[i]})
		} else {
			all[e.Name] = found[i]
		}
	}
	return all, missing, func() {
		for _, f := range slices.Backward(closers) {
			if f != nil {
				f()
			}
		}
	}
}

// named connects an end point of a plan, with its options there.
func (d Dialer) named(ctx context.Context, at plan.EndPoint) (*control.EndPoint, func(), error) {
	var e *control.EndPoint
	var stop func()
	var err error
	if at.Name == control.Local || at.At == control.Local {
		e, stop, err = d.Local(ctx, false)
	} else {
		d.DataAddr = at.DataAddr
		e, stop, err = d.EndPoint(ctx, cmp.Or(at.At, at.Name))
	}
	if err != nil {
		return nil, nil, err
	}
	e.Name = at.Name
	if at.DataAddr != "" {
		e.DataHosts = []string{at.DataAddr}
	}
	labels := map[string]string{}
	for _, from := range []map[string]string{e.Hello.Labels, e.Labels, at.Labels} {
		maps.Copy(labels, from)
	}
	e.Labels = labels
	return e, stop, nil
}

// mostHints bounds the hints in the error of end points that failed for several reasons.
const mostHints = 2

// UnreachedError names all end points that could not be connected, and why.
func UnreachedError(missing []unreached, of int) error {
	if len(missing) == 1 {
		m := missing[0]
		hint := fault.Joined(fault.Hint(m.Err), "measure the pairs of the others with --go-on")
		return fault.New(fault.Code(m.Err), hint, "%s cannot be reached: %w", m.Name, m.Err)
	}
	var all, hints []string
	for _, m := range missing {
		all = append(all, fmt.Sprintf("%s (%s)", m.Name, fault.Plain(m.Err.Error())))
		if hint := cmp.Or(fault.Hint(m.Err), "start `thru serve` there"); !slices.Contains(hints, hint) && len(hints) < mostHints {
			hints = append(hints, hint)
		}
	}
	if more := len(all) - fault.MostNamed; more > 0 {
		all = append(all[:fault.MostNamed], fmt.Sprintf("and %d more", more))
	}
	return fault.Failf(strings.Join(hints, "; ")+"; or measure the pairs of the others with --go-on", "%d of %d end points cannot be reached: %s", len(missing), of, strings.Join(all, "; "))
}

// SameAgent returns an error for two names of one agent: it has one turn, so that a
// pair of the two would wait for itself.
func SameAgent(ends map[string]*control.EndPoint) error {
	names := map[string]string{}
	for _, n := range slices.Sorted(maps.Keys(ends)) {
		e := ends[n]
		id := cmp.Or(e.Hello.ID, e.Addr)
		if e.Foreign || id == "" {
			continue
		}
		if other, twice := names[id]; twice {
			return fault.Usagef("name it once; to measure within one host, pair an end point with itself", "the end points %s and %s are one agent", other, n)
		}
		names[id] = n
	}
	return nil
}

// SameHost warns of agents that seem to run on one host: pairs that run at once then
// share its CPUs.
func SameHost(ends map[string]*control.EndPoint) []string {
	hosts := map[string][]string{}
	for _, n := range slices.Sorted(maps.Keys(ends)) {
		if e := ends[n]; len(e.Hello.Addrs) > 0 {
			addrs := slices.Sorted(slices.Values(e.Hello.Addrs))
			key := e.Hello.Hostname + " " + strings.Join(addrs, " ")
			hosts[key] = append(hosts[key], n)
		}
	}
	var warnings []string
	for _, key := range slices.Sorted(maps.Keys(hosts)) {
		if names := hosts[key]; len(names) > 1 {
			warnings = append(warnings, fmt.Sprintf("%s seem to be on one host: their pairs share its CPUs", fault.Few(names)))
		}
	}
	return warnings
}
