package cli

import (
	"context"
	"slices"

	"thru/internal/cli/console"
	"thru/internal/hypervisor"
	"thru/internal/remote"
)

// hypervisorFlags name the hypervisors that may run the end points of a test.
type hypervisorFlags struct {
	Hypervisor []string `group:"Hypervisors" name:"hypervisor" sep:"none" placeholder:"URL" help:"Find the virtual machines of the end points, and read their hosts during the test: vsphere://USER@HOST (vCenter or ESXi), ssh://root@HOST (ESXi), or an end point that runs QEMU. Can be repeated."`
	vsphereFlags
}

// onto sets up a dialer with the login options of the flags.
func (f hypervisorFlags) onto(e *env, d remote.Dialer) remote.Dialer {
	d.Insecure = f.Insecure
	if d.Password == nil {
		d.Password = console.NewPasswords(e.Console, f.PasswordStdin).Of
	}
	return d
}

// above connects the ends of a pair and their hypervisors.
func (f hypervisorFlags) above(ctx context.Context, e *env, d remote.Dialer, name string) (remote.Pair, func(), error) {
	ends, closeEnds, err := d.Pair(ctx, name)
	if err != nil {
		return remote.Pair{}, nil, err
	}
	sources, closeHypervisors, err := f.onto(e, d).Hypervisors(ctx, f.Hypervisor)
	if err != nil {
		closeEnds()
		return remote.Pair{}, nil, err
	}
	ends.Hypervisors = sources
	return ends, func() { closeHypervisors(); closeEnds() }, nil
}

// connectHypervisors connects the hypervisors of a plan once. It asks for passwords once.
func (r *planRun) connectHypervisors(ctx context.Context, d remote.Dialer, named []string) (err error) {
	if r.hypervisors != nil {
		return nil
	}
	d.Password = r.password
	d = r.under.onto(r.env, d)
	r.password = d.Password
	if r.hypervisors, r.unbelow, err = d.Hypervisors(ctx, slices.Concat(r.options.Hypervisors, named)); r.hypervisors == nil {
		r.hypervisors = []hypervisor.Source{}
	}
	return err
}

// closeHypervisors closes them; the next block connects again, since a host may have restarted meanwhile.
func (r *planRun) closeHypervisors() {
	if r.unbelow != nil {
		r.unbelow()
	}
	r.hypervisors, r.unbelow = nil, nil
}

// vsphereFlags are the login options of a vCenter's or an ESXi host's web service.
type vsphereFlags struct {
	PasswordStdin bool `group:"Login" name:"password-stdin" help:"vsphere: read the password from the first line of stdin (default: THRU_PASSWORD, else a prompt)."`
	Insecure      bool `group:"Login" name:"insecure" help:"vsphere: accept any certificate (default: one that the system trusts, else that of the first contact)."`
}
