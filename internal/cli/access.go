package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"thru/internal/access"
	"thru/internal/access/oidc"
	"thru/internal/audit"
	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/library"
	"thru/internal/unit"
)

// oidcFlags name the provider of a controller's users.
type oidcFlags struct {
	Issuer string   `group:"Log in" name:"oidc-issuer" placeholder:"URL" help:"Provider of OpenID Connect at which users log in (thru login), such as https://id.example.com."`
	Client string   `group:"Log in" name:"oidc-client" placeholder:"ID" default:"thru" help:"Id of the client there: public, with the device authorization grant."`
	Claim  string   `group:"Log in" name:"oidc-claim" placeholder:"NAME" default:"groups" help:"Claim with the groups of a user."`
	Roles  []string `group:"Log in" name:"oidc-role" sep:"none" placeholder:"ROLE:GROUP" help:"Role of a group, limited to hosts with labels as in operator,site=berlin:net-berlin. The first one that fits counts. Can be repeated."`
}

// verifier returns the verifier of ID tokens; nil without a provider.
func (f oidcFlags) verifier() (*oidc.Verifier, error) {
	if f.Issuer == "" {
		if len(f.Roles) > 0 {
			return nil, fault.Usagef("name it: --oidc-issuer URL", "--oidc-role is for a provider, and none is named")
		}
		return nil, nil
	}
	if len(f.Roles) == 0 {
		return nil, fault.Usagef("give a group a role: --oidc-role viewer:GROUP", "--oidc-issuer without --oidc-role lets nobody in")
	}
	v := &oidc.Verifier{Issuer: f.Issuer, Client: f.Client, Claim: f.Claim}
	for _, text := range f.Roles {
		r, err := access.ParseRule(text)
		if err != nil {
			return nil, err
		}
		v.Rules = append(v.Rules, r)
	}
	return v, oidc.CheckURL(f.Issuer)
}

// auditFolder is the folder of the audit log in the state folder of a controller.
const auditFolder = "audit"

// openUsers opens the users of a controller and its audit log; end closes the log.
func (c *controlCmd) openUsers(state *bus.State) (users *bus.Users, end func(), err error) {
	v, err := c.verifier()
	if err != nil {
		return nil, nil, err
	}
	signer, err := state.Signer()
	if err != nil {
		return nil, nil, err
	}
	log, err := audit.Open(filepath.Join(state.Dir(), auditFolder), signer, c.signed...)
	if err != nil {
		return nil, nil, err
	}
	conf := bus.UsersConfig{State: state, Audit: log.Append}
	if v != nil {
		conf.Verify, conf.OIDC = v.Verify, &bus.OIDC{Issuer: v.Issuer, Client: v.Client}
	}
	if users, err = bus.OpenUsers(conf); err != nil {
		log.Close()
		return nil, nil, err
	}
	return users, func() { _ = log.Close() }, nil // each entry is on the disk already
}

type tokenCmd struct {
	Add    tokenAddCmd    `cmd:"" help:"Give a user a token: prints a join string once. Only an administrator may (thru help access)."`
	List   tokenListCmd   `cmd:"" help:"List the tokens, without the secrets."`
	Revoke tokenRevokeCmd `cmd:"" help:"Revoke the tokens of a user at once."`
}

// controllerFlags name the controller whose tokens are meant.
type controllerFlags struct {
	Controller string `name:"controller" placeholder:"NAME" help:"Controller (thru join), where your token has the role admin. Default: the one that runs on this host, for those who can read its state folder."`
	State      string `name:"state" type:"path" placeholder:"DIR" help:"State folder of the controller on this host."`
	JSON       bool   `name:"json" help:"Print JSON."`
}

// dial connects to the controller.
func (f controllerFlags) dial(ctx context.Context, e *env) (*bus.Fleet, error) {
	if f.Controller != "" {
		return e.network.DialFleet(ctx, f.Controller, bus.FleetConfig{})
	}
	dir, j, _, err := joinHere(ctx, e, f.State, "control", bus.PrivilegeOperate)
	if err != nil {
		return nil, err
	}
	state, err := bus.OpenState(dir)
	if err != nil {
		return nil, err
	}
	j = state.StateJoin(j)
	return bus.DialFleet(ctx, bus.FleetConfig{Join: &j, Version: e.Version})
}

type tokenAddCmd struct {
	Name   string   `arg:"" help:"Name of the user, for lists and the audit log."`
	Role   string   `name:"role" required:"" placeholder:"ROLE" help:"viewer, operator, tuner or admin."`
	Labels []string `name:"label" sep:"none" placeholder:"KEY=VALUE" help:"Only at hosts with this label. Can be repeated: values of one key are alternatives, keys must all fit."`
	For    string   `name:"for" default:"90d" placeholder:"TIME" help:"How long it is valid, such as 12h or 90d, or never to let it not expire."`
	controllerFlags
}

// Run gives a token.
func (c *tokenAddCmd) Run(ctx context.Context, e *env) error {
	q := bus.TokenRequest{Name: c.Name}
	var err error
	if q.Role, err = access.ParseRole(c.Role); err != nil {
		return err
	}
	if q.Labels, err = access.ParseLabels(c.Labels); err != nil {
		return err
	}
	if c.For != "never" {
		now := time.Now()
		begin, _, err := library.ReadWhen(c.For, now)
		if err != nil || !begin.Before(now) {
			return fault.Usagef("such as --for 12h, --for 90d or --for never", "--for %s is not a time", fault.Short(c.For))
		}
		q.ForNs = int64(now.Sub(begin))
	}
	f, err := c.dial(ctx, e)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := f.AddToken(ctx, q)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(e.Out).Encode(r)
	}
	e.Line(fmt.Sprintf("%s %s. This join string is not shown again; its user stores it by `thru join NAME`:", r.Given.Identity(), valid(r.Given)))
	_, err = fmt.Fprintln(e.Out, r.Join)
	return err
}

// valid words how long a token is valid.
func valid(g access.Given) string {
	switch {
	case g.Until.IsZero():
		return "does not expire"
	case g.Expired(time.Now()):
		return "expired " + g.Until.Local().Format("2006-01-02 15:04")
	}
	return "until " + g.Until.Local().Format("2006-01-02 15:04")
}

type tokenListCmd struct{ controllerFlags }

// Run lists the tokens.
func (c *tokenListCmd) Run(ctx context.Context, e *env) error {
	f, err := c.dial(ctx, e)
	if err != nil {
		return err
	}
	defer f.Close()
	all, err := f.Tokens(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(e.Out).Encode(map[string]any{"tokens": append(access.Grants{}, all...)})
	}
	if len(all) == 0 {
		e.Line("there are no tokens; add one: thru token add NAME --role ROLE")
	}
	for _, g := range all {
		if _, err := fmt.Fprintf(e.Out, "%-24s %-9s %-24s %-6s %s\n", g.Name, g.Role, cmp.Or(g.Labels.String(), "all hosts"), g.Via, valid(g)); err != nil {
			return err
		}
	}
	return nil
}

type tokenRevokeCmd struct {
	Name string `arg:"" help:"Name of the user."`
	controllerFlags
}

// Run revokes the tokens of a user.
func (c *tokenRevokeCmd) Run(ctx context.Context, e *env) error {
	f, err := c.dial(ctx, e)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.RevokeToken(ctx, c.Name); err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(e.Out).Encode(map[string]string{"revoked": c.Name})
	}
	_, err = fmt.Fprintf(e.Out, "%s is revoked: each further request is refused\n", c.Name)
	return err
}

type loginCmd struct {
	Controller string `arg:"" help:"Name of the controller (thru join, with the join string for users)."`
	JSON       bool   `name:"json" help:"Print JSON."`
}

// Run logs the user in.
func (c *loginCmd) Run(ctx context.Context, e *env) error {
	keys, err := bus.DefaultKeyring()
	if err != nil {
		return err
	}
	j, err := keys.Load(c.Controller)
	if err != nil || j.OIDC == nil {
		return fault.Usagef("store the string that `thru control --oidc-issuer` prints for users: thru join "+c.Controller, "%s has no login: its join string names no provider", fault.Named(c.Controller))
	}
	p, err := oidc.Discover(ctx, j.OIDC.Issuer)
	if err != nil {
		return err
	}
	token, err := p.Login(ctx, j.OIDC.Client, func(a oidc.Ask) {
		e.Line("open " + cmp.Or(a.Full, a.Page) + " and enter the code " + a.Code)
	})
	if err != nil {
		return err
	}
	fresh, given, err := bus.StartSession(ctx, j, token, bus.FleetConfig{Version: e.Version})
	if err != nil {
		return err
	}
	if err := keys.Save(c.Controller, fresh, true); err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(e.Out).Encode(given)
	}
	_, err = fmt.Fprintf(e.Out, "%s is logged in at %s, %s\n", given.Identity(), c.Controller, valid(given))
	return err
}

type auditCmd struct {
	File   string `arg:"" optional:"" type:"path" help:"Exported log to verify instead of the one of the controller."`
	Verify bool   `name:"verify" help:"Check that no entry was changed, removed or moved. Exit code 1 if one was."`
	Noted  string `name:"noted" placeholder:"SEQ:SHA256" help:"Check that the log still has this entry, as --verify has printed it before."`
	Since  string `name:"since" placeholder:"WHEN" help:"Not before: 7d, 12h, 2026-11-20, yesterday."`
	State  string `name:"state" type:"path" placeholder:"DIR" help:"State folder of the controller."`
	JSON   bool   `name:"json" help:"Print the lines as they are stored: an export, which --verify reads."`
}

// Run shows or verifies the audit log.
func (c *auditCmd) Run(_ context.Context, e *env) error {
	if c.File != "" {
		r, err := audit.VerifyFile(c.File)
		if err != nil {
			return err
		}
		return c.verdict(e, r)
	}
	dirs, err := stateFolders(c.State, "control")
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if bus.HasState(dir) {
			return c.of(e, dir)
		}
	}
	return fault.Failf("run it on the host of `thru control`, or name its folder: --state DIR", "cli: there is no controller's log here (looked in %s)", strings.Join(dirs, ", "))
}

// of works on the log of a state folder.
func (c *auditCmd) of(e *env, dir string) error {
	log := filepath.Join(dir, auditFolder)
	if c.Noted != "" {
		var seq int64
		var sum string
		if n, _ := fmt.Sscanf(strings.Replace(c.Noted, ":", " ", 1), "%d %64s", &seq, &sum); n != 2 {
			return fault.Usagef("as thru audit --verify prints it: --noted 812:5f2a...", "--noted %s is not SEQ:SHA256", fault.Short(c.Noted))
		}
		if ok, err := audit.Noted(log, seq, sum); err != nil || !ok {
			return cmp.Or(err, fault.Failf("compare with an earlier export of the log", "cli: the log does not have entry %d as it was noted: it was made again, or cut off before", seq))
		}
	}
	if c.Verify || c.Noted != "" {
		state, err := bus.OpenState(dir)
		if err != nil {
			return err
		}
		signer, err := state.Signer()
		if err != nil {
			return err
		}
		r, err := audit.Verify(log, signer.Key)
		if err != nil {
			return err
		}
		return c.verdict(e, r)
	}
	since := time.Time{}
	if c.Since != "" {
		var err error
		if since, _, err = library.ReadWhen(c.Since, time.Now()); err != nil {
			return err
		}
	}
	return audit.Read(log, since, func(x audit.Entry, line []byte) error {
		text := string(line)
		if !c.JSON {
			text = entryText(x)
		}
		_, err := fmt.Fprintln(e.Out, text)
		return err
	})
}

// entryText words an entry in one line.
func entryText(x audit.Entry) string {
	who := fmt.Sprintf("%s (%s)", x.Who, fault.Joined(x.Role, x.Labels, x.How, x.From))
	text := fmt.Sprintf("%s  %-7s  %s  %s", x.At.Local().Format("2006-01-02 15:04:05"), x.Outcome, who, strings.Join(append([]string{x.Verb}, x.Hosts...), " "))
	if x.Why != "" {
		text += ": " + x.Why
	}
	return fault.Printable(text)
}

// verdict prints what a check has found.
func (c *auditCmd) verdict(e *env, r audit.Report) error {
	if c.JSON {
		if err := json.NewEncoder(e.Out).Encode(r); err != nil {
			return err
		}
	} else {
		for _, at := range r.Torn {
			fmt.Fprintf(e.Out, "%s is incomplete: a crash has cut it off\n", at)
		}
		for _, f := range r.Faults {
			fmt.Fprintln(e.Out, f)
		}
		if len(r.Faults) == 0 {
			fmt.Fprintf(e.Out, "%s, unchanged; the signed head has entry %d; the last one is %d:%s\n", unit.Plural(int(r.Entries), "line"), r.Signed, r.Last, r.SHA256)
		}
	}
	if len(r.Faults) > 0 {
		return fault.Failf("compare with an earlier export (thru audit --json), and find out who could write the folder", "cli: the audit log was changed: %s", r.Faults[0])
	}
	return nil
}
