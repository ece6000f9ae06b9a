package cli

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"thru/internal/cli/console"
	"thru/internal/fault"
	"thru/internal/hypervisor"
	"thru/internal/measure"
	"thru/internal/remote"
)

type inventoryCmd struct {
	Source string   `arg:"" optional:"" name:"source" help:"vsphere://USER@HOST[:PORT] (vCenter, or ESXi by its web service), ssh://[USER@]HOST[:PORT] (ESXi by its commands, or Linux with QEMU), or an end point on which QEMU runs; without it this machine."`
	VM     []string `group:"What" name:"vm" sep:"none" placeholder:"PATTERN" help:"Only the VMs of these names, with * and ?; with --all a single VM is shown in full. Can be repeated."`
	Host   []string `group:"What" name:"host" sep:"none" placeholder:"PATTERN" help:"Only the hosts of these names, with their VMs. Can be repeated."`
	Port   int      `group:"Ends" short:"p" default:"5200" help:"Control port of an end point."`
	vsphereFlags
	formFlags
	storeFlags
}

// Run lists virtual machines, hosts and networks.
func (c *inventoryCmd) Run(ctx context.Context, e *env) error {
	doc := e.document()
	if err := c.sensible(e); err != nil {
		return err
	}
	out, err := c.wanted()
	if err != nil {
		return err
	}
	d := remote.Dialer{Network: e.network, Port: c.Port, Password: console.NewPasswords(e.Console, c.PasswordStdin).Of, Insecure: c.Insecure}
	source, err := d.Reach(ctx, c.Source)
	if err != nil {
		return err
	}
	defer source.Close() // it was only read
	p := e.Board(false)
	p.Checking("reading " + source.Name())
	v, err := c.read(ctx, source)
	p.Clear()
	if err != nil {
		return err
	}
	doc.ElapsedNs, doc.Inventories = time.Since(doc.StartedAt).Nanoseconds(), []measure.Inventory{v}
	if !e.archive.Off && len(v.Guests) > mostKeptGuests {
		e.archive.Off = true
		e.Warn("the result is not in the history", fault.Failf("choose VMs by --vm and --host, or print all by --json", "it has %d VMs, and at most %d are stored", len(v.Guests), mostKeptGuests))
	}
	return e.outcome(doc, out, nil)
}

// mostKeptGuests limits the VMs of a stored result so that it can be read again: a result file has at most 64
// MiB (iperfdoc.MaxFile).
const mostKeptGuests = 20_000

// sensible refuses flags that do not go together.
func (c *inventoryCmd) sensible(e *env) error {
	for _, p := range slices.Concat(c.VM, c.Host) {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return fault.Usagef("such as --vm 'web*'; * stands for any letters, ? for one, [ab] for one of these", "%q is not a pattern", fault.Short(p))
		}
	}
	if c.isVSphere() {
		return nil
	}
	if these := e.TypedOf("--password-stdin", "--insecure"); len(these) > 0 {
		return fault.Usagef("leave it out: ssh uses its own keys, and an end point its join string", "%s is only for vsphere://", these[0])
	}
	return nil
}

func (c *inventoryCmd) isVSphere() bool {
	return strings.HasPrefix(strings.ToLower(c.Source), remote.VsphereScheme+"://")
}

// read reads the chosen objects. It chooses VMs while it reads them, but those of a host only once their
// placement is known.
func (c *inventoryCmd) read(ctx context.Context, source hypervisor.Source) (measure.Inventory, error) {
	vms, hosts := &choice{patterns: c.VM}, &choice{patterns: c.Host}
	var want func(*measure.Guest) bool
	if len(c.VM) > 0 {
		want = func(g *measure.Guest) bool { return vms.has(g.Name, g.ID) }
	}
	v, err := source.Inventory(ctx, want, nil)
	if err != nil {
		return v, err
	}
	if len(c.VM) > 0 && len(v.Guests) == 0 {
		return v, vms.nothing("VM", source.Name())
	}
	if len(c.Host) == 0 {
		return v, nil
	}
	guests, all := v.GuestsTotal, v.HostsTotal
	on := map[string]bool{}
	for _, h := range v.Hosts {
		on[h.ID] = hosts.has(h.Name, h.ID)
	}
	hypervisor.Choose(&v, func(g *measure.Guest) bool { return on[g.Host] }, func(h *measure.GuestHost) bool { return on[h.ID] })
	if guests != nil { // chosen by both VM and host
		v.GuestsTotal, v.HostsTotal = guests, all
	}
	switch {
	case len(v.Hosts) == 0 && len(c.VM) > 0: // only the hosts of these VMs were read
		return v, fault.Failf(fmt.Sprintf("leave --vm out to list all VMs of the host; these are on %s", strings.Join(hosts.names[:min(len(hosts.names), fault.MostNamed)], ", ")),
			"%s has no VM %s on a host %s", source.Name(), strings.Join(c.VM, " or "), strings.Join(c.Host, " or "))
	case len(v.Hosts) == 0:
		return v, hosts.nothing("host", source.Name())
	}
	return v, nil
}

// choice holds the patterns that choose from a list, and the names in it.
type choice struct {
	patterns []string
	names    []string
}

// has reports whether a pattern matches one of the names of an object; case does not matter.
func (c *choice) has(names ...string) bool {
	c.names = append(c.names, names[0])
	for _, p := range c.patterns {
		for _, n := range names {
			if ok, _ := path.Match(strings.ToLower(p), strings.ToLower(n)); ok {
				return true
			}
		}
	}
	return false
}

// nothing returns the error that no pattern matches, with a suggestion.
func (c *choice) nothing(noun, at string) error {
	hint := fmt.Sprintf("thru inventory %s lists all", at)
	if s := fault.Suggest("did you mean ", strings.Trim(c.patterns[0], "*?"), c.names); s != "" {
		hint = s
	}
	return fault.Failf(hint, "%s has no %s %s", at, noun, strings.Join(c.patterns, " or "))
}

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

// connects returns what connects hypervisors again and again, and asks for a password once; nil: there are none.
func (f hypervisorFlags) connects(e *env, d remote.Dialer, urls []string) func(context.Context) ([]hypervisor.Source, func(), error) {
	if len(urls) == 0 {
		return nil
	}
	d = f.onto(e, d)
	return func(ctx context.Context) ([]hypervisor.Source, func(), error) { return d.Hypervisors(ctx, urls) }
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
