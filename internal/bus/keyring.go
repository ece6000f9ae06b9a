package bus

import (
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"thru/internal/fault"
)

// knownFile lists the certificates of end points without authentication, in
// the folder of the join strings: a line is "HOST:PORT sha256:HEX".
const knownFile = "known_hosts"

// Keyring stores join strings, one file of mode 0600 for each name, and the
// certificates that were trusted on first use.
type Keyring struct {
	Dir   string
	given map[string]Join // by the environment: they go before the files
}

// Variables with the join string of a user, or with its file: for programs that must not store it.
const (
	TokenVariable     = "THRU_TOKEN"
	TokenFileVariable = "THRU_TOKEN_FILE"
)

// DefaultKeyring is the keyring in the user's configuration folder
// (thru/join below os.UserConfigDir), and the join string of the environment under the name in it.
func DefaultKeyring() (*Keyring, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return nil, fault.Failf("set HOME or XDG_CONFIG_HOME", "bus: finding the folder of join strings: %w", err)
	}
	k := &Keyring{Dir: filepath.Join(dir, "thru", "join")}
	return k, k.environ()
}

// environ takes the join string of the environment.
func (k *Keyring) environ() error {
	text, from := os.Getenv(TokenVariable), TokenVariable
	if path := os.Getenv(TokenFileVariable); path != "" {
		b, err := readPrivate(path)
		if err != nil {
			return fmt.Errorf("bus: $%s: %w", TokenFileVariable, err)
		}
		text, from = string(b), TokenFileVariable
	}
	if text == "" {
		return nil
	}
	j, err := ParseJoin(text)
	if err != nil {
		return fmt.Errorf("bus: $%s: %w", from, err)
	}
	k.given = map[string]Join{j.Name: j}
	return nil
}

// validName reports whether a name can be a file of the keyring on any system.
func validName(name string) bool {
	form := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	reserved := strings.EqualFold(name, "local") || strings.EqualFold(name, knownFile)
	return form.MatchString(name) && !strings.HasSuffix(name, ".") && filepath.IsLocal(name) && !reserved
}

// Save stores a join string under a name. A name in use is an error unless replace
// is set.
func (k *Keyring) Save(name string, j Join, replace bool) error {
	if !validName(name) {
		return fault.Usagef("use letters, digits and . _ - , up to 64, beginning with a letter or digit; `local` and `known_hosts` are reserved",
			"bus: %q is not a valid name for an end point", name)
	}
	if err := makePrivateDir(k.Dir); err != nil {
		return err
	}
	err := WritePrivate(filepath.Join(k.Dir, name), []byte(j.String()+"\n"), replace)
	if errors.Is(err, fs.ErrExist) {
		return fault.Usagef("replace the join string with --replace, or choose another name", "bus: an end point named %s exists already", name)
	}
	return err
}

// Load returns the join string of a name. The error is fs.ErrNotExist for an
// unknown or invalid name.
func (k *Keyring) Load(name string) (Join, error) {
	if !validName(name) {
		return Join{}, fmt.Errorf("bus: loading the join string of %q: %w", name, fs.ErrNotExist)
	}
	if j, ok := k.given[name]; ok {
		return j, nil
	}
	path := filepath.Join(k.Dir, name)
	b, err := readPrivate(path)
	if err != nil {
		return Join{}, err
	}
	j, err := ParseJoin(string(b))
	if err != nil {
		return Join{}, fmt.Errorf("bus: reading %s: %w", path, err)
	}
	return j, nil
}

// List returns the names, sorted; none where the folder does not exist.
func (k *Keyring) List() ([]string, error) {
	entries, err := os.ReadDir(k.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("bus: listing the join strings: %w", err)
	}
	names := slices.Collect(maps.Keys(k.given))
	for _, e := range entries {
		if k.given[e.Name()].Control == nil && e.Type().IsRegular() && validName(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// Remove removes a name.
func (k *Keyring) Remove(name string) error {
	err := fs.ErrNotExist
	if validName(name) {
		err = os.Remove(filepath.Join(k.Dir, name))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Usagef("list the known end points: thru join --list", "bus: no end point is named %s: %w", name, fs.ErrNotExist)
	}
	if err != nil {
		return fmt.Errorf("bus: forgetting %s: %w", name, err)
	}
	return nil
}

// Find returns the join string that lists HOST:PORT as a control address. The error
// is that of an unreadable file that may have listed it.
func (k *Keyring) Find(addr string) (j Join, found bool, err error) {
	names, err := k.List()
	if err != nil {
		return Join{}, false, err
	}
	var damaged error
	for _, name := range names {
		j, err := k.Load(name)
		if err != nil {
			damaged = err
			continue
		}
		for _, a := range j.Control {
			if canonical(a) == canonical(addr) {
				return j, true, nil
			}
		}
	}
	return Join{}, false, damaged
}

// CheckPin trusts the certificate of an address on first use and reports that; a
// different one later is an error. It can serve as DialConfig.Pin.
func (k *Keyring) CheckPin(addr string, sum [32]byte) (firstUse bool, err error) {
	if err := checkHostPort(addr); err != nil {
		return false, fmt.Errorf("bus: checking the certificate of %q: %w", addr, err)
	}
	if err := makePrivateDir(k.Dir); err != nil {
		return false, err
	}
	path := filepath.Join(k.Dir, knownFile)
	b, err := readPrivate(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if n := badLine(string(b)); n > 0 {
		return false, fault.Failf("repair or remove the file; without it, thru trusts each end point at its next connection", "bus: line %d of %s is damaged", n, path)
	}
	line := fmt.Sprintf("%s sha256:%x", canonical(addr), sum)
	switch known, same := findPin(string(b), canonical(addr), line); {
	case same:
		return false, nil
	case known:
		return false, fault.Failf(fmt.Sprintf("find out why: an attack, a new installation, or `thru serve --rotate`; if the change is right, remove the line of %s from %s", canonical(addr), path),
			"bus: the certificate of %s has changed (now sha256:%x...): %w", addr, sum[:6], ErrCertificate)
	}
	return true, appendPrivate(path, line+"\n")
}

// badLine returns the number of the first invalid line of knownFile, or 0.
func badLine(text string) int {
	n := 0
	for l := range strings.Lines(text) {
		n++
		_, sum, ok := strings.Cut(strings.TrimSpace(l), " sha256:")
		if raw, err := hex.DecodeString(sum); !ok || err != nil || len(raw) != 32 {
			return n
		}
	}
	return 0
}

// findPin reports whether the text of knownFile has lines of an address, and
// whether one of them is the given line.
func findPin(text, addr, line string) (known, same bool) {
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		if name, _, _ := strings.Cut(l, " "); name != addr {
			continue
		}
		known = true
		if subtle.ConstantTimeCompare([]byte(l), []byte(line)) == 1 {
			same = true
		}
	}
	return known, same
}

// appendPrivate appends a line in one write, so that lines of two processes do not mix.
func appendPrivate(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("bus: storing a certificate: %w", err)
	}
	_, err = f.WriteString(line)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("bus: storing a certificate in %s: %w", path, err)
	}
	return nil
}

// canonical returns one spelling of an address.
func canonical(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); ip != nil {
		host = ip.String()
	}
	return net.JoinHostPort(strings.ToLower(strings.TrimSuffix(host, ".")), port)
}
