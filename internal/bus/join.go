package bus

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"thru/internal/fault"
)

// joinVersion is the version in the prefix of a join string: "thru1.".
const joinVersion = 1

// Privileges of a client. Each, and each set of those that an agent can allow
// (Together), has its own join string and secret.
const (
	PrivilegeMeasure = "measure" // and nothing else
	PrivilegeCapture = "capture" // also to capture the packets of its tests
	PrivilegeTune    = "tune"    // also to change settings of the host that are on its list
	PrivilegeFiles   = "files"   // also to measure the disks of the configured folders, and to move files there

	PrivilegeInventory = "inventory" // also to list the virtual machines of the host, and to read their counters

	PrivilegeAgent   = "agent"   // at a controller: to be a host of its fleet
	PrivilegeOperate = "operate" // at a controller: to run tests over its fleet
	PrivilegeUser    = "user"    // at a controller: what the role of one user permits; the secret is a token, or comes by a login
)

// Privileges returns those that an agent can be configured to allow besides measuring.
func Privileges() []string {
	return []string{PrivilegeCapture, PrivilegeTune, PrivilegeFiles, PrivilegeInventory}
}

// AskFor returns the hint for a client that lacks a privilege.
func AskFor(privilege string) string {
	how := map[string]string{PrivilegeCapture: "` (as root)", PrivilegeFiles: " --files DIR`"}[privilege]
	return "get the join string that `thru serve --allow " + privilege + cmp.Or(how, "`") + " prints there, and add it here: thru join NAME --replace"
}

// Together returns the name of a set of Privileges for one join string:
// "capture,tune", each once and in the order of Privileges.
func Together(privileges []string) string {
	return strings.Join(slices.DeleteFunc(Privileges(), func(p string) bool { return !slices.Contains(privileges, p) }), ",")
}

// splitPrivileges returns the privileges of such a name; none where it is not a set of Privileges.
func splitPrivileges(name string) []string {
	if all := strings.Split(name, ","); Together(all) == name {
		return all
	}
	return nil
}

// sets returns the names of all sets of Privileges.
func sets() (names []string) {
	all := Privileges()
	for bits := 1; bits < 1<<len(all); bits++ {
		var of []string
		for i, p := range all {
			if bits&(1<<i) != 0 {
				of = append(of, p)
			}
		}
		names = append(names, Together(of))
	}
	return names
}

// Bounds of a join string.
const (
	maxJoinBytes = 16 << 10 // of the whole string
	maxJoinAddrs = 64       // of each list
	joinSumBytes = 4        // of the checksum
)

// Join is the content of a join string: the addresses of the agent, its certificate
// to pin, and the secret.
type Join struct {
	Name       string
	Control    []string // HOST:PORT to try
	Data       []string // addresses for data; empty: as for control
	CertSHA256 [32]byte // of the agent's certificate (DER)
	Secret     Secret   // empty for an agent without authentication
	Privilege  string   // PrivilegeMeasure, one of Privileges, or a set of them (Together)
	OIDC       *OIDC    // PrivilegeUser, by a login: where; nil: by the token
}

// OIDC names a client at a provider of OpenID Connect.
type OIDC struct {
	Issuer string // URL
	Client string // id
}

// joinDoc is the JSON in a join string; its keys are short for a short paste.
type joinDoc struct {
	Name      string   `json:"n,omitempty"`
	Control   []string `json:"c"`
	Data      []string `json:"d,omitempty"`
	Cert      []byte   `json:"h"`
	Secret    string   `json:"s,omitempty"`
	Privilege string   `json:"p"`
	Issuer    string   `json:"i,omitempty"`
	Client    string   `json:"o,omitempty"`
}

// String returns the join string, secret included: "thru1." and base64url
// (RFC 4648, section 5) of a JSON document and the first four bytes of its
// SHA-256. Formatting a Join with fmt yields Redacted instead.
func (j Join) String() string {
	at := OIDC{}
	if j.OIDC != nil {
		at = *j.OIDC
	}
	b, err := json.Marshal(joinDoc{j.Name, j.Control, j.Data, j.CertSHA256[:], string(j.Secret), j.Privilege, at.Issuer, at.Client})
	if err != nil {
		return "" // strings and bytes always marshal
	}
	sum := sha256.Sum256(b)
	return fmt.Sprintf("thru%d.%s", joinVersion, base64.RawURLEncoding.EncodeToString(append(b, sum[:joinSumBytes]...)))
}

// Redacted describes the join string without its secret.
func (j Join) Redacted() string {
	name := cmp.Or(j.Name, "end point")
	return fmt.Sprintf("%s at %s, sha256:%x..., %s, secret %s", name, strings.Join(j.Control, " "), j.CertSHA256[:6], j.Privilege, redacted)
}

// Format implements fmt.Formatter, so that no format string prints the secret.
func (j Join) Format(f fmt.State, _ rune) { fmt.Fprint(f, j.Redacted()) }

// Pin accepts only the certificate that the join string names. It has the type of
// DialConfig.Pin.
func (j Join) Pin(addr string, sum [32]byte) error {
	if subtle.ConstantTimeCompare(j.CertSHA256[:], sum[:]) == 1 {
		return nil
	}
	return fault.Failf("get a new join string and run `thru join NAME --replace`: another machine answers there, or `thru serve --rotate` was run",
		"bus: the certificate of %s does not match the join string: %w", addr, ErrCertificate)
}

// joinAgain is the hint for a broken paste.
const joinAgain = "copy the whole line that `thru serve` printed, from thru1. to the end"

// ParseJoin parses a join string. It ignores white space in and around it, as
// terminals and mail wrap long lines. No error repeats the input.
func ParseJoin(s string) (Join, error) {
	if len(s) > 2*maxJoinBytes {
		return Join{}, fault.Usagef(joinAgain, "bus: the join string is too long (%d bytes)", len(s))
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
	payload, err := cutPrefix(s)
	if err != nil {
		return Join{}, err
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(payload)
	if err != nil || len(b) < joinSumBytes {
		return Join{}, fault.Usagef(joinAgain, "bus: the join string is mistyped or cut off")
	}
	text, got := b[:len(b)-joinSumBytes], b[len(b)-joinSumBytes:]
	if want := sha256.Sum256(text); !bytes.Equal(want[:joinSumBytes], got) {
		return Join{}, fault.Usagef(joinAgain, "bus: the join string is mistyped or cut off: its checksum does not match")
	}
	var doc joinDoc
	if err := json.Unmarshal(text, &doc); err != nil {
		return Join{}, fault.Usagef(joinAgain, "bus: the content of the join string is not valid")
	}
	return doc.join()
}

// cutPrefix returns what follows "thru1.".
func cutPrefix(s string) (string, error) {
	head, payload, found := strings.Cut(s, ".")
	version, ours := strings.CutPrefix(head, "thru")
	n, err := strconv.ParseUint(version, 10, 16)
	switch {
	case s == "":
		return "", fault.Usagef(joinAgain, "bus: the join string is empty")
	case !found || !ours || err != nil || n == 0:
		return "", fault.Usagef(joinAgain, "bus: this is not a join string: it does not begin with thru%d.", joinVersion)
	case n > joinVersion:
		return "", fault.Usagef("upgrade thru here", "bus: the join string was made by a newer thru (version %d, this one reads %d)", n, joinVersion)
	}
	return payload, nil
}

// join checks the document's content.
func (d joinDoc) join() (Join, error) {
	j := Join{Name: d.Name, Control: d.Control, Data: d.Data, Secret: Secret(d.Secret), Privilege: d.Privilege}
	if copy(j.CertSHA256[:], d.Cert) != len(d.Cert) || len(d.Cert) != len(j.CertSHA256) {
		return Join{}, fault.Usagef(joinAgain, "bus: the join string has no certificate")
	}
	if d.Issuer != "" {
		j.OIDC = &OIDC{d.Issuer, d.Client}
	}
	known := []string{PrivilegeMeasure, PrivilegeAgent, PrivilegeOperate, PrivilegeUser}
	if !slices.Contains(known, d.Privilege) && len(splitPrivileges(d.Privilege)) == 0 {
		return Join{}, fault.Usagef("upgrade thru here, or get a join string for measuring", "bus: this thru does not know the privilege of the join string")
	}
	if err := d.check(); err != nil {
		return Join{}, fault.Usagef(joinAgain, "bus: the join string: %w", err)
	}
	return j, nil
}

// check rejects text that would break a line of a terminal or a file.
func (d joinDoc) check() error {
	if len(d.Control) == 0 || len(d.Control) > maxJoinAddrs || len(d.Data) > maxJoinAddrs {
		return fmt.Errorf("it lists %d control and %d data addresses", len(d.Control), len(d.Data))
	}
	for _, a := range d.Control {
		if err := checkHostPort(a); err != nil {
			return err
		}
	}
	for _, s := range append([]string{d.Name, d.Secret, d.Issuer, d.Client}, d.Data...) {
		if len(s) > 256 || !plain(s) {
			return errors.New("a part of it is not valid")
		}
	}
	return nil
}

// checkHostPort accepts HOST:PORT with a number as the port.
func checkHostPort(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	n, numErr := strconv.ParseUint(port, 10, 16)
	if err != nil || numErr != nil || n == 0 || host == "" || len(host) > 256 || !plain(host) {
		return errors.New("an address in it is not HOST:PORT")
	}
	return nil
}

// plain reports whether a string is printable ASCII without spaces.
func plain(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}
