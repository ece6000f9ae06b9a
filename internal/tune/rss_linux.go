package tune

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"thru/internal/cause/knob"
	"thru/internal/unit"
)

// flow is a kind of flow whose hash can be set (include/uapi/linux/ethtool.h, TCP_V4_FLOW ...).
type flow struct {
	name   string
	number uint32
}

func flows() []flow { return []flow{{"tcp4", 1}, {"tcp6", 5}, {"udp4", 2}, {"udp6", 6}} }

// hashLetters holds the fields that can be hashed, by their bits, with the
// letters of ethtool -N rx-flow-hash (RXH_L2DA is bit 1): "sdfn" is both
// addresses and both ports.
const hashLetters = " mvtsdfnel"

// noFields is the text for a hash without fields.
const noFields = "-"

// hashText returns the letters of the hashed fields; ok is false where a
// field has no letter.
func hashText(fields uint64) (text string, ok bool) {
	if fields == 0 {
		return noFields, true
	}
	for i, c := range hashLetters {
		if i > 0 && fields&(1<<i) != 0 {
			text += string(c)
		}
	}
	if fields&(1<<31) != 0 { // RXH_DISCARD
		text += "r"
	}
	return text, len(text) == bits.OnesCount64(fields)
}

// hashFields parses such a text.
func hashFields(text string) (fields uint64, err error) {
	if text == noFields {
		return 0, nil
	}
	for _, c := range text {
		bit := strings.IndexRune(hashLetters, c)
		if c == 'r' {
			bit = 31
		}
		if bit < 1 || fields&(1<<bit) != 0 {
			return 0, fmt.Errorf("%.80q is not a set of packet fields", text)
		}
		fields |= 1 << bit
	}
	if text == "" {
		err = errors.New("no packet fields are given")
	}
	return fields, err
}

const flowRequest = 192 // struct ethtool_rxnfc: command, kind of flow, fields

// hashRow returns the row of the packet fields that choose the receive queue.
func hashRow(d driver) row {
	return row{
		knob: knob.RSSHash,
		form: namedPairs(func(name, value string) (string, error) {
			for _, f := range flows() {
				if f.name == name {
					fields, err := hashFields(value)
					text, _ := hashText(fields)
					return text, err
				}
			}
			return "", errors.New("not a flow type: use tcp4, tcp6, udp4 or udp6")
		}),
		read: func(iface string) (string, error) {
			var list []pair
			for _, f := range flows() {
				b := newRequest(unix.ETHTOOL_GRXFH, flowRequest)
				setWord(b, 1, f.number)
				if err := d(iface, b); err != nil {
					continue // a kind that the driver does not report
				}
				if text, ok := hashText(binary.NativeEndian.Uint64(b[8:])); ok {
					list = append(list, pair{f.name, text})
				}
			}
			if len(list) == 0 {
				return "", errNone
			}
			return joined(list), nil
		},
		set: func(iface, before, value string) error {
			return each(before, value, func(p pair) error {
				fields, err := hashFields(p.value)
				if err != nil {
					return err
				}
				b := newRequest(unix.ETHTOOL_SRXFH, flowRequest)
				for _, f := range flows() {
					if f.name == p.name {
						setWord(b, 1, f.number)
					}
				}
				binary.NativeEndian.PutUint64(b[8:], fields)
				return refused(d(iface, b))
			})
		},
	}
}

// tableRow returns the row of the indirection table: the receive queue of
// each entry.
func tableRow(d driver) row {
	return row{
		knob: knob.RSSTable, form: queueTable,
		read: func(iface string) (string, error) {
			table, err := d.table(iface)
			return strings.Join(unit.Mapped(table, func(q uint32) string { return strconv.FormatUint(uint64(q), 10) }), " "), err
		},
		set: func(iface, before, value string) error {
			words := strings.Fields(value)
			if n := len(strings.Fields(before)); n != len(words) {
				return fmt.Errorf("the table has %d entries, not %d", n, len(words))
			}
			table := make([]uint32, len(words))
			for i, w := range words {
				q, err := strconv.ParseUint(w, 10, 16)
				if err != nil {
					return err
				}
				table[i] = uint32(q)
			}
			return d.setTable(iface, table)
		},
	}
}

// Limits of a table: entries, and queue numbers.
const maxTable, maxQueue = 1 << 13, 1<<16 - 1

// table requests the indirection table (ETHTOOL_GRXFHINDIR): first its size.
func (d driver) table(iface string) ([]uint32, error) {
	b, err := d.get(iface, unix.ETHTOOL_GRXFHINDIR, 1)
	if err != nil {
		return nil, err
	}
	n := wordAt(b, 1)
	if n == 0 || n > maxTable {
		return nil, fmt.Errorf("the driver has a table of %d entries: %w", n, errNone)
	}
	b = newRequest(unix.ETHTOOL_GRXFHINDIR, 8+4*int(n))
	setWord(b, 1, n)
	if err := refused(d(iface, b)); err != nil {
		return nil, err
	}
	table := make([]uint32, n)
	for i := range table {
		if table[i] = wordAt(b, 2+i); table[i] > maxQueue {
			return nil, fmt.Errorf("the driver's table names a queue %d: %w", table[i], errNone)
		}
	}
	return table, nil
}

// setTable sets the table. It requests the kernel's default table as such (a
// size of 0): the kernel then spreads it anew when the number of queues
// changes.
func (d driver) setTable(iface string, table []uint32) error {
	if inTurns(table) {
		if d(iface, newRequest(unix.ETHTOOL_SRXFHINDIR, 8)) == nil {
			if now, err := d.table(iface); err == nil && slices.Equal(now, table) {
				return nil
			}
		}
	}
	b := newRequest(unix.ETHTOOL_SRXFHINDIR, 8+4*len(table))
	setWord(b, 1, uint32(len(table)))
	for i, q := range table {
		setWord(b, 2+i, q)
	}
	return refused(d(iface, b))
}

// inTurns reports whether a table names the queues from 0 in rotation, as the
// kernel's default does (ethtool_rxfh_indir_default).
func inTurns(table []uint32) bool {
	n := uint32(0)
	for _, q := range table {
		n = max(n, q+1)
	}
	for i, q := range table {
		if q != uint32(i)%n {
			return false
		}
	}
	return true
}
