package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"thru/internal/fault"
	"thru/internal/service"
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
	u.Controller, u.Join = name, to.Join.String()
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
