package kvm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"thru/internal/unit"
)

// Limits of a command line: whoever starts a program chooses its contents.
const (
	maxText  = 256  // characters of a name
	maxPath  = 1024 // characters of a path
	maxDepth = 16   // of nested values
	maxProps = 4096 // of one option
)

// option is one QEMU option (qemu(1)): "-netdev tap,id=net0".
type option struct {
	name  string // without its hyphen
	props props
}

// prop is one setting of an option; nested ones have dotted keys: "cache.direct".
type prop struct{ key, value string }

// props are the settings of one option, in order. The last value of a key
// counts.
type props []prop

// get returns the value of a key; "" where there is none.
func (p props) get(key string) string {
	v, _ := p.find(key)
	return v
}

func (p props) find(key string) (string, bool) {
	for _, x := range slices.Backward(p) {
		if x.key == key {
			return x.value, true
		}
	}
	return "", false
}

// first returns the value of the first key that is set.
func (p props) first(keys ...string) string {
	for _, k := range keys {
		if v := p.get(k); v != "" {
			return v
		}
	}
	return ""
}

// all returns the values of a key that may be repeated, and those of a list:
// "host-nodes", "host-nodes.0".
func (p props) all(key string) (list []string) {
	for _, x := range p {
		rest, ok := strings.CutPrefix(x.key, key)
		if ok && (rest == "" || rest[0] == '.') {
			list = append(list, x.value)
		}
	}
	return list
}

// flag reads a setting that is on or off; nil: not given.
func (p props) flag(key string) *bool {
	switch v, ok := p.find(key); {
	case !ok:
		return nil
	case v == "on" || v == "yes" || v == "true" || v == "y":
		return new(true)
	case v == "off" || v == "no" || v == "false" || v == "n":
		return new(false)
	}
	return nil
}

// on reports whether a setting is given and on.
func (p props) on(key string) bool {
	v := p.flag(key)
	return v != nil && *v
}

// number reads a count that is not negative; ok is false where there is none.
func (p props) number(key string) (n int, ok bool) {
	v, err := strconv.ParseUint(p.get(key), 0, 31)
	return int(v), err == nil
}

// implied lists the options that thru reads, each with the implied key of a
// first part without one (qemu(1), qemu-options.hx).
func implied() map[string]string {
	return map[string]string{
		"name": "guest", "machine": "type", "M": "type", "m": "size", "smp": "cpus", "cpu": "model", "accel": "accel",
		"device": "driver", "netdev": "type", "nic": "type", "net": "type", "object": "qom-type", "blockdev": "driver",
		"drive": "", "smbios": "", "id": "id", "uuid": "uuid", "bios": "file", "readconfig": "file", "mem-path": "path",
		"hda": "file", "hdb": "file", "hdc": "file", "hdd": "file", "incoming": "from",
	}
}

// flags lists options without a value that often precede another argument.
func flags() []string {
	return []string{"S", "nographic", "nodefaults", "no-user-config", "enable-kvm", "snapshot", "daemonize", "no-reboot",
		"no-shutdown", "no-hpet", "no-acpi", "usb", "s", "full-screen", "only-migratable", "nodefconfig", "mem-prealloc"}
}

// parseArgs parses the arguments after the program's name. It leaves out
// options that thru does not read; an argument of no option is the first
// disk.
func parseArgs(args []string) (all []option) {
	known, plain := implied(), flags()
	for i := 0; i < len(args); i++ {
		name, isOption := strings.CutPrefix(args[i], "-")
		if !isOption || name == "" {
			if args[i] != "" {
				all = append(all, option{"hda", props{{"file", args[i]}}})
			}
			continue
		}
		name = strings.TrimPrefix(name, "-")
		key, wanted := known[name]
		switch {
		case wanted && i+1 < len(args):
			i++
			all = append(all, option{name, parseProps(args[i], key)})
		case slices.Contains(plain, name):
			all = append(all, option{name: name})
		case i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			i++ // the value of an option that is not read
		}
	}
	return all
}

// parseProps parses the value of an option in either of its forms: JSON, or
// key=value parts separated by commas; a doubled comma is part of the text.
func parseProps(s, first string) props {
	if strings.HasPrefix(s, "{") {
		return parseJSON(s)
	}
	var p props
	for i, part := range splitCommas(s) {
		key, value, ok := strings.Cut(part, "=")
		switch {
		case len(p) >= maxProps:
			return p
		case ok:
			p = append(p, prop{key, value})
		case i == 0 && first != "" && part != "":
			p = append(p, prop{first, part})
		case part == "":
		case strings.HasPrefix(part, "no") && len(part) > 2: // "nowait": the old way to say off
			p = append(p, prop{part[2:], "off"}, prop{part, "on"})
		default:
			p = append(p, prop{part, "on"})
		}
	}
	return p
}

// splitCommas splits at single commas; a doubled comma stands for one in the
// text.
func splitCommas(s string) (parts []string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != ',':
			b.WriteByte(s[i])
		case i+1 < len(s) && s[i+1] == ',':
			b.WriteByte(',')
			i++
		default:
			parts = append(parts, b.String())
			b.Reset()
		}
	}
	return append(parts, b.String())
}

// parseJSON parses the form that libvirt writes since QEMU 6:
// {"driver":"virtio-net-pci","mq":true}.
func parseJSON(s string) (p props) {
	d := json.NewDecoder(bytes.NewReader([]byte(s)))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		return nil
	}
	p.flatten("", v, 0)
	return p
}

// flatten adds a value and all values in it.
func (p *props) flatten(key string, v any, depth int) {
	if depth > maxDepth || len(*p) >= maxProps {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			p.flatten(strings.TrimPrefix(key+"."+k, "."), v[k], depth+1)
		}
	case []any:
		for i, x := range v {
			p.flatten(fmt.Sprintf("%s.%d", key, i), x, depth+1)
		}
	case bool:
		*p = append(*p, prop{key, map[bool]string{true: "on", false: "off"}[v]})
	case nil:
	default:
		*p = append(*p, prop{key, fmt.Sprint(v)})
	}
}

// size parses a number of bytes with QEMU's suffixes, powers of 1024; a
// number without a suffix is in unit without (a letter).
func size(s, without string) (int64, bool) {
	n := strings.TrimRight(s, "bBkKmMgGtT")
	factor := strings.ToUpper(cmp.Or(s[len(n):], without))
	shift, ok := map[string]uint{"B": 0, "K": 10, "M": 20, "G": 30, "T": 40}[factor]
	v, err := strconv.ParseFloat(n, 64)
	if !ok || err != nil || !(v >= 0 && v <= float64(int64(1)<<(62-shift))) { // nor NaN
		return 0, false
	}
	return int64(v * float64(int64(1)<<shift)), true
}

// clean makes a name of foreign bytes printable.
func clean(s string) string { return unit.Line(s, maxText) }

// known returns a pointer to a text, or nil where it is empty.
func known(s string) *string {
	if s = clean(s); s == "" {
		return nil
	}
	return &s
}
