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
	keepAddresses         bool
	names, addresses, ids map[string]string // with their substitutes, in lower case
	pattern               *regexp.Regexp    // of the names; nil: not made yet
}

// New returns a Redactor.
func New(keepAddresses bool) *Redactor {
	return &Redactor{keepAddresses: keepAddresses, names: map[string]string{}, addresses: map[string]string{}, ids: map[string]string{}}
}

// Keys of a document with names of machines, people and places, and keys of lists whose entries have a name.
const (
	namedKeys  = "hostname host_name guest guest_name uuid instance_uuid serial folder network datacenter cluster datastore resource_pool port_group switch url server_fingerprint caller controller"
	namedLists = "end_points guests host hosts switches port_groups datastores plan"
	// sameKeys are keys of thru's own words.
	sameKeys = "schema thru_version command protocol engine io kind cause gate knob unit os arch kernel driver code"
)

// plainWords are no names of anybody: thru's own words, words of its hints, and users that systems have.
const plainWords = "local localhost none root admin administrator ubuntu debian nobody user host name file path url share controller fleet thru http https"

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
		walk(plain, "", "", r.learn)
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

// learn adds the names in a text of a document, or of the journal.
func (r *Redactor) learn(text, key, above string) string {
	if has(namedKeys, key) || above == "labels" || key == "name" && has(namedLists, above) {
		r.Name(text)
	}
	for _, found := range naming().FindAllStringSubmatch(text, -1) {
		r.Name(found[1:]...) // most are empty
	}
	for _, line := range hostLine().FindAllStringSubmatch(text, -1) {
		for _, field := range strings.Split(line[1], "  ") {
			if _, value, label := strings.Cut(field, "="); label {
				r.Name(value)
			}
		}
	}
	for _, line := range jsonLine().FindAllStringSubmatch(text, -1) {
		var event any
		if json.Unmarshal([]byte(line[1]), &event) == nil { // else it is a line of something else
			walk(event, "", "", r.learn)
		}
	}
	return text
}

// walk replaces all texts of a JSON value by what do returns for them, with their key and the key above it. Keys of labels
// are the user's texts too.
func walk(value any, key, above string, do func(s, key, above string) string) any {
	switch v := value.(type) {
	case map[string]any:
		for k, x := range maps.Clone(v) {
			delete(v, k)
			x = walk(x, k, key, do)
			if key == "labels" {
				k = do(k, "", "")
			}
			v[k] = x
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

// naming finds places of texts whose group is a name: home folders, hosts of URLs, of users and of failed lookups, and what
// a host and a controller log of each other.
var naming = unit.Pattern(`(?m)(?:/home/|/Users/|\\Users\\)([^/\\\s":]+)` +
	`|\b[A-Za-z][A-Za-z0-9+.]*://(?:[^\s/@"']*@)?([^\s/:"'@\[\]?#,;)]+)` +
	`|[A-Za-z0-9._%+-]@([A-Za-z0-9][A-Za-z0-9.-]*)` +
	`|\blookup ([^\s:]+)` +
	`|\bserves under (\S+) .*as ([^\s;]+); ready` +
	`| thru\S*: [+!-] (?:a host that calls itself )?([^\s:]+)`)

// Lines of the journal: a host that joins a controller, with its labels; an event of --log json.
var (
	hostLine = unit.Pattern(`(?m) thru\S*: \+ (.*)`)
	jsonLine = unit.Pattern(`(?m) thru\S*: (\{.*\})$`)
)

// Forms of what is replaced in texts.
var (
	mac  = unit.Pattern(`\b[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}[:-]){4}[0-9a-fA-F]{2}\b|\b[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}\b`)
	four = unit.Pattern(`[0-9]+(?:\.[0-9]+){3}`)
	six  = unit.Pattern(`[0-9a-fA-F]*:[0-9a-fA-F:]*:[0-9a-fA-F:.]*`)
	home = unit.Pattern(`(/home/|/Users/|\\Users\\)[^/\\\s":]+`)
	user = unit.Pattern(`[A-Za-z0-9._%+-]+@`)
	id   = unit.Pattern(`\b(?:[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[A-Z][A-Z2-7]{55})\b|\bSHA256:[A-Za-z0-9+/]{43}` +
		`|(?i)\b(?:[a-z0-9-]+\.)+(?:com|net|org|edu|gov|corp|lan|local|internal|intranet|localdomain|arpa)\b`)
	secret = unit.Pattern(`(?i)((?:password|passwd|passphrase|token|secret|api[_-]?key|authorization)["']?\s*[=:]\s*["']?(?:(?:bearer|basic) )?)[^\s"',;&]+` +
		`|(?s:-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z))|\beyJ[\w-]+\.[\w-]+\.[\w-]+`)
)

// Text returns a text without names, addresses and secrets.
func (r *Redactor) Text(text string, n *Removed) string {
	if other, named := r.names[strings.ToLower(text)]; named {
		n.Names++
		return other
	}
	clean := secret().ReplaceAllString(fault.Unsecret(text), "$1***")
	if clean != text {
		n.Secrets++
	}
	clean = home().ReplaceAllStringFunc(clean, func(s string) string { n.Names++; return s[:strings.LastIndexAny(s, `/\`)+1] + "user" })
	if forms := r.forms(); forms != nil {
		clean = forms.ReplaceAllStringFunc(strings.ReplaceAll(clean, "_", gap), func(s string) string {
			n.Names++
			return r.names[strings.ToLower(strings.ReplaceAll(s, gap, "_"))]
		})
		clean = strings.ReplaceAll(clean, gap, "_")
	}
	clean = user().ReplaceAllStringFunc(clean, func(string) string { n.Names++; return "user@" })
	clean = id().ReplaceAllStringFunc(clean, func(s string) string {
		n.Names++
		if r.ids[s] == "" {
			r.ids[s] = fmt.Sprintf("id-%d", len(r.ids)+1)
		}
		return r.ids[s]
	})
	if r.keepAddresses {
		return clean
	}
	clean = mac().ReplaceAllStringFunc(clean, func(s string) string { return r.address(s, true, n) })
	clean = four().ReplaceAllStringFunc(clean, func(s string) string { return r.address(s, false, n) })
	return six().ReplaceAllStringFunc(clean, func(s string) string { return r.within(s, n) })
}

// within replaces the addresses in a text of digits and colons: "from:fd00::7." has one.
func (r *Redactor) within(s string, n *Removed) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		end := i
		for j := min(len(s), i+longest); end == i && j > i+1 && (i == 0 || s[i-1] == ':'); j-- {
			if _, err := netip.ParseAddr(s[i:j]); err == nil {
				b.WriteString(r.address(s[i:j], false, n))
				end = j
			}
		}
		if end == i {
			b.WriteByte(s[i])
		} else {
			i = end - 1
		}
	}
	return b.String()
}

// longest is the length of the longest address.
const longest = len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255")

// forms returns the pattern of all names, the longest first; nil if no name is long enough.
func (r *Redactor) forms() *regexp.Regexp {
	if r.pattern == nil {
		names := slices.DeleteFunc(slices.Collect(maps.Keys(r.names)), func(name string) bool { return len(name) < leastName })
		if len(names) == 0 {
			return nil // an empty pattern would match between all words
		}
		slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
		for i, name := range names {
			names[i] = edge(name[0]) + strings.ReplaceAll(regexp.QuoteMeta(name), "_", gap) + edge(name[len(name)-1])
		}
		r.pattern = regexp.MustCompile(`(?i)` + strings.Join(names, "|"))
	}
	return r.pattern
}

// gap stands for _, which is a letter to regular expressions, while names are looked for: web1_eth0.pcap has one.
const gap = "\ue000"

// edge is the end of a word after or before this byte; other bytes, such as those of ö, need none.
func edge(b byte) string {
	if b >= '0' && b <= '9' || b >= 'a' && b <= 'z' {
		return `\b`
	}
	return ""
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
