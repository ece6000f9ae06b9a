package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"thru/internal/fault"
	"thru/internal/remote"
	"thru/internal/unit"
)

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
