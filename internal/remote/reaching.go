package remote

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"thru/internal/bus"
	"thru/internal/fault"
)

// Route is how to reach a controller: one of the two is set.
type Route struct {
	Join *bus.Join
	NATS *bus.NATSConfig
}

// Purposes describes for a privilege what it allows, and who gets its join string.
var Purposes = map[string]struct{ Lets, whom string }{
	bus.PrivilegeAgent:   {"join its fleet", "agents"},
	bus.PrivilegeOperate: {"run tests over its fleet", "operators"},
	bus.PrivilegeUser:    {"use its fleet as one user", "users"},
}

// ControllerString returns the route to a joined controller, if its string has the
// privilege.
func ControllerString(name, privilege string) (Route, error) {
	want := Purposes[privilege]
	ask := fmt.Sprintf("get the join string that `thru control` prints for %s, and add it: thru join %s", want.whom, name)
	again := ask + " --replace"
	keys, err := bus.DefaultKeyring()
	if err != nil {
		return Route{}, err
	}
	j, err := keys.Load(name)
	if errors.Is(err, os.ErrNotExist) {
		nats, nerr := LoadNATS(name)
		if !errors.Is(nerr, os.ErrNotExist) {
			return Route{NATS: nats}, nerr
		}
		return Route{}, fault.Usagef(cmp.Or(fault.Suggest("did you mean ", name, Controllers(keys, privilege)), ask), "no controller is named %q", name)
	}
	if err != nil {
		return Route{}, err
	}
	return Route{Join: &j}, ForController(name, j, privilege, again)
}

// Fits reports whether a join string is for a privilege: a user is an operator whose role limits it.
func Fits(j bus.Join, privilege string) bool {
	return j.Privilege == privilege || privilege == bus.PrivilegeOperate && j.Privilege == bus.PrivilegeUser
}

// ForController returns an error for a join string with another privilege; ask is how
// to get the right one.
func ForController(name string, j bus.Join, privilege, ask string) error {
	got, known := Purposes[j.Privilege]
	switch {
	case Fits(j, privilege):
		return nil
	case known:
		return fault.Usagef(ask, "the join string of %s allows to %s, not to %s", name, got.Lets, Purposes[privilege].Lets)
	case privilege == bus.PrivilegeOperate:
		return fault.Usagef("use "+name+" as an end point, or name a controller (`thru control`)", "%s is an end point, not a controller", name)
	}
	return fault.Usagef(ask, "%s is an end point, not a controller", name)
}

// MostName is the longest name of a stored join string or NATS configuration.
const MostName = 64

// Controllers returns the names of the controllers whose strings have the privilege.
func Controllers(keys *bus.Keyring, privilege string) []string {
	names, err := keys.List()
	if err != nil {
		return nil
	}
	names = slices.DeleteFunc(names, func(n string) bool {
		j, err := keys.Load(n)
		return err != nil || !Fits(j, privilege)
	})
	return append(names, ListNATS()...)
}

// keptNATS is a route to a controller over a NATS cluster, as `thru join` stores it:
// the names of files, no secret.
type keptNATS struct {
	URL   string `json:"url"`
	CA    string `json:"tls_ca,omitempty"`
	Nkey  string `json:"nkey,omitempty"`
	Creds string `json:"creds,omitempty"`
}

// NATSFile returns the file of a name, next to the folder of the join strings.
func NATSFile(name string) (string, error) {
	if !bus.ValidHostName(name) {
		return "", fmt.Errorf("remote: %q: %w", name, os.ErrNotExist)
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fault.Failf("set HOME or XDG_CONFIG_HOME", "remote: finding the folder of controllers: %w", err)
	}
	return filepath.Join(dir, "thru", "nats", name+".json"), nil
}

// LoadNATS reads a stored route; the error is os.ErrNotExist where there is none.
func LoadNATS(name string) (*bus.NATSConfig, error) {
	file, err := NATSFile(name)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var k keptNATS
	if err := json.Unmarshal(b, &k); err != nil || k.URL == "" {
		return nil, fault.Failf("thru join "+name+" --replace --nats URL ...", "remote: %s is damaged: %w", file, cmp.Or(err, errors.New("it has no url")))
	}
	return &bus.NATSConfig{URL: k.URL, CA: k.CA, Nkey: k.Nkey, Creds: k.Creds}, nil
}

// SaveNATS stores a route under a name.
func SaveNATS(name string, c *bus.NATSConfig, replace bool) error {
	file, err := NATSFile(name)
	if err != nil {
		return fault.Usagef("use letters, digits and . _ - , up to 64", "%q is not a valid name for a controller", name)
	}
	keys, err := bus.DefaultKeyring()
	if err != nil {
		return err
	}
	_, here := os.Stat(file)
	if _, err := keys.Load(name); err == nil {
		return fault.Usagef("remove it first, thru join "+name+" --remove, or choose another name", "a join string is already stored as %s", name)
	}
	if here == nil && !replace {
		return fault.Usagef("replace the join string with --replace, or choose another name", "the name %s exists already", name)
	}
	b, err := json.MarshalIndent(keptNATS{URL: c.URL, CA: c.CA, Nkey: c.Nkey, Creds: c.Creds}, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = bus.WritePrivate(file, append(b, '\n'), true)
	}
	if err != nil {
		return fmt.Errorf("remote: storing %s: %w", name, err)
	}
	return nil
}

// ListNATS returns the names of the stored routes, sorted.
func ListNATS() (names []string) {
	file, err := NATSFile("x")
	if err != nil {
		return nil
	}
	entries, _ := os.ReadDir(filepath.Dir(file)) // no folder: nothing is stored
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			names = append(names, name)
		}
	}
	return names
}
