package cli

import (
	"context"

	"thru/internal/bus"
	"thru/internal/control"
	"thru/internal/library"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/remote"
	"thru/internal/stat"

	"github.com/alecthomas/kong"
)

// measurement is a measurement between two ends, common to all commands: open connects the ends, the runner
// measures, end prints, stores and judges the result.
type measurement struct {
	*env
	runner control.Runner
	ends   remote.Pair
	close  func()
	forms  forms
	keeper *keeper // of packets; nil: none are kept
}

// open checks that the output files can be written, and connects the ends and their hypervisors. It completes
// the request with what it learns about the ends.
func (e *env) open(ctx context.Context, d remote.Dialer, peer string, r *plan.Request, out formFlags, below hypervisorFlags) (*measurement, error) {
	f, err := out.wanted()
	if err != nil {
		return nil, err
	}
	s := &measurement{env: e, forms: f}
	if s.ends, s.close, err = below.above(ctx, e, d, peer); err != nil {
		return nil, err
	}
	s.ends.Settle(r)
	s.runner = control.Runner{Version: e.Version, Ends: s.ends.All(), Hypervisors: s.ends.Hypervisors, Link: stated(r.Link), Gating: library.QuickGates(false)}
	return s, nil
}

// capture keeps the packets of a plan if the flags ask for it.
func (s *measurement) capture(f captureFlags, p plan.Plan) (err error) {
	if s.keeper, err = f.keeper(p, s.ends); s.keeper != nil {
		s.runner.Keep = s.keeper.keep
	}
	return err
}

// end prints and stores the result, and returns the error that ends the command.
func (s *measurement) end(doc *measure.Document, err error) error {
	return s.concluded(doc, s.keeper.forms(s.forms), s.runner.Watch, err)
}

// concluded clears the live view, then prints and stores the result.
func (e *env) concluded(doc *measure.Document, f forms, watch control.Observer, err error) error {
	if w, ok := watch.(interface{ Clear() }); ok {
		w.Clear()
	}
	doc.Arguments = e.Arguments()
	library.KeepCosts(doc)
	return e.outcome(doc, f, err)
}

// dialer returns a dialer with the addresses of a request.
func (e *env) dialer(r plan.Request, port int) remote.Dialer {
	return remote.Dialer{Network: e.network, Port: port, Family: r.Family, Device: r.BindDev, Source: r.BindAddr, DataAddr: r.DataAddr}
}

// dial returns a dialer that also connects programs that are no agents.
func (e *env) dial(r plan.Request, port int, x esxFlags) remote.Dialer {
	d := e.dialer(r, port)
	d.VMkernel, d.Firewall = true, x.Firewall
	if key := &r.Login.PublicKey; *key != "" {
		*key = kong.ExpandPath(*key)
	}
	d.Login = func() (*bus.Login, error) { return e.Login(r.Login) }
	return d
}

// probing returns the settings to probe the path of a request.
func probing(r plan.Request) control.Probing {
	return control.Probing{Source: r.BindAddr, Device: r.BindDev, DataAddr: r.DataAddr, Family: r.Family}
}

// stated converts a link rate that the user stated.
func stated(l plan.Link) stat.Link { return stat.Link{RateBps: l.RateBps, Layer: l.Layer} }
