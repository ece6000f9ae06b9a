package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/remote"
)

type joinCmd struct {
	Name    string `arg:"" optional:"" help:"Name to store it under."`
	Replace bool   `help:"Replace the entry of this name."`
	Remove  bool   `help:"Forget the name."`
	List    bool   `help:"List the names (no secrets)."`
	JSON    bool   `name:"json" help:"Print JSON."`
	natsFlags
}

// joined is what thru prints of a stored join string: never its secret.
type joined struct {
	Name      string   `json:"name"`
	Control   []string `json:"control"`
	Data      []string `json:"data,omitempty"`
	Cert      string   `json:"certificate_sha256,omitempty"`
	Privilege string   `json:"privilege"` // over a NATS cluster: "by_key", the rights of the key
}

// byKey is the privilege of a client that reaches a controller over a NATS cluster.
const byKey = "by_key"

// Run stores, lists or removes join strings.
func (c *joinCmd) Run(_ context.Context, e *env) error {
	keys, err := bus.DefaultKeyring()
	if err != nil {
		return err
	}
	switch {
	case c.List:
		return c.list(e, keys)
	case c.Name == "":
		return fault.Usagef("thru join NAME, then paste the line that `thru serve` or `thru control` printed", "join needs a name")
	case c.Name == control.Local:
		return fault.Usagef("choose another name", "`local` is always this machine")
	case c.Remove:
		if err := forgetJoined(keys, c.Name); err != nil {
			return err
		}
		return c.answer(e, fmt.Sprintf("%s is forgotten", c.Name), map[string]string{"removed": c.Name})
	}
	return c.keep(e, keys)
}

// maxJoin limits what is read from stdin; a join string is a few hundred bytes.
const maxJoin = 64 << 10

// forgetJoined removes a name, stored as a join string or as a NATS route.
func forgetJoined(keys *bus.Keyring, name string) error {
	err := keys.Remove(name)
	if file, ferr := remote.NATSFile(name); errors.Is(err, os.ErrNotExist) && ferr == nil && os.Remove(file) == nil {
		return nil
	}
	return err
}

func (c *joinCmd) keep(e *env, keys *bus.Keyring) error {
	switch nats, err := c.natsFlags.config(); {
	case err != nil:
		return err
	case nats != nil:
		return c.keepNATS(e, nats)
	}
	if console.IsTerminal(e.In) {
		fmt.Fprintln(e.Err, "paste the join string and press Enter, then Ctrl-D:")
	}
	b, err := io.ReadAll(io.LimitReader(e.In, maxJoin))
	if err != nil {
		return fmt.Errorf("cli: reading the join string: %w", err)
	}
	j, err := bus.ParseJoin(string(b))
	if err != nil {
		return err
	}
	if err := keys.Save(c.Name, j, c.Replace); err != nil {
		return err
	}
	d := describeJoin(c.Name, j)
	return c.answer(e, fmt.Sprintf("%s is stored: control %s, to %s. Try: thru %s", c.Name, strings.Join(d.Control, " "), lets(j), try(j, c.Name)), d)
}

// keepNATS stores the route to a controller over a NATS cluster.
func (c *joinCmd) keepNATS(e *env, nats *bus.NATSConfig) error {
	if err := remote.SaveNATS(c.Name, nats, c.Replace); err != nil {
		return err
	}
	d := joined{Name: c.Name, Control: []string{nats.URL}, Privilege: byKey}
	return c.answer(e, fmt.Sprintf("%s is stored: over %s, with the key in %s. If it is an operator's: thru hosts %s; if it is a host's: thru serve --controller %s",
		c.Name, nats.URL, cmp.Or(nats.Nkey, nats.Creds), c.Name, c.Name), d)
}

func describeJoin(name string, j bus.Join) joined {
	return joined{Name: name, Control: j.Control, Data: j.Data, Cert: fmt.Sprintf("%x", j.CertSHA256), Privilege: j.Privilege}
}

// lets words what the holder of a join string may do.
func lets(j bus.Join) string {
	if p, ok := remote.Purposes[j.Privilege]; ok {
		return p.Lets
	}
	if j.Privilege == bus.PrivilegeMeasure {
		return j.Privilege
	}
	return bus.PrivilegeMeasure + also(j.Privilege)
}

// also words what privileges allow apart from measuring: ", capture and tune".
func also(privileges string) string {
	all := strings.Split(privileges, ",")
	for i := range all {
		all[i] = doing(all[i])
	}
	last := len(all) - 1
	return strings.Join(append([]string{""}, all[:last]...), ", ") + " and " + all[last]
}

// doing words a privilege as a verb.
func doing(privilege string) string {
	switch privilege {
	case bus.PrivilegeFiles:
		return "use files"
	case bus.PrivilegeInventory:
		return "list virtual machines"
	}
	return privilege
}

// try returns the command that a join string is for.
func try(j bus.Join, name string) string {
	first, _, _ := strings.Cut(j.Privilege, ",")
	switch first {
	case bus.PrivilegeTune:
		return "tune " + name
	case bus.PrivilegeFiles:
		return "transfer thru://" + name + "/FOLDER/FILE"
	case bus.PrivilegeInventory:
		return "inventory " + name
	case bus.PrivilegeCapture:
		return "test " + name + " --capture"
	case bus.PrivilegeAgent:
		return "serve --controller " + name
	case bus.PrivilegeUser:
		if j.Secret == "" {
			return "login " + name
		}
		return "hosts " + name
	case bus.PrivilegeOperate:
		return "hosts " + name
	}
	return "test " + name
}

func (c *joinCmd) list(e *env, keys *bus.Keyring) error {
	names, err := keys.List()
	if err != nil {
		return err
	}
	all := []joined{}
	var text []string
	for _, n := range names {
		j, err := keys.Load(n)
		if err != nil { // the others are still useful
			text = append(text, fmt.Sprintf("%-16s cannot be read: %v", n, err))
			continue
		}
		d := describeJoin(n, j)
		all = append(all, d)
		text = append(text, fmt.Sprintf("%-16s %s  %s  sha256:%.12s...", d.Name, strings.Join(d.Control, " "), lets(j), d.Cert))
	}
	for _, n := range remote.ListNATS() {
		k, err := remote.LoadNATS(n)
		if err != nil {
			text = append(text, fmt.Sprintf("%-16s cannot be read: %v", n, err))
			continue
		}
		all = append(all, joined{Name: n, Control: []string{k.URL}, Privilege: byKey})
		text = append(text, fmt.Sprintf("%-16s %s  key in %s", n, k.URL, cmp.Or(k.Nkey, k.Creds)))
	}
	if len(text) == 0 {
		text = []string{"no end point has been joined"}
	}
	return c.answer(e, strings.Join(text, "\n"), map[string]any{"joined": all})
}

func (c *joinCmd) answer(e *env, text string, doc any) error {
	if c.JSON {
		return json.NewEncoder(e.Out).Encode(doc)
	}
	_, err := fmt.Fprintln(e.Out, text)
	return err
}
