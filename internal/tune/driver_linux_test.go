package tune

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"thru/internal/cause/knob"
)

// nic answers ethtool requests like a driver, from its own tables.
type nic struct {
	words    map[uint32][]uint32 // by the reading command: all words of the struct after it
	rounds   uint32              // rings are rounded up to a multiple
	features []string
	can      uint64 // changeable features
	wanted   uint64
	usable   uint64 // features that no other one keeps off
	hashes   map[uint32]uint64
	table    []uint32
	reset    bool // the driver's default table was requested
	queues   uint32
	sets     int // changes made
}

func (n *nic) send(iface string, b []byte) error {
	if iface != "eth0" {
		return unix.ENODEV
	}
	cmd := wordAt(b, 0)
	sets := map[uint32]uint32{
		unix.ETHTOOL_SRINGPARAM: unix.ETHTOOL_GRINGPARAM, unix.ETHTOOL_SCHANNELS: unix.ETHTOOL_GCHANNELS,
		unix.ETHTOOL_SCOALESCE: unix.ETHTOOL_GCOALESCE, unix.ETHTOOL_SPAUSEPARAM: unix.ETHTOOL_GPAUSEPARAM,
	}
	switch get, set := sets[cmd]; {
	case set:
		n.sets++
		for i := range n.words[get] {
			n.words[get][i] = wordAt(b, i+1)
		}
		if cmd == unix.ETHTOOL_SRINGPARAM && n.rounds > 0 {
			n.words[get][4] = (n.words[get][4] + n.rounds - 1) / n.rounds * n.rounds
		}
		return nil
	case n.words[cmd] != nil:
		for i, w := range n.words[cmd] {
			setWord(b, i+1, w)
		}
		return nil
	}
	return n.offload(cmd, b)
}

func (n *nic) offload(cmd uint32, b []byte) error {
	switch cmd {
	case unix.ETHTOOL_GSSET_INFO:
		setWord(b, 4, uint32(len(n.features)))
	case unix.ETHTOOL_GSTRINGS:
		for i, s := range n.features {
			copy(b[12+32*i:], s)
		}
	case unix.ETHTOOL_GFEATURES:
		for i := range 2 {
			for k, bits := range []uint64{n.can, n.wanted, n.wanted & n.usable, 0} {
				setWord(b, 2+4*i+k, uint32(bits>>(32*i)))
			}
		}
	case unix.ETHTOOL_SFEATURES:
		n.sets++
		valid := uint64(wordAt(b, 2)) | uint64(wordAt(b, 4))<<32
		asked := uint64(wordAt(b, 3)) | uint64(wordAt(b, 5))<<32
		n.wanted = n.wanted&^(valid&n.can) | asked&valid&n.can
	default:
		return n.spread(cmd, b)
	}
	return nil
}

func (n *nic) spread(cmd uint32, b []byte) error {
	switch cmd {
	case unix.ETHTOOL_GRXFH:
		fields, known := n.hashes[wordAt(b, 1)]
		if !known {
			return unix.EOPNOTSUPP
		}
		binary.NativeEndian.PutUint64(b[8:], fields)
	case unix.ETHTOOL_SRXFH:
		n.sets++
		n.hashes[wordAt(b, 1)] = binary.NativeEndian.Uint64(b[8:])
	case unix.ETHTOOL_GRXFHINDIR:
		if wordAt(b, 1) != 0 {
			for i, q := range n.table {
				setWord(b, 2+i, q)
			}
		}
		setWord(b, 1, uint32(len(n.table)))
	case unix.ETHTOOL_SRXFHINDIR:
		n.sets++
		n.reset = wordAt(b, 1) == 0
		for i := range n.table {
			if n.table[i] = uint32(i) % n.queues; !n.reset {
				n.table[i] = wordAt(b, 2+i)
			}
		}
	default:
		return unix.EOPNOTSUPP
	}
	return nil
}

// aNIC has 34 features, so that they need two words of bits.
func aNIC() *nic {
	n := &nic{
		words: map[uint32][]uint32{
			unix.ETHTOOL_GRINGPARAM:  {4096, 0, 0, 2048, 256, 0, 0, 512},
			unix.ETHTOOL_GCHANNELS:   {0, 0, 1, 8, 0, 0, 1, 4},
			unix.ETHTOOL_GCOALESCE:   {3, 0, 7, 0, 8, 1, 9, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
			unix.ETHTOOL_GPAUSEPARAM: {1, 1, 0},
		},
		hashes: map[uint32]uint64{1: 0b11110000, 2: 0b110000}, table: []uint32{0, 1, 2, 3, 0, 1, 2, 3}, queues: 4,
		features: make([]string, 34),
	}
	for i, name := range map[int]string{0: "rx-checksum", 1: "rx-gro", 2: "tx-scatter-gather", 3: "tx-tcp-segmentation", 4: "tx-tcp6-segmentation",
		5: "tx-tcp-mangleid-segmentation", 6: "rx-lro", 33: "tx-checksum-ip-generic"} {
		n.features[i] = name
	}
	n.can, n.wanted, n.usable = ^uint64(1<<6), 1|1<<2|1<<3|1<<33, ^uint64(0)
	return n
}

func (n *nic) machine() *machine {
	return &machine{driverRows(n.send, func() string { return "" }), anyLink}
}

func TestKnobsOfADriver(t *testing.T) {
	got := map[string][3]string{}
	for _, s := range aNIC().machine().Knobs([]string{"eth0", "eth1"}) {
		got[s.Knob] = [3]string{s.Value, s.Possible, s.Refused}
	}
	for id, want := range map[string][3]string{
		knob.RXRing: {"256", "4096", ""}, knob.TXRing: {"512", "2048", ""},
		knob.Channels:   {"combined 4", "combined 8", ""},
		knob.Coalescing: {"adaptive-rx on adaptive-tx off rx-usecs 3 rx-frames 0 tx-usecs 8 tx-frames 1", "", ""},
		knob.Pause:      {"autoneg on rx on tx off", "", ""},
		knob.RSSHash:    {"tcp4 sdfn udp4 sd", "", ""}, knob.RSSTable: {"0 1 2 3 0 1 2 3", "", ""},
		knob.RXChecksum: {"on", "on off", ""}, knob.TXChecksum: {"on", "on off", ""}, knob.ScatterGather: {"on", "on off", ""},
		knob.TSO: {"on tx-tcp-segmentation=on tx-tcp6-segmentation=off", "on off", ""}, knob.GRO: {"off", "on off", ""},
		knob.LRO: {"off", "off", "the driver does not allow a change"},
	} {
		if got[id] != want {
			t.Errorf("%s: %q, want %q", id, got[id], want)
		}
		delete(got, id)
	}
	if len(got) > 0 {
		t.Errorf("besides: %q", got)
	}
}

// Each change is one request about the difference, and the former value
// restores all words and bits of the driver.
func TestSetOfADriver(t *testing.T) {
	for _, c := range []struct{ knob, value, reads string }{
		{knob.RXRing, "4096", ""}, {knob.TXRing, "1024", ""}, {knob.Channels, "combined 8", ""},
		{knob.Coalescing, "rx-usecs 50 adaptive-rx off", "adaptive-rx off adaptive-tx off rx-usecs 50 rx-frames 0 tx-usecs 8 tx-frames 1"},
		{knob.Pause, "rx off", "autoneg on rx off tx off"}, {knob.RSSHash, "udp4 nfds", "tcp4 sdfn udp4 sdfn"}, {knob.RSSHash, "udp4 -", "tcp4 sdfn udp4 -"},
		{knob.RSSTable, "0 0 0 0 1 1 1 1", ""}, {knob.RXChecksum, "off", ""}, {knob.TXChecksum, "off", ""}, {knob.ScatterGather, "off", ""},
		{knob.TSO, "off", ""}, {knob.TSO, "on", ""}, {knob.TSO, "on tx-tcp-segmentation=off tx-tcp6-segmentation=on", ""}, {knob.GRO, "on", ""},
	} {
		n, fresh := aNIC(), aNIC()
		m := n.machine()
		before, err := m.Read(c.knob, "eth0")
		if err != nil {
			t.Errorf("%s: %v", c.knob, err)
			continue
		}
		if c.reads == "" {
			c.reads = c.value
		}
		if err := m.Set(c.knob, "eth0", c.value); err != nil || n.sets != 1 {
			t.Errorf("%s: %v after %d requests", c.knob, err, n.sets)
		}
		if got, err := m.Read(c.knob, "eth0"); got != c.reads || err != nil {
			t.Errorf("%s: reads %q, %v", c.knob, got, err)
		}
		if err := m.Set(c.knob, "eth0", before); err != nil {
			t.Errorf("%s back: %v", c.knob, err)
		}
		same := n.wanted == fresh.wanted && slices.Equal(n.table, fresh.table) && n.hashes[1] == fresh.hashes[1] && n.hashes[2] == fresh.hashes[2]
		for cmd, words := range fresh.words {
			same = same && slices.Equal(n.words[cmd], words)
		}
		if !same || c.knob == knob.RSSTable && !n.reset {
			t.Errorf("%s: %+v, was %+v", c.knob, n, fresh)
		}
	}
}

func TestRefusedByADriver(t *testing.T) {
	for _, c := range []struct{ knob, value, says string }{
		{knob.RXRing, "5000", "1 to 4096"}, {knob.RXRing, "0", "1 to"}, {knob.RXRing, "300", "reports \"512\""},
		{knob.Channels, "combined 9", "maximum is 8"}, {knob.Channels, "rx 1", `no "rx"`}, {knob.Channels, "other 1", "unknown field"},
		{knob.Coalescing, "rx-usecs 4294967296", "32-bit number"}, {knob.Coalescing, "adaptive-rx 1", "neither"},
		{knob.RSSHash, "tcp6 sd", `no "tcp6"`}, {knob.RSSHash, "sctp4 sd", "not a flow type"}, {knob.RSSHash, "tcp4 sx", "not a set of packet fields"}, {knob.RSSHash, "tcp4 ss", "not a set of packet fields"},
		{knob.RSSTable, "0 1", "8 entries"}, {knob.LRO, "on", "does not allow"}, {knob.TSO, "maybe", "neither"}, {knob.TSO, "on rx-gro=on", "cannot be changed here"},
		{knob.TSO, "off tx-tcp6-segmentation=on", "write it as"},
		{knob.GSO, "on", "no such knob"},
	} {
		n, fresh := aNIC(), aNIC()
		n.rounds = 256
		if err := n.machine().Set(c.knob, "eth0", c.value); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s to %q: %v, want %q", c.knob, c.value, err, c.says)
		}
		if got := n.words[unix.ETHTOOL_GRINGPARAM][4]; got != 256 || n.wanted != fresh.wanted {
			t.Errorf("%s to %q: left a ring of %d, features %x", c.knob, c.value, got, n.wanted)
		}
	}
}

// A requested feature that another one keeps off is reported so; the request
// stays, and takes effect with the other one.
func TestInactiveFeature(t *testing.T) {
	n := aNIC()
	n.usable &^= 1 << 1
	m := n.machine()
	if err := m.Set(knob.GRO, "eth0", "on"); err == nil || !strings.Contains(err.Error(), "keeps it off") {
		t.Errorf("an offload that is kept off: %v", err)
	}
	if s := stateOf(m, knob.GRO); s != errInactive.Error() {
		t.Errorf("its state: %q", s)
	}
	n.usable = ^uint64(0)
	if got, err := m.Read(knob.GRO, "eth0"); got != "on" || err != nil || stateOf(m, knob.GRO) != "" {
		t.Errorf("with the other: %q, %v", got, err)
	}
}

func stateOf(m *machine, id string) string {
	for _, s := range m.Knobs([]string{"eth0"}) {
		if s.Knob == id {
			return s.Refused
		}
	}
	return "there is none"
}

// Without the privilege everything is read, and reported to need it.
func TestUnprivileged(t *testing.T) {
	m := &machine{driverRows(aNIC().send, func() string { return needsRoot }), anyLink}
	for _, s := range m.Knobs([]string{"eth0"}) {
		if s.Knob != knob.LRO && s.Refused != needsRoot {
			t.Errorf("%+v", s)
		}
	}
}

// Whatever a driver answers, nothing breaks, and Read returns what Set has
// accepted.
func FuzzDriver(f *testing.F) {
	f.Add([]byte{1, 2, 3}, "off tx-tcp-segmentation=on")
	f.Add([]byte("\xff\xff\xff\xff\x00\x00\x00\x00"), "tcp4 sdfn")
	f.Fuzz(func(t *testing.T, answer []byte, value string) {
		m := &machine{driverRows(func(_ string, b []byte) error {
			if len(b) > 4 {
				copy(b[4:], answer)
			}
			return nil
		}, func() string { return "" }), anyLink}
		m.Knobs([]string{"eth0"})
		for _, r := range m.rows {
			once, err := r.form(value)
			if err != nil {
				continue
			}
			if twice, err := r.form(once); err != nil || twice != once {
				t.Errorf("%s of %q: %q, then %q, %v", r.knob, value, once, twice, err)
			}
			before, err := m.Read(r.knob, "eth0")
			if err == nil && m.Set(r.knob, "eth0", before) != nil {
				t.Errorf("%s: %q was read and cannot be set", r.knob, before)
			}
		}
	})
}
