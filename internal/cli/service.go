package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/measure"
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

// roleArg chooses the service, and how the answer is printed.
type roleArg struct {
	Role string `arg:"" optional:"" enum:"serve,control,watch" default:"serve" help:"serve (the default), control or watch."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// serviceState is what --json prints.
type serviceState struct {
	Service   string         `json:"service"` // "thru-serve"
	Manager   string         `json:"manager"`
	Installed bool           `json:"installed"` // whole; false too if files are missing
	Running   bool           `json:"running"`
	Files     []string       `json:"files"`         // that are there
	Missing   []string       `json:"missing_files"` // of a half installation
	Steps     []string       `json:"steps"`         // done, or with --dry-run planned
	Changed   bool           `json:"changed"`
	Log       string         `json:"log_command"`
	State     string         `json:"state_folder"`
	Error     *measure.Error `json:"error"`

	plan service.Plan
	json bool
	out  io.Writer
}

// newServiceState plans the service. Its steps are printed unless JSON is wanted.
func newServiceState(e *env, u service.Unit, asJSON bool) (*serviceState, error) {
	p, err := u.Plan()
	return &serviceState{Service: u.Name(), Manager: p.Manager, Log: p.Logs, State: p.State, Steps: []string{}, plan: p, json: asJSON, out: e.Out}, err
}

// did prints or keeps a step.
func (s *serviceState) did(step string) {
	if s.Steps = append(s.Steps, step); !s.json {
		fmt.Fprintln(s.out, step)
	}
}

// read reads what is there.
func (s *serviceState) read(ctx context.Context) {
	found, missing := s.plan.Found()
	s.Running = s.plan.Runs(ctx, service.Run)
	s.Files, s.Missing = append([]string{}, found...), []string{}
	if len(found) > 0 {
		s.Missing = append(s.Missing, missing...)
	}
	s.Installed = s.plan.Installed(ctx, service.Run)
}

// end prints the last line, or the document with the error.
func (s *serviceState) end(ctx context.Context, e *env, line string, err error) error {
	if s.json {
		s.read(ctx)
		s.Error, err = e.described(err)
		return cmp.Or(printJSON(e.Out, s), err)
	}
	if err == nil && line != "" {
		_, err = fmt.Fprintln(e.Out, line)
	}
	return err
}

type serviceInstallCmd struct {
	Role       string   `arg:"" optional:"" help:"serve (the default), control or watch."`
	Flags      []string `arg:"" optional:"" help:"Flags of it, after --, such as -- --label site=east --data-ports 6000-6031; of watch its plan first."`
	Controller string   `name:"controller" placeholder:"NAME" help:"Serve under this controller: a name of thru join, the join string itself, or - to read it from stdin. The service gets a copy that only root can read."`
	Restart    bool     `name:"restart" help:"Restart it even if nothing changes, such as after thru itself was replaced."`
	Yes        bool     `name:"yes" short:"y" help:"Do not ask."`
	DryRun     bool     `name:"dry-run" help:"Only print what would be written and run."`
	JSON       bool     `name:"json" help:"Print JSON."`
}

// Run installs the service.
func (c *serviceInstallCmd) Run(ctx context.Context, e *env) error {
	u, err := c.unit(ctx, e)
	if err != nil {
		return err
	}
	s, err := newServiceState(e, u, c.JSON)
	if err != nil {
		return err
	}
	planned := s.plan.Describe()
	if c.DryRun {
		for _, line := range planned {
			s.did(line)
		}
		return s.end(ctx, e, "", nil)
	}
	if err := cmp.Or(service.NeedsRoot(), u.Check()); err != nil {
		return err
	}
	if !c.Yes {
		fmt.Fprintf(e.Err, "%s will run thru %s:\n  %s\n", s.Manager, u.Role, strings.Join(planned, "\n  "))
		if err := e.Confirm(ctx, "Install it?", "nothing was installed"); err != nil {
			return err
		}
	}
	s.Changed, err = s.plan.Install(ctx, service.Run, c.Restart, s.did)
	line := fmt.Sprintf("%s runs. Log: %s; undo: thru service remove %s", s.Service, s.Log, u.Role)
	if !s.Changed {
		line = s.Service + " is installed like this already, and runs"
	}
	return s.end(ctx, e, line, err)
}

// unit reads the flags of the service as the service will read them.
func (c *serviceInstallCmd) unit(ctx context.Context, e *env) (service.Unit, error) {
	u := service.Unit{Role: c.Role, Flags: c.Flags}
	if !isService(u.Role) { // without a role the first flag takes its place
		if u.Role = "serve"; c.Role != "" {
			u.Flags = append([]string{c.Role}, c.Flags...)
		}
	}
	k, err := parse(e, append([]string{u.Role}, u.Flags...))
	if err == nil {
		err = e.takeSettings(k)
	}
	if err != nil {
		return u, fault.Usagef(cmp.Or(fault.Hint(err), "see thru "+u.Role+" --help"), "the flags of the service: %w", err)
	}
	for _, own := range []string{"--state", "--controller", "--print-join"} {
		if slices.Contains(typedFlags(k), own) {
			return u, fault.Usagef("give --controller before --; the service has its own state folder", "%s does not go after --", own)
		}
	}
	if u.Binary, err = os.Executable(); err != nil {
		return u, fmt.Errorf("cli: finding this program: %w", err)
	}
	if _, serves := k.Selected().Target.Addr().Interface().(*serveCmd); c.Controller != "" && !serves {
		return u, fault.Usagef("it is for thru service install serve", "--controller does not go with %s", u.Role)
	}
	switch x := k.Selected().Target.Addr().Interface().(type) {
	case *serveCmd:
		err = c.serving(e, &u, x)
	case *controlCmd:
		err = reads(ctx, e, &u, x.Watch)
	case *watchCmd:
		if len(x.What) != 1 || !e.isPlan(x.What[0]) {
			return u, fault.Usagef("thru service install watch /etc/thru/watch.yaml", "the service needs a plan")
		}
		err = reads(ctx, e, &u, x.What[0])
	}
	return u, err
}

// reads checks a plan that the service reads; "": none.
func reads(ctx context.Context, e *env, u *service.Unit, plan string) error {
	if plan == "" {
		return nil
	}
	if full := func(word string) bool { return strings.HasSuffix(word, plan) }; !filepath.IsAbs(plan) || !slices.ContainsFunc(u.Flags, full) {
		return fault.Usagef("such as /etc/thru/watch.yaml", "a service needs the full path of its plan")
	}
	u.Reads = append(u.Reads, plan)
	_, err := e.watchPlan(ctx, plan)
	return err
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
	Yes bool `name:"yes" short:"y" help:"Do not ask."`
}

// Run removes the service.
func (c *serviceRemoveCmd) Run(ctx context.Context, e *env) error {
	s, err := newServiceState(e, service.Unit{Role: c.Role}, c.JSON)
	if err = cmp.Or(err, service.NeedsRoot()); err != nil {
		return err
	}
	if found, _ := s.plan.Found(); !c.Yes && len(found) > 0 {
		if err := e.Confirm(ctx, fmt.Sprintf("Stop %s, and remove %s?", s.Service, strings.Join(found, ", ")), "nothing was removed"); err != nil {
			return err
		}
	}
	s.Changed, err = s.plan.Remove(ctx, service.Run, s.did)
	line := fmt.Sprintf("%s is removed; its identity and results stay in %s", s.Service, s.State)
	if !s.Changed {
		line = s.Service + " is not installed"
	}
	return s.end(ctx, e, line, err)
}

type serviceStatusCmd struct{ roleArg }

// Run prints the state of the service.
func (c *serviceStatusCmd) Run(ctx context.Context, e *env) error {
	s, err := newServiceState(e, service.Unit{Role: c.Role}, c.JSON)
	if err != nil {
		return err
	}
	s.read(ctx)
	install, line := "thru service install "+c.Role, fmt.Sprintf("%s runs under %s; log: %s", s.Service, s.Manager, s.Log)
	switch {
	case s.Running && len(s.Files) == 0 && s.plan.Known == nil:
		line = fmt.Sprintf("%s runs under %s, installed by another program; log: %s", s.Service, s.Manager, s.Log)
	case s.Running && len(s.Missing) == 0:
	case len(s.Files) == 0 && !s.Installed:
		err = fault.Failf(install, "%s is not installed", s.Service)
	case !s.Installed && len(s.Missing) == 0:
		err = fault.Failf(install+" installs it; thru service remove "+c.Role+" removes the file", "%s is not installed; %s of an earlier one is left", s.Service, strings.Join(s.Files, ", "))
	case len(s.Missing) > 0:
		err = fault.Failf(install+" completes it; thru service remove "+c.Role+" undoes it", "%s is half installed: %s is missing", s.Service, strings.Join(s.Missing, ", "))
	default:
		err = fault.Failf("see why: "+s.Log+"; start it: "+install, "%s is installed, and does not run", s.Service)
	}
	return s.end(ctx, e, line, err)
}

// deployCmd installs thru serve as a service on hosts over ssh.
type deployCmd struct {
	Hosts      []string `arg:"" name:"host" help:"Hosts with ssh, such as root@web1 or ssh://admin@10.0.0.5:2222: root, or sudo without a password."`
	Controller string   `name:"controller" placeholder:"NAME" help:"The controller that the hosts serve under: a name of thru join, the join string itself (the one for hosts), or - to read it from stdin."`
	Label      []string `name:"label" sep:"none" placeholder:"KEY=VALUE" help:"Label of the hosts, such as site=east. Can be repeated."`
	Allow      []string `name:"allow" placeholder:"PRIVILEGE" help:"More that operators may do: capture, tune, inventory (see thru serve --help)."`
	Undo       bool     `name:"undo" help:"Remove the service, and the program that thru deploy has put there; one from before comes back. Identity and results stay."`
	DryRun     bool     `name:"dry-run" help:"Only log in and print what would be done."`
	Yes        bool     `name:"yes" short:"y" help:"Do not ask."`
	JSON       bool     `name:"json" help:"Print JSON."`
}

// deploysAtOnce limits the hosts that are changed at the same time.
const deploysAtOnce = 8

// deployed is what --json prints.
type deployed struct {
	Controller string         `json:"controller,omitempty"`
	DryRun     bool           `json:"dry_run"`
	Hosts      []deployedHost `json:"hosts"`
	Error      *measure.Error `json:"error"`
}

// deployedHost is a host of it.
type deployedHost struct {
	Host   string         `json:"host"` // as typed
	System string         `json:"system,omitempty"`
	Plan   string         `json:"plan,omitempty"` // empty: not reached
	Done   bool           `json:"done"`
	Error  *measure.Error `json:"error"`

	site *remote.Site
	err  error
}

// fail records an error of the host.
func (h *deployedHost) fail(err error) {
	if h.err = err; err != nil {
		h.Error = control.Describe(err)
	}
}

// Run deploys.
func (c *deployCmd) Run(ctx context.Context, e *env) error {
	name, join, err := c.check(e)
	if err != nil {
		return err
	}
	d := deployed{Controller: name, DryRun: c.DryRun, Hosts: make([]deployedHost, len(c.Hosts))}
	defer func() {
		for _, h := range d.Hosts {
			if h.site != nil {
				h.site.Close()
			}
		}
	}()
	c.survey(ctx, e, &d)
	reached := unit.CountFunc(d.Hosts, func(h deployedHost) bool { return h.site != nil })
	if reached > 0 && !c.DryRun && !c.Yes {
		if err := e.Confirm(ctx, "Do this on "+unit.Plural(reached, "host")+"?", "nothing was changed"); err != nil {
			return err
		}
	}
	if reached > 0 && !c.DryRun {
		c.carryOut(ctx, e, &d, join)
	}
	err = errors.Join(unit.Mapped(d.Hosts, func(h deployedHost) error { return h.err })...)
	if !c.JSON {
		return err
	}
	d.Error, err = e.described(err)
	return cmp.Or(printJSON(e.Out, d), err)
}

// survey logs in at the hosts, and prints the plan for each.
func (c *deployCmd) survey(ctx context.Context, e *env, d *deployed) {
	unit.AtMost(len(c.Hosts), deploysAtOnce, func(i int) {
		h := &d.Hosts[i]
		h.Host = c.Hosts[i]
		site, err := remote.Dialer{Network: e.network}.Survey(ctx, h.Host)
		if h.fail(err); err == nil {
			h.site, h.System, h.Plan = site, site.System, c.plan(e, site, d.Controller)
		}
	})
	out := e.Out
	if c.JSON { // the document is stdout's; the question needs its plan
		out = e.Err
	}
	for _, h := range d.Hosts {
		switch {
		case h.site == nil:
			fmt.Fprintf(out, "%s: not reached\n", h.Host)
		default:
			fmt.Fprintf(out, "%s (%s): %s\n", h.site.Name, h.System, h.Plan)
		}
	}
}

// carryOut changes the hosts that were reached.
func (c *deployCmd) carryOut(ctx context.Context, e *env, d *deployed, join string) {
	var printing sync.Mutex
	unit.AtMost(len(d.Hosts), deploysAtOnce, func(i int) {
		h := &d.Hosts[i]
		if h.site == nil {
			return
		}
		done, err := "serves under "+d.Controller, error(nil)
		if c.Undo {
			done, err = "the service is removed", h.site.Undo(ctx)
		} else {
			err = h.site.Install(ctx, join, c.flags())
		}
		h.fail(err)
		if h.Done = err == nil; h.Done && !c.JSON {
			printing.Lock()
			defer printing.Unlock()
			fmt.Fprintf(e.Out, "%s: %s\n", h.site.Name, done)
		}
	})
	if !c.Undo && !c.JSON {
		fmt.Fprintf(e.Out, "undo: thru deploy --undo %s\n", strings.Join(c.Hosts, " "))
	}
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
