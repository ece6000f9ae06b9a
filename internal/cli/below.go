package cli

import (
	"context"
	"slices"

	"thru/internal/cli/console"
	"thru/internal/hypervisor"
	"thru/internal/remote"
)

// belowFlags name the hypervisors that may have the end points of a test.
type belowFlags struct {
	Hypervisor []string `group:"Below the end points" name:"hypervisor" sep:"none" placeholder:"URL" help:"Say which virtual machines the end points are, and what their hosts do meanwhile: vsphere://USER@HOST (vCenter or ESXi), ssh://root@HOST (ESXi), or an end point that runs QEMU. Repeat for more."`
	vsphereFlags
}

// onto has a dialer connect what the flags name.
func (f belowFlags) onto(e *env, d remote.Dialer) remote.Dialer {
	d.Insecure = f.Insecure
	if d.Password == nil {
		d.Password = console.NewPasswords(e.Console, f.PasswordStdin).Of
	}
	return d
}

// above connects the ends of a pair, and the hypervisors below them.
func (f belowFlags) above(ctx context.Context, e *env, d remote.Dialer, name string) (remote.Pair, func(), error) {
	ends, closeEnds, err := d.Pair(ctx, name)
	if err != nil {
		return remote.Pair{}, nil, err
	}
	sources, closeBelow, err := f.onto(e, d).Below(ctx, f.Hypervisor)
	if err != nil {
		closeEnds()
		return remote.Pair{}, nil, err
	}
	ends.Below = sources
	return ends, func() { closeBelow(); closeEnds() }, nil
}

// connectBelow connects the hypervisors of a plan, unless they are. Its passwords
// are asked for once.
func (r *planRun) connectBelow(ctx context.Context, d remote.Dialer, named []string) (err error) {
	if r.below != nil {
		return nil
	}
	d.Password = r.password
	d = r.under.onto(r.env, d)
	r.password = d.Password
	if r.below, r.unbelow, err = d.Below(ctx, slices.Concat(r.options.Hypervisors, named)); r.below == nil {
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

// vsphereFlags are those of a vCenter's or an ESXi host's web service.
type vsphereFlags struct {
	PasswordStdin bool `group:"Login" name:"password-stdin" help:"vsphere: read the password from the first line of stdin (else: THRU_PASSWORD, else it is asked for)."`
	Insecure      bool `group:"Login" name:"insecure" help:"vsphere: accept any certificate (default: one that the system trusts, else the one that was kept at the first contact)."`
}
