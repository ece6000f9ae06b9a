package tune

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"thru/internal/cause/knob"
)

// driver sends an ethtool request about an interface to its driver, which
// writes its answer to it (host.Ethtool). Requests are structs of
// include/uapi/linux/ethtool.h: 32-bit words, the first of which is the
// command.
type driver func(iface string, request []byte) error

// wordAt reads a word of a request, setWord writes it.
func wordAt(b []byte, i int) uint32       { return binary.NativeEndian.Uint32(b[4*i:]) }
func setWord(b []byte, i int, v uint32)   { binary.NativeEndian.PutUint32(b[4*i:], v) }
func newRequest(cmd uint32, n int) []byte { b := make([]byte, n); setWord(b, 0, cmd); return b }

// get requests a struct with this number of words after the command.
func (d driver) get(iface string, cmd uint32, words int) ([]byte, error) {
	b := newRequest(cmd, 4*(words+1))
	return b, refused(d(iface, b))
}

// put sets a struct that get returned, with changes.
func (d driver) put(iface string, cmd uint32, b []byte) error {
	setWord(b, 0, cmd)
	return refused(d(iface, b))
}

// refused puts the usual errors of a driver into words.
func refused(err error) error {
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("the driver does not support it: %w", err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%s: %w", needsRoot, err)
	}
	return err
}

// driverRows returns the knobs of an interface's driver. privilege returns
// why this process may change none; empty: it may.
func driverRows(d driver, privilege func() string) []row {
	rows := []row{
		ringRow(d, knob.RXRing, 1, 5), ringRow(d, knob.TXRing, 4, 8),
		fieldsRow(d, channelFields()), fieldsRow(d, coalesceFields()), fieldsRow(d, pauseFields()),
		hashRow(d), tableRow(d),
	}
	for _, o := range offloads() {
		rows = append(rows, o.row(d))
	}
	for i := range rows {
		states := rows[i].states
		rows[i].scope, rows[i].link = knob.OfInterface, true
		rows[i].states = func(iface, value string) (possible, refusal string) {
			if states != nil {
				possible, refusal = states(iface, value)
			}
			if refusal == "" {
				refusal = privilege()
			}
			return possible, refusal
		}
	}
	return rows
}

const ringWords = 8 // struct ethtool_ringparam without the command

// ringRow returns the row of the number of descriptors of one direction: most
// is the word with the maximum, now that with the present value.
func ringRow(d driver, id string, most, now int) row {
	return row{
		knob: id, form: amounts(1),
		read: func(iface string) (string, error) {
			b, err := d.get(iface, unix.ETHTOOL_GRINGPARAM, ringWords)
			if err == nil && wordAt(b, most) == 0 {
				err = errNone
			}
			return strconv.Itoa(int(wordAt(b, now))), err
		},
		set: func(iface, _, value string) error {
			b, err := d.get(iface, unix.ETHTOOL_GRINGPARAM, ringWords)
			if err != nil {
				return err
			}
			n, err := strconv.ParseUint(value, 10, 31)
			if err != nil || n == 0 || uint32(n) > wordAt(b, most) {
				return fmt.Errorf("the range is 1 to %d", wordAt(b, most))
			}
			setWord(b, now, uint32(n))
			return d.put(iface, unix.ETHTOOL_SRINGPARAM, b)
		},
		states: func(iface, _ string) (string, string) {
			b, err := d.get(iface, unix.ETHTOOL_GRINGPARAM, ringWords)
			if err != nil {
				return "", err.Error()
			}
			return strconv.Itoa(int(wordAt(b, most))), ""
		},
	}
}

// fields is a knob of some words of one struct of the driver.
type fields struct {
	knob     string
	get, set uint32
	words    int // words of the struct, without the command
	list     []field
}

// field is one word of a knob.
type field struct {
	name   string
	word   int
	toggle bool // "on" or "off"
	most   int  // word with the maximum; 0: there is none. A maximum of 0 means that the field does not exist here.
}

// channelFields describes struct ethtool_channels without the channels for
// other purposes.
func channelFields() fields {
	return fields{knob.Channels, unix.ETHTOOL_GCHANNELS, unix.ETHTOOL_SCHANNELS, 8,
		[]field{{"rx", 5, false, 1}, {"tx", 6, false, 2}, {"combined", 8, false, 4}}}
}

// coalesceFields describes the fields of struct ethtool_coalesce that matter,
// named as by ethtool -C.
func coalesceFields() fields {
	return fields{knob.Coalescing, unix.ETHTOOL_GCOALESCE, unix.ETHTOOL_SCOALESCE, 22, []field{
		{"adaptive-rx", 10, true, 0}, {"adaptive-tx", 11, true, 0},
		{"rx-usecs", 1, false, 0}, {"rx-frames", 2, false, 0}, {"tx-usecs", 5, false, 0}, {"tx-frames", 6, false, 0},
	}}
}

// pauseFields describes struct ethtool_pauseparam.
func pauseFields() fields {
	return fields{knob.Pause, unix.ETHTOOL_GPAUSEPARAM, unix.ETHTOOL_SPAUSEPARAM, 3,
		[]field{{"autoneg", 1, true, 0}, {"rx", 2, true, 0}, {"tx", 3, true, 0}}}
}

// find returns a field by its name.
func (f fields) find(name string) (field, bool) {
	for _, x := range f.list {
		if x.name == name {
			return x, true
		}
	}
	return field{}, false
}

// fieldsRow returns the row of such a knob.
func fieldsRow(d driver, f fields) row {
	form := namedPairs(func(name, value string) (string, error) {
		x, known := f.find(name)
		switch {
		case !known:
			return "", errors.New("unknown field")
		case x.toggle:
			return onOff(value)
		}
		return numbers(1)(value)
	})
	ask := func(iface string) ([]byte, error) { return d.get(iface, f.get, f.words) }
	return row{
		knob: f.knob, form: form,
		read: func(iface string) (string, error) {
			b, err := ask(iface)
			if err != nil {
				return "", err
			}
			list := f.values(b, func(x field) int { return x.word })
			if len(list) == 0 {
				err = errNone
			}
			return joined(list), err
		},
		set: func(iface, before, value string) error {
			b, err := ask(iface)
			if err != nil {
				return err
			}
			if err := each(before, value, func(p pair) error { return f.fill(b, p) }); err != nil {
				return err
			}
			return d.put(iface, f.set, b)
		},
		states: func(iface, _ string) (string, string) {
			b, err := ask(iface)
			if err != nil || f.list[0].most == 0 {
				return "", ""
			}
			return joined(f.values(b, func(x field) int { return x.most })), ""
		},
	}
}

// values reads the fields that exist here.
func (f fields) values(b []byte, word func(field) int) (list []pair) {
	for _, x := range f.list {
		v := wordAt(b, word(x))
		switch {
		case x.most > 0 && wordAt(b, x.most) == 0:
		case x.toggle:
			list = append(list, pair{x.name, map[bool]string{true: "on", false: "off"}[v != 0]})
		default:
			list = append(list, pair{x.name, strconv.FormatUint(uint64(v), 10)})
		}
	}
	return list
}

// fill writes a field into a struct.
func (f fields) fill(b []byte, p pair) error {
	x, _ := f.find(p.name)
	if x.toggle {
		setWord(b, x.word, map[string]uint32{"on": 1}[p.value])
		return nil
	}
	n, err := strconv.ParseUint(p.value, 10, 32)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a 32-bit number", p.value)
	case x.most > 0 && uint32(n) > wordAt(b, x.most):
		return fmt.Errorf("the maximum is %d", wordAt(b, x.most))
	}
	setWord(b, x.word, uint32(n))
	return nil
}
