package tune

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"thru/internal/cause/knob"
)

// offload is a knob of some of the kernel's features of an interface.
//
// The kernel separates the requested from the active features: it keeps off a
// feature whose prerequisite is off (TSO needs scatter-gather), and turns it
// on again with the prerequisite (net/core/dev.c, netdev_fix_features). So a
// value is the requested state of the knob's own features; dependent features
// need no undo.
type offload struct {
	knob    string
	members []string // features as named by `ethtool -k`
}

// offloads groups the features as ethtool -K does, except for
// tx-tcp-mangleid-segmentation: it follows tx-tcp-segmentation, and adapters
// have it off, since it gives several packets the same IP ID.
func offloads() []offload {
	return []offload{
		{knob.RXChecksum, []string{"rx-checksum"}},
		{knob.TXChecksum, []string{"tx-checksum-ipv4", "tx-checksum-ip-generic", "tx-checksum-ipv6", "tx-checksum-fcoe-crc", "tx-checksum-sctp"}},
		{knob.ScatterGather, []string{"tx-scatter-gather", "tx-scatter-gather-fraglist"}},
		{knob.TSO, []string{"tx-tcp-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp6-segmentation", "tx-tcp-accecn-segmentation"}},
		{knob.GSO, []string{"tx-generic-segmentation"}},
		{knob.GRO, []string{"rx-gro"}},
		{knob.LRO, []string{"rx-lro"}},
	}
}

// feature is one feature of an interface. Bit is its position in the kernel's
// masks.
type feature struct {
	name           string
	bit            int
	movable        bool // the driver allows changes
	wanted, active bool
}

// row returns the row of an offload.
func (o offload) row(d driver) row {
	return row{
		knob: o.knob, form: featuresForm,
		read: func(iface string) (string, error) {
			all, _, err := d.features(iface, o.members)
			if err == nil && len(all) == 0 {
				err = errNone
			}
			return featuresText(all), err
		},
		set: func(iface, _, value string) error { return o.set(d, iface, value) },
		states: func(iface, value string) (possible, refused string) {
			all, _, err := d.features(iface, o.members)
			on, _, _ := strings.Cut(value, " ")
			switch {
			case err != nil:
				return "", err.Error()
			case !slices.ContainsFunc(all, func(f feature) bool { return f.movable }):
				return on, "the driver does not allow a change"
			case on == "on" && inactive(all):
				return "on off", errInactive.Error()
			}
			return "on off", ""
		},
	}
}

// set requests the state of each feature in a value, in one step.
func (o offload) set(d driver, iface, value string) error {
	all, count, err := d.features(iface, o.members)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(f feature) bool { return !f.movable })
	if len(all) == 0 {
		return errors.New("the driver does not allow a change")
	}
	words := strings.Fields(value)
	for i := range all {
		all[i].wanted = words[0] == "on"
	}
	for _, w := range words[1:] {
		name, state, _ := strings.Cut(w, "=")
		i := slices.IndexFunc(all, func(f feature) bool { return f.name == name })
		if i < 0 {
			return fmt.Errorf("%q cannot be changed here", name)
		}
		all[i].wanted = state == "on"
	}
	if text := featuresText(all); text != value {
		return fmt.Errorf("write it as %q", text)
	}
	if err := d.want(iface, all, count); err != nil {
		return err
	}
	if all, _, err = d.features(iface, o.members); err == nil && inactive(all) {
		err = errInactive
	}
	return err
}

// inactive reports whether features are requested of which none is active.
func inactive(all []feature) bool {
	wanted := slices.ContainsFunc(all, func(f feature) bool { return f.movable && f.wanted })
	return wanted && !slices.ContainsFunc(all, func(f feature) bool { return f.active })
}

// featuresForm returns the canonical form of a value: "on", "off", or where
// only some of several are on, each by its name: "on tx-tcp-segmentation=on
// tx-tcp6-segmentation=off".
func featuresForm(value string) (string, error) {
	words := strings.Fields(value)
	if len(words) == 0 {
		return "", errors.New(`it must be "on" or "off"`)
	}
	if _, err := onOff(words[0]); err != nil {
		return "", err
	}
	seen := map[string]bool{}
	for _, w := range words[1:] {
		name, state, _ := strings.Cut(w, "=")
		if _, err := onOff(state); err != nil || name == "" || seen[name] {
			return "", fmt.Errorf("%.80q does not set a feature to on or off, or repeats one", w)
		}
		seen[name] = true
	}
	return strings.Join(words, " "), nil
}

// featuresText returns the value of features: the requested state of those
// that can be changed; where none can, the active state.
func featuresText(all []feature) string {
	var on, off, active bool
	for _, f := range all {
		on, off, active = on || f.movable && f.wanted, off || f.movable && !f.wanted, active || f.active
	}
	if !on && !off {
		on, off = active, false
	}
	text := map[bool]string{true: "on", false: "off"}
	value := text[on]
	if on && off {
		for _, f := range all {
			if f.movable {
				value += " " + f.name + "=" + text[f.wanted]
			}
		}
	}
	return value
}

// Structs of features (include/uapi/linux/ethtool.h): 32 features a block. A
// read block has four words of bits: changeable, requested, active, never
// changed. A block to set has two: the features to set, and their values.
const (
	featureHead, gotBlock, setBlock = 8, 16, 8
	setFeatures                     = 4 // ETH_SS_FEATURES
	nameLength                      = 32
	maxFeatures                     = 1 << 12
)

// features requests the features of these names, in the order of the names,
// and the number of all features (ETHTOOL_GFEATURES).
func (d driver) features(iface string, names []string) (list []feature, count int, err error) {
	all, err := d.featureNames(iface)
	if err != nil {
		return nil, 0, err
	}
	blocks := (len(all) + 31) / 32
	b := newRequest(unix.ETHTOOL_GFEATURES, featureHead+blocks*gotBlock)
	setWord(b, 1, uint32(blocks))
	if err := refused(d(iface, b)); err != nil {
		return nil, 0, err
	}
	for _, name := range names {
		if i := slices.Index(all, name); i >= 0 {
			bit := func(word int) bool { return wordAt(b[featureHead+i/32*gotBlock:], word)&(1<<(i%32)) != 0 }
			list = append(list, feature{name, i, bit(0) && !bit(3), bit(1), bit(2)})
		}
	}
	return list, len(all), nil
}

// want requests the state of some features and leaves the others unchanged
// (ETHTOOL_SFEATURES).
func (d driver) want(iface string, list []feature, count int) error {
	blocks := (count + 31) / 32
	b := newRequest(unix.ETHTOOL_SFEATURES, featureHead+blocks*setBlock)
	setWord(b, 1, uint32(blocks))
	for _, f := range list {
		block, bit := b[featureHead+f.bit/32*setBlock:], uint32(1)<<(f.bit%32)
		setWord(block, 0, wordAt(block, 0)|bit)
		if f.wanted {
			setWord(block, 1, wordAt(block, 1)|bit)
		}
	}
	return refused(d(iface, b))
}

// featureNames requests the names of all features (ETHTOOL_GSSET_INFO,
// ETHTOOL_GSTRINGS).
func (d driver) featureNames(iface string) ([]string, error) {
	b := newRequest(unix.ETHTOOL_GSSET_INFO, 20)
	setWord(b, 2, 1<<setFeatures)
	if err := refused(d(iface, b)); err != nil {
		return nil, err
	}
	n := int(wordAt(b, 4))
	if n <= 0 || n > maxFeatures {
		return nil, fmt.Errorf("the kernel lists %d features: %w", n, errNone)
	}
	b = newRequest(unix.ETHTOOL_GSTRINGS, 12+n*nameLength)
	setWord(b, 1, setFeatures)
	setWord(b, 2, uint32(n))
	if err := refused(d(iface, b)); err != nil {
		return nil, err
	}
	names := make([]string, 0, n)
	for s := range slices.Chunk(b[12:], nameLength) {
		names = append(names, unix.ByteSliceToString(s))
	}
	return names, nil
}
