package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"thru/internal/fault"
	"thru/internal/remote"
	"thru/internal/service"
	"thru/internal/unit"
)

// serviceCmd runs thru under the service manager of the system.
type serviceCmd struct {
	Install serviceInstallCmd `cmd:"" help:"Install and start the service: shows what it writes and runs first, and asks. Again, it changes only what differs."`
	Remove  serviceRemoveCmd  `cmd:"" help:"Stop the service and remove its files. Its state folder (identity, results) stays."`
	Status  serviceStatusCmd  `cmd:"" help:"Print whether the service is installed and runs; exit code 1 if it does not run."`
}

// roleArg chooses the service.
type roleArg struct {
	Role string `arg:"" optional:"" enum:"serve,control" default:"serve" help:"serve (the default) or control."`
}

type serviceInstallCmd struct {
	Role       string   `arg:"" optional:"" help:"serve (the default) or control."`
	Flags      []string `arg:"" optional:"" help:"Flags of it, after --, such as -- --label site=east --data-ports 6000-6031."`
	Controller string   `name:"controller" placeholder:"NAME" help:"Serve under this controller: a name of thru join, the join string itself, or - to read it from stdin. The service gets a copy that only root can read."`
	Restart    bool     `name:"restart" help:"Restart it even if nothing changes, such as after thru itself was replaced."`
	Yes        bool     `name:"yes" help:"Do not ask."`
	DryRun     bool     `name:"dry-run" help:"Only print what would be written and run."`
}

// Run installs the service.
func (c *serviceInstallCmd) Run(ctx context.Context, e *env) error {
	u, err := c.unit(e)
	if err != nil {
		return err
	}
	p, err := u.Plan()
	if err != nil {
		return err
	}
	if c.DryRun {
		for _, line := range p.Describe() {
			fmt.Fprintln(e.Out, line)
		}
		return nil
	}
	if err := cmp.Or(service.NeedsRoot(), u.Check()); err != nil {
		return err
	}
	if !c.Yes {
		fmt.Fprintf(e.Err, "%s will run thru %s:\n  %s\n", p.Manager, u.Role, strings.Join(p.Describe(), "\n  "))
		if err := e.Confirm(ctx, "Install it?", "nothing was installed"); err != nil {
			return err
		}
	}
	changed, err := p.Install(ctx, service.Run, c.Restart, func(did string) { fmt.Fprintln(e.Out, did) })
	if err != nil {
		return err
	}
	if !changed {
		fmt.Fprintf(e.Out, "%s is installed like this already, and runs\n", u.Name())
		return nil
	}
	_, err = fmt.Fprintf(e.Out, "%s runs. Log: %s; undo: thru service remove %s\n", u.Name(), p.Logs, u.Role)
	return err
}

// unit reads the flags of the service as the service will read them.
func (c *serviceInstallCmd) unit(e *env) (service.Unit, error) {
	u := service.Unit{Role: c.Role, Flags: c.Flags}
	if u.Role != "serve" && u.Role != "control" { // without a role the first flag takes its place
		if u.Role = "serve"; c.Role != "" {
			u.Flags = append([]string{c.Role}, c.Flags...)
		}
	}
	k, err := parse(e, append([]string{u.Role}, u.Flags...))
	if err != nil {
		return u, fault.Usagef("see thru "+u.Role+" --help", "the flags of the service: %w", err)
	}
	for _, own := range []string{"--state", "--controller", "--print-join"} {
		if slices.Contains(typedFlags(k), own) {
			return u, fault.Usagef("give --controller before --; the service has its own state folder", "%s does not go after --", own)
		}
	}
	if u.Binary, err = os.Executable(); err != nil {
		return u, fmt.Errorf("cli: finding this program: %w", err)
	}
	served, ok := k.Selected().Target.Addr().Interface().(*serveCmd)
	switch {
	case ok:
		err = c.serving(e, &u, served)
	case c.Controller != "":
		err = fault.Usagef("it is for thru service install serve", "--controller does not go with control")
	}
	return u, err
}

// serving adds what thru serve needs: its privileges, its folders, and the controller.
func (c *serviceInstallCmd) serving(e *env, u *service.Unit, served *serveCmd) error {
	if _, _, err := served.parse(); err != nil {
		return err
	}
	if err := served.known(e); err != nil {
		return err
	}
	u.Allow = served.Allow
	for _, dir := range append(slices.Clone(served.Files), served.Results) {
		if abs, err := filepath.Abs(dir); dir != "" && err == nil {
			u.Writes = append(u.Writes, abs)
		}
	}
	if c.Controller == "" {
		return nil
	}
	name, to, err := e.controllerGiven(c.Controller)
	switch {
	case err != nil:
		return err
	case to.Join == nil:
		return fault.Usagef("-- --nats URL --nkey FILE, of a file that the service can read", "--controller takes a join string here, and %s is on a NATS cluster", name)
	}
	u.Join = to.Join.String()
	return nil
}

type serviceRemoveCmd struct {
	roleArg
	Yes bool `name:"yes" help:"Do not ask."`
}

// Run removes the service.
func (c *serviceRemoveCmd) Run(ctx context.Context, e *env) error {
	u := service.Unit{Role: c.Role}
	p, err := u.Plan()
	if err == nil {
		err = service.NeedsRoot()
	}
	if err != nil {
		return err
	}
	found, _ := p.Found()
	if !c.Yes && len(found) > 0 {
		if err := e.Confirm(ctx, fmt.Sprintf("Stop %s, and remove %s?", u.Name(), strings.Join(found, ", ")), "nothing was removed"); err != nil {
			return err
		}
	}
	removed, err := p.Remove(ctx, service.Run, func(did string) { fmt.Fprintln(e.Out, did) })
	if err != nil {
		return err
	}
	if !removed {
		_, err = fmt.Fprintf(e.Out, "%s is not installed\n", u.Name())
		return err
	}
	_, err = fmt.Fprintf(e.Out, "%s is removed; its identity and results stay in %s\n", u.Name(), p.State)
	return err
}

type serviceStatusCmd struct{ roleArg }

// Run prints the state of the service.
func (c *serviceStatusCmd) Run(ctx context.Context, e *env) error {
	u := service.Unit{Role: c.Role}
	p, err := u.Plan()
	if err != nil {
		return err
	}
	found, missing := p.Found()
	runs := p.Runs(ctx, service.Run)
	install := "thru service install " + c.Role
	switch {
	case runs && len(missing) == 0:
		_, err = fmt.Fprintf(e.Out, "%s runs under %s; log: %s\n", u.Name(), p.Manager, p.Logs)
		return err
	case len(found) == 0 && !runs:
		return fault.Failf(install, "%s is not installed", u.Name())
	case len(missing) > 0 && len(found) > 0:
		return fault.Failf(install+" completes it; thru service remove "+c.Role+" undoes it", "%s is half installed: %s is missing", u.Name(), strings.Join(missing, ", "))
	case runs:
		_, err = fmt.Fprintf(e.Out, "%s runs; another program installed it\n", u.Name())
		return err
	}
	return fault.Failf("see why: "+p.Logs+"; start it: "+install, "%s is installed, and does not run", u.Name())
}

// deployCmd installs thru serve as a service on hosts over ssh.
type deployCmd struct {
	Hosts      []string `arg:"" name:"host" help:"Hosts with ssh, such as root@web1 or ssh://admin@10.0.0.5:2222: root, or sudo without a password."`
	Controller string   `name:"controller" placeholder:"NAME" help:"The controller that the hosts serve under: a name of thru join, the join string itself (the one for hosts), or - to read it from stdin."`
	Label      []string `name:"label" sep:"none" placeholder:"KEY=VALUE" help:"Label of the hosts, such as site=east. Can be repeated."`
	Allow      []string `name:"allow" placeholder:"PRIVILEGE" help:"More that operators may do: capture, tune, inventory (see thru serve --help)."`
	Undo       bool     `name:"undo" help:"Remove the service, and the program that thru deploy has put there; one from before comes back. Identity and results stay."`
	DryRun     bool     `name:"dry-run" help:"Only log in and print what would be done."`
	Yes        bool     `name:"yes" help:"Do not ask."`
}

// deploysAtOnce limits the hosts that are changed at the same time.
const deploysAtOnce = 8

// Run deploys.
func (c *deployCmd) Run(ctx context.Context, e *env) error {
	name, join, err := c.check(e)
	if err != nil {
		return err
	}
	sites := make([]*remote.Site, len(c.Hosts))
	errs := inParallel(len(c.Hosts), func(i int) (err error) {
		sites[i], err = remote.Dialer{Network: e.network}.Survey(ctx, c.Hosts[i])
		return err
	})
	defer func() {
		for _, s := range sites {
			if s != nil {
				s.Close()
			}
		}
	}()
	reached := 0
	for i, s := range sites {
		if s == nil {
			fmt.Fprintf(e.Out, "%s: not reached\n", c.Hosts[i])
			continue
		}
		reached++
		fmt.Fprintf(e.Out, "%s (%s): %s\n", s.Name, s.System, c.plan(e, s, name))
	}
	if reached == 0 || c.DryRun {
		return errors.Join(errs...)
	}
	if !c.Yes {
		if err := e.Confirm(ctx, "Do this on "+unit.Plural(reached, "host")+"?", "nothing was changed"); err != nil {
			return err
		}
	}
	var mu sync.Mutex
	errs = append(errs, inParallel(len(sites), func(i int) error {
		s := sites[i]
		if s == nil {
			return nil
		}
		done, err := "serves under "+name, error(nil)
		if c.Undo {
			done, err = "the service is removed", s.Undo(ctx)
		} else {
			err = s.Install(ctx, join, c.flags())
		}
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(e.Out, "%s: %s\n", s.Name, done)
		}
		return err
	})...)
	if !c.Undo {
		fmt.Fprintf(e.Out, "undo: thru deploy --undo %s\n", strings.Join(c.Hosts, " "))
	}
	return errors.Join(errs...)
}

// check reads the flags: the name of the controller and its join string.
func (c *deployCmd) check(e *env) (name, join string, err error) {
	if c.Undo {
		return "", "", nil
	}
	if c.Controller == "" {
		return "", "", fault.Usagef("thru deploy HOST --controller NAME; run thru control for one", "no controller is named")
	}
	if _, err := (memberFlags{Label: c.Label}).labels(); err != nil {
		return "", "", err
	}
	serves := serveCmd{Allow: c.Allow}
	if err := serves.known(e); err != nil {
		return "", "", err
	}
	if _, err := serves.files(); err != nil {
		return "", "", fault.Usagef("install it there: thru service install -- --allow files --files DIR", "--allow files does not go with thru deploy")
	}
	name, to, err := e.controllerGiven(c.Controller)
	if err == nil && to.Join == nil {
		err = fault.Usagef("use the example for Ansible, which copies a key to each host", "%s is on a NATS cluster, where each host needs its own key", name)
	}
	if err != nil {
		return "", "", err
	}
	return name, to.Join.String(), nil
}

// flags returns those of thru serve on the hosts.
func (c *deployCmd) flags() (all []string) {
	for _, l := range c.Label {
		all = append(all, "--label", l)
	}
	if len(c.Allow) > 0 {
		all = append(all, "--allow", strings.Join(c.Allow, ","))
	}
	return all
}

// plan says what will be done on a host.
func (c *deployCmd) plan(e *env, s *remote.Site, controller string) string {
	switch {
	case c.Undo && s.Installed:
		return "remove the service, and the program if thru deploy has put it there"
	case c.Undo:
		return "remove the program if thru deploy has put it there; the service is not installed"
	}
	return s.Plan(e.Version) + " under " + controller + ", with the flags [" + strings.Join(c.flags(), " ") + "]"
}

// inParallel runs a function for each index, some at once, and returns the errors in that order.
func inParallel(n int, do func(int) error) []error {
	errs, places := make([]error, n), make(chan struct{}, deploysAtOnce)
	var wg sync.WaitGroup
	for i := range n {
		places <- struct{}{}
		wg.Go(func() { errs[i] = do(i); <-places })
	}
	wg.Wait()
	return errs
}
