// Package support removes names, addresses and secrets from what is handed over in a bug report, and packs it into one
// file. The same name or address has the same substitute in all parts, and a substitute of an address is an address, so
// that thru still reads the documents.
package support

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"thru/internal/fault"
	"thru/internal/unit"
)

// Removed counts what was replaced.
type Removed struct {
	Names     int `json:"names"`
	Addresses int `json:"addresses"`
	Secrets   int `json:"secrets"`
}

// Redactor replaces names, addresses and secrets.
type Redactor struct {
	KeepAddresses bool
	names         map[string]string // in lower case
	addresses     map[string]string
	pattern       *regexp.Regexp // of the names; nil: not made yet
}

// Keys of a document with names of machines, people and places, and keys of lists whose entries have a name.
const (
	namedKeys  = "hostname host_name guest guest_name uuid instance_uuid serial folder network datacenter cluster datastore resource_pool port_group switch url server_fingerprint"
	namedLists = "end_points guests hosts switches port_groups datastores plan"
	// sameKeys are keys of thru's own words.
	sameKeys = "schema thru_version command protocol engine io kind cause gate knob unit os arch kernel driver code"
)

// plainWords are no names of anybody.
const plainWords = "local localhost none root http https"

// leastName is how many letters a name has at least to be replaced within a text, where shorter ones are words.
const leastName = 3

// Name adds names to replace, with the hosts in them: of ssh://root@web7:22, FLEET/web7 and web7.example.com.
func (r *Redactor) Name(names ...string) {
	if r.names == nil {
		r.names = map[string]string{}
	}
	for _, name := range names {
		key := strings.ToLower(strings.TrimSpace(name))
		_, known := r.names[key]
		_, err := netip.ParseAddr(strings.Trim(key, "[]"))
		if known || err == nil || strings.Trim(key, "0123456789") == "" || has(plainWords, key) {
			continue
		}
		r.names[key], r.pattern = fmt.Sprintf("name-%d", len(r.names)+1), nil
		r.Name(hosts(key)...)
	}
}

// hosts returns the parts of an end point's name that are names too.
func hosts(name string) []string {
	if _, rest, url := strings.Cut(name, "://"); url {
		name = rest
	}
	parts := strings.FieldsFunc(name, func(c rune) bool { return c == '/' || c == '@' })
	for i, part := range parts {
		if host, _, err := net.SplitHostPort(part); err == nil {
			parts[i] = host
		}
		if short, _, domain := strings.Cut(parts[i], "."); domain {
			parts = append(parts, short)
		}
	}
	return parts
}

// Learn adds the names of a JSON value: the value of a document, before any part is redacted.
func (r *Redactor) Learn(value any) { r.learn(value, "", "") }

// learn reads a value below a key, which is below the key above.
func (r *Redactor) learn(value any, key, above string) {
	switch v := value.(type) {
	case map[string]any:
		for k, x := range v {
			r.learn(x, k, key)
		}
	case []any:
		for _, x := range v {
			r.learn(x, key, above)
		}
	case string:
		if has(namedKeys, key) || above == "labels" || key == "name" && has(namedLists, above) {
			r.Name(v)
		}
	}
}

func has(words, word string) bool { return slices.Contains(strings.Fields(words), word) }

// JSON returns a JSON value with its texts redacted.
func (r *Redactor) JSON(value any, n *Removed) any { return r.json(value, "", n) }

func (r *Redactor) json(value any, key string, n *Removed) any {
	switch v := value.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = r.json(x, k, n)
		}
	case []any:
		for i, x := range v {
			v[i] = r.json(x, key, n)
		}
	case string:
		if other, named := r.names[strings.ToLower(v)]; named && !has(sameKeys, key) {
			n.Names++
			return other
		}
		if !has(sameKeys, key) {
			return r.Text(v, n)
		}
	}
	return value
}

// Forms of what is replaced in texts.
var (
	mac  = unit.Pattern(`\b[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}[:-]){4}[0-9a-fA-F]{2}\b`)
	four = unit.Pattern(`\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b`)
	six  = unit.Pattern(`[0-9a-fA-F]*:[0-9a-fA-F:]*:[0-9a-fA-F:.]*`)
	home = unit.Pattern(`(/home/|/Users/|\\Users\\)[^/\\\s":]+`)
	user = unit.Pattern(`[A-Za-z0-9._%+-]+@`)
)

// Text returns a text without names, addresses and secrets.
func (r *Redactor) Text(text string, n *Removed) string {
	clean := fault.Unsecret(text)
	if clean != text {
		n.Secrets++
	}
	clean = home().ReplaceAllStringFunc(clean, func(s string) string { n.Names++; return s[:strings.LastIndexAny(s, `/\`)+1] + "user" })
	if len(r.names) > 0 {
		clean = r.forms().ReplaceAllStringFunc(clean, func(s string) string {
			n.Names++
			return r.names[strings.ToLower(s)]
		})
	}
	clean = user().ReplaceAllStringFunc(clean, func(string) string { n.Names++; return "user@" })
	if r.KeepAddresses {
		return clean
	}
	clean = mac().ReplaceAllStringFunc(clean, func(s string) string { return r.address(s, true, n) })
	for _, form := range []*regexp.Regexp{four(), six()} {
		clean = form.ReplaceAllStringFunc(clean, func(s string) string { return r.address(s, false, n) })
	}
	return clean
}

// forms returns the pattern of all names, the longest first.
func (r *Redactor) forms() *regexp.Regexp {
	if r.pattern != nil {
		return r.pattern
	}
	var all []string
	for name := range r.names {
		if len(name) >= leastName {
			all = append(all, name)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	for i, name := range all {
		all[i] = regexp.QuoteMeta(name)
		if letter(name[0]) {
			all[i] = `\b` + all[i]
		}
		if letter(name[len(name)-1]) {
			all[i] += `\b`
		}
	}
	r.pattern = regexp.MustCompile(`(?i)(?:` + strings.Join(all, "|") + `)`)
	return r.pattern
}

func letter(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// address returns the substitute of an address: one for tests (RFC 2544) or for documents (RFC 3849), or a local MAC.
func (r *Redactor) address(s string, isMAC bool, n *Removed) string {
	key, i := strings.ToLower(s), len(r.addresses)+1
	other := fmt.Sprintf("02:00:00:%02x:%02x:%02x", i>>16&255, i>>8&255, i&255)
	if !isMAC {
		a, err := netip.ParseAddr(s)
		if err != nil || a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() {
			return s
		}
		key = a.String()
		if other = fmt.Sprintf("2001:db8::%x", i); a.Is4() {
			other = fmt.Sprintf("198.18.%d.%d", i>>8&255, i&255)
		}
	}
	n.Addresses++
	if before, known := r.addresses[key]; known {
		return before
	}
	if r.addresses == nil {
		r.addresses = map[string]string{}
	}
	r.addresses[key] = other
	return other
}
