package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/remote"
)

// natsFlags reach a controller over a NATS cluster instead of by a join string.
type natsFlags struct {
	NATS  string `group:"NATS cluster" name:"nats" placeholder:"URL" help:"NATS cluster that the controller is on, such as tls://nats.example.com:4222."`
	Nkey  string `group:"NATS cluster" name:"nkey" type:"path" placeholder:"FILE" help:"File of the nkey seed (thru control --nats-key makes one)."`
	Creds string `group:"NATS cluster" name:"creds" type:"path" placeholder:"FILE" help:"Credentials file, as nsc writes it."`
	CA    string `group:"NATS cluster" name:"tls-ca" type:"path" placeholder:"FILE" help:"Certificates to trust (default: the system's)."`
}

// config converts the flags to a bus.NATSConfig; nil if they name no cluster.
func (f natsFlags) config() (*bus.NATSConfig, error) {
	switch key := f.Nkey != "" || f.Creds != ""; {
	case f.NATS == "" && (key || f.CA != ""):
		return nil, fault.Usagef("name it: --nats tls://HOST:4222", "--nkey, --creds and --tls-ca are for a NATS cluster, and none is named")
	case f.NATS == "":
		return nil, nil
	case !key || f.Nkey != "" && f.Creds != "":
		return nil, fault.Usagef("give --nkey FILE or --creds FILE", "--nats needs a key or credentials")
	}
	return &bus.NATSConfig{URL: f.NATS, CA: f.CA, Nkey: f.Nkey, Creds: f.Creds}, nil
}

// controllerGiven returns the route to the controller that --controller names: a stored name, the join string
// itself, or - for a string on stdin. It also returns a name, which is never the string.
func (e *env) controllerGiven(text string) (string, remote.Route, error) {
	const ask = "ask for the string that `thru control` prints for agents"
	var err error
	switch {
	case text == "-":
		b, rerr := io.ReadAll(io.LimitReader(e.In, maxJoin))
		if rerr != nil {
			return "", remote.Route{}, fmt.Errorf("cli: reading the join string: %w", rerr)
		}
		text = string(b)
	case !strings.HasPrefix(text, "thru") || len(text) <= remote.MostName: // a string is longer than any name
		w, err := remote.ControllerString(text, bus.PrivilegeAgent)
		return text, w, err
	}
	j, err := bus.ParseJoin(text)
	if err != nil {
		return "", remote.Route{}, err
	}
	name := cmp.Or(j.Name, j.Control[0])
	return name, remote.Route{Join: &j}, remote.ForController(name, j, bus.PrivilegeAgent, ask)
}
