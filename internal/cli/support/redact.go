// Package support removes names, addresses and secrets from what is handed over in a bug report, and packs it into one
// file. The same name or address has the same substitute in all parts, and a substitute of an address is an address, so
// that thru still reads the documents.
package support

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"thru/internal/fault"
	"thru/internal/unit"
)

// Part is a file of the archive: a JSON value, or a text.
type Part struct {
	Name    string  `json:"name"`
	Value   any     `json:"-"`
	Text    []byte  `json:"-"` // after Redact
	Bytes   int     `json:"size_bytes"`
	Removed Removed `json:"removed"`
}

// Removed counts what was replaced.
type Removed struct {
	Names     int `json:"names"`
	Addresses int `json:"addresses"`
	Secrets   int `json:"secrets"`
}

// Redactor replaces names, addresses and secrets.
type Redactor struct {
	keepAddresses    bool
	names, addresses map[string]string // with their substitutes, in lower case
	pattern          *regexp.Regexp    // of the names; nil: not made yet
}

// New returns a Redactor.
func New(keepAddresses bool) *Redactor {
	return &Redactor{keepAddresses: keepAddresses, names: map[string]string{}, addresses: map[string]string{}}
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

// Redact redacts all parts. It learns the names of all first, since any may have those of another.
func (r *Redactor) Redact(parts []Part) error {
	for i := range parts {
		text, err := json.Marshal(parts[i].Value)
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber() // some have more digits than a float64
		var plain any // maps and lists, not what Value points to
		if err = cmp.Or(err, d.Decode(&plain)); err != nil {
			return fmt.Errorf("support: reading %s: %w", parts[i].Name, err)
		}
		parts[i].Value = plain
		walk(plain, "", "", func(s, key, above string) string {
			if has(namedKeys, key) || above == "labels" || key == "name" && has(namedLists, above) {
				r.Name(s)
			}
			return s
		})
	}
	for i := range parts {
		p := &parts[i]
		value := walk(p.Value, "", "", func(s, key, _ string) string {
			if has(sameKeys, key) {
				return s
			}
			return r.Text(s, &p.Removed)
		})
		if path.Ext(p.Name) != ".json" {
			p.Text = []byte(fmt.Sprint(value))
		} else if text, err := json.MarshalIndent(value, "", "  "); err != nil {
			return fmt.Errorf("support: writing %s: %w", p.Name, err)
		} else {
			p.Text = text
		}
		p.Bytes = len(p.Text)
	}
	return nil
}

// walk replaces all texts of a JSON value by what do returns for them, with their key and the key above it.
func walk(value any, key, above string, do func(s, key, above string) string) any {
	switch v := value.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = walk(x, k, key, do)
		}
	case []any:
		for i, x := range v {
			v[i] = walk(x, key, above, do)
		}
	case string:
		return do(v, key, above)
	}
	return value
}

func has(words, word string) bool { return slices.Contains(strings.Fields(words), word) }

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
	if other, named := r.names[strings.ToLower(text)]; named {
		n.Names++
		return other
	}
	clean := fault.Unsecret(text)
	if clean != text {
		n.Secrets++
	}
	clean = home().ReplaceAllStringFunc(clean, func(s string) string { n.Names++; return s[:strings.LastIndexAny(s, `/\`)+1] + "user" })
	if forms := r.forms(); forms != nil {
		clean = forms.ReplaceAllStringFunc(clean, func(s string) string {
			n.Names++
			return r.names[strings.ToLower(s)]
		})
	}
	clean = user().ReplaceAllStringFunc(clean, func(string) string { n.Names++; return "user@" })
	if r.keepAddresses {
		return clean
	}
	clean = mac().ReplaceAllStringFunc(clean, func(s string) string { return r.address(s, true, n) })
	for _, form := range []*regexp.Regexp{four(), six()} {
		clean = form.ReplaceAllStringFunc(clean, func(s string) string { return r.address(s, false, n) })
	}
	return clean
}

// forms returns the pattern of all names, the longest first; nil if no name is long enough.
func (r *Redactor) forms() *regexp.Regexp {
	if r.pattern == nil {
		names := slices.DeleteFunc(slices.Collect(maps.Keys(r.names)), func(name string) bool { return len(name) < leastName })
		if len(names) == 0 {
			return nil // an empty pattern would match between all words
		}
		slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
		for i, name := range names {
			names[i] = regexp.QuoteMeta(name)
		}
		r.pattern = regexp.MustCompile(`(?i)\b(?:` + strings.Join(names, "|") + `)\b`)
	}
	return r.pattern
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
	r.addresses[key] = other
	return other
}

// Archive returns the parts as a .tar.gz file, below one folder.
func Archive(folder string, parts []Part, now time.Time) ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	var all []error
	for _, p := range parts {
		err := w.WriteHeader(&tar.Header{Name: folder + "/" + p.Name, Mode: 0o644, Size: int64(len(p.Text)), ModTime: now, Format: tar.FormatPAX})
		_, werr := w.Write(p.Text)
		all = append(all, err, werr)
	}
	if err := errors.Join(append(all, w.Close(), zip.Close())...); err != nil {
		return nil, fmt.Errorf("support: packing the parts: %w", err)
	}
	return out.Bytes(), nil
}
