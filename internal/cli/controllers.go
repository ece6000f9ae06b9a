package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"thru/internal/bus"
	"thru/internal/fault"
)

// natsFlags reach a controller over a NATS cluster in place of a join string.
type natsFlags struct {
	NATS  string `group:"NATS cluster" name:"nats" placeholder:"URL" help:"NATS cluster that the controller is on, such as tls://nats.example.com:4222."`
	Nkey  string `group:"NATS cluster" name:"nkey" type:"path" placeholder:"FILE" help:"File of the nkey seed (thru control --nats-key makes one)."`
	Creds string `group:"NATS cluster" name:"creds" type:"path" placeholder:"FILE" help:"Credentials file, as nsc writes it."`
	CA    string `group:"NATS cluster" name:"tls-ca" type:"path" placeholder:"FILE" help:"Certificates to trust (default: the system's)."`
}

// config turns the flags into bus's terms; nil where no cluster is named.
func (f natsFlags) config() (*bus.NATSConfig, error) {
	switch key := f.Nkey != "" || f.Creds != ""; {
	case f.NATS == "" && (key || f.CA != ""):
		return nil, fault.Usagef("say which: --nats tls://HOST:4222", "--nkey, --creds and --tls-ca are for a NATS cluster, and none is named")
	case f.NATS == "":
		return nil, nil
	case !key || f.Nkey != "" && f.Creds != "":
		return nil, fault.Usagef("give one of --nkey FILE and --creds FILE", "--nats wants to know who we are")
	}
	return &bus.NATSConfig{URL: f.NATS, CA: f.CA, Nkey: f.Nkey, Creds: f.Creds}, nil
}

// route is how to reach a controller: by one of the two.
type route struct {
	join *bus.Join
	nats *bus.NATSConfig
}

// purposes says of a privilege what it lets do, and whom its string is for.
var purposes = map[string]struct{ lets, whom string }{
	bus.PrivilegeAgent:   {"serve under it", "agents"},
	bus.PrivilegeOperate: {"run tests over its fleet", "operators"},
}

// wayTo is the way to a controller that is kept under a name, if it lets do
// what the privilege says.
func wayTo(name, privilege string) (route, error) {
	want := purposes[privilege]
	ask := fmt.Sprintf("ask for the string that `thru control` prints for %s, and keep it: thru join %s", want.whom, name)
	again := ask + " --replace"
	keys, err := bus.DefaultKeyring()
	if err != nil {
		return route{}, err
	}
	j, err := keys.Load(name)
	if errors.Is(err, os.ErrNotExist) {
		nats, nerr := loadNATS(name)
		if !errors.Is(nerr, os.ErrNotExist) {
			return route{nats: nats}, nerr
		}
		return route{}, fault.Usagef(cmp.Or(suggest("did you mean ", name, controllers(keys, privilege)), ask), "no controller named %q is kept", name)
	}
	if err != nil {
		return route{}, err
	}
	return route{join: &j}, forController(name, j, privilege, again)
}

// forController refuses a join string that is for something else; ask is how to
// get the right one.
func forController(name string, j bus.Join, privilege, ask string) error {
	got, known := purposes[j.Privilege]
	switch {
	case j.Privilege == privilege:
		return nil
	case known:
		return fault.Usagef(ask, "the join string of %s lets %s, not %s", name, got.lets, purposes[privilege].lets)
	case privilege == bus.PrivilegeOperate:
		return fault.Usagef("as an end point it is "+name+" alone; `thru control` is what has hosts", "%s is an end point, no controller", name)
	}
	return fault.Usagef(ask, "%s is an end point, no controller", name)
}

// wayGiven is the way to a controller as --controller names it: a kept name,
// the join string itself, or - for stdin. What it is called is returned, which
// never is the string.
func (e *env) wayGiven(text string) (string, route, error) {
	const ask = "ask for the string that `thru control` prints for agents"
	var err error
	switch {
	case text == "-":
		b, rerr := io.ReadAll(io.LimitReader(e.In, maxJoin))
		if rerr != nil {
			return "", route{}, fmt.Errorf("cli: reading the join string: %w", rerr)
		}
		text = string(b)
	case !strings.HasPrefix(text, "thru") || len(text) <= mostName: // a string is longer than any name
		w, err := wayTo(text, bus.PrivilegeAgent)
		return text, w, err
	}
	j, err := bus.ParseJoin(text)
	if err != nil {
		return "", route{}, err
	}
	name := cmp.Or(j.Name, j.Control[0])
	return name, route{join: &j}, forController(name, j, bus.PrivilegeAgent, ask)
}

// mostName is the longest name that anything is kept under.
const mostName = 64

// controllers are the names of those that let do what the privilege says.
func controllers(keys *bus.Keyring, privilege string) []string {
	names, err := keys.List()
	if err != nil {
		return nil
	}
	names = slices.DeleteFunc(names, func(n string) bool {
		j, err := keys.Load(n)
		return err != nil || j.Privilege != privilege
	})
	return append(names, listNATS()...)
}

// keptNATS is a way to a controller over a NATS cluster, as `thru join` keeps
// it: the names of files, no secret.
type keptNATS struct {
	URL   string `json:"url"`
	CA    string `json:"tls_ca,omitempty"`
	Nkey  string `json:"nkey,omitempty"`
	Creds string `json:"creds,omitempty"`
}

// natsFile is where a name is kept, beside the folder of the join strings.
func natsFile(name string) (string, error) {
	if !bus.ValidHostName(name) {
		return "", fmt.Errorf("cli: %q: %w", name, os.ErrNotExist)
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fault.Failf("set HOME or XDG_CONFIG_HOME", "cli: finding the folder of controllers: %w", err)
	}
	return filepath.Join(dir, "thru", "nats", name+".json"), nil
}

// loadNATS reads what is kept; the error is os.ErrNotExist where nothing is.
func loadNATS(name string) (*bus.NATSConfig, error) {
	file, err := natsFile(name)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var k keptNATS
	if err := json.Unmarshal(b, &k); err != nil || k.URL == "" {
		return nil, fault.Failf("thru join "+name+" --replace --nats URL ...", "cli: %s is damaged: %w", file, cmp.Or(err, errors.New("it has no url")))
	}
	return &bus.NATSConfig{URL: k.URL, CA: k.CA, Nkey: k.Nkey, Creds: k.Creds}, nil
}

// saveNATS keeps a way under a name.
func saveNATS(name string, c *bus.NATSConfig, replace bool) error {
	file, err := natsFile(name)
	if err != nil {
		return fault.Usagef("use letters, digits and . _ - , up to 64", "%q cannot name a controller", name)
	}
	keys, err := bus.DefaultKeyring()
	if err != nil {
		return err
	}
	_, here := os.Stat(file)
	if _, err := keys.Load(name); err == nil {
		return fault.Usagef("remove it first, thru join "+name+" --remove, or choose another name", "a join string is kept as %s already", name)
	}
	if here == nil && !replace {
		return fault.Usagef("replace it with --replace, or choose another name", "the name %s is kept already", name)
	}
	b, err := json.MarshalIndent(keptNATS{URL: c.URL, CA: c.CA, Nkey: c.Nkey, Creds: c.Creds}, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = writeWhole(file, append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("cli: keeping %s: %w", name, err)
	}
	return nil
}

// listNATS are the names that are kept, sorted.
func listNATS() (names []string) {
	file, err := natsFile("x")
	if err != nil {
		return nil
	}
	entries, _ := os.ReadDir(filepath.Dir(file)) // none: nothing is kept
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			names = append(names, name)
		}
	}
	return names
}
