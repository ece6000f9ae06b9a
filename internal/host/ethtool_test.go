package host

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thru/internal/measure"
)

// words builds an answer of 32-bit numbers, the command first.
func words(all ...uint32) []byte {
	var b []byte
	for _, n := range all {
		b = binary.NativeEndian.AppendUint32(b, n)
	}
	return b
}

// settingsOf builds struct ethtool_link_settings with masks of 4 words.
func settingsOf(mbps uint32, duplex, port, autoneg byte, supported, partner []int) []byte {
	const words = 4
	b := make([]byte, sizeofLinkSettings+3*4*words)
	binary.NativeEndian.PutUint32(b[4:], mbps)
	b[8], b[9], b[11], b[15] = duplex, port, autoneg, words
	set := func(mask []byte, bits []int) {
		for _, bit := range bits {
			at := mask[bit/32*4:]
			binary.NativeEndian.PutUint32(at, binary.NativeEndian.Uint32(at)|1<<(bit%32))
		}
	}
	set(b[sizeofLinkSettings:], supported)
	set(b[sizeofLinkSettings+8*words:], partner)
	return b
}

func TestParseLinkSettings(t *testing.T) {
	for name, c := range map[string]struct {
		b    []byte
		want linkSettings
	}{
		"82599, SFP+":         {settingsOf(10000, 1, 3, 0, []int{10, 12}, nil), linkSettings{speedBps: 10e9, duplex: "full", port: "fibre", maxBps: 10e9}},
		"X550 at 1G":          {settingsOf(1000, 1, 0, 1, []int{3, 5, 6, 7, 12, 47, 48}, []int{2, 3, 5}), linkSettings{speedBps: 1e9, duplex: "full", port: "twisted pair", autoneg: true, maxBps: 10e9, peerBps: 1e9}},
		"ConnectX-7, DAC":     {settingsOf(400000, 1, 5, 1, []int{38, 70, 86}, []int{86, 88}), linkSettings{speedBps: 400e9, duplex: "full", port: "direct attach", autoneg: true, maxBps: 400e9, peerBps: 400e9}},
		"800G by 100G lanes":  {settingsOf(800000, 1, 3, 0, []int{97}, nil), linkSettings{speedBps: 800e9, duplex: "full", port: "fibre", maxBps: 800e9}},
		"a blade's backplane": {settingsOf(25000, 1, 0xef, 0, []int{16, 32}, nil), linkSettings{speedBps: 25e9, duplex: "full", port: "backplane", maxBps: 25e9}},
		"down":                {settingsOf(0xFFFFFFFF, 0xff, 0xff, 0, nil, nil), linkSettings{}},
		"half":                {settingsOf(100, 0, 2, 0, []int{2}, nil), linkSettings{speedBps: 100e6, duplex: "half", maxBps: 100e6}},
		"virtio":              {recordedIn(t, "ethtool")["settings"], linkSettings{}},
	} {
		got, err := parseLinkSettings(c.b)
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(linkSettings{})); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	negative := settingsOf(1, 1, 1, 1, nil, nil)
	negative[15] = 0xfc // the kernel requests other masks
	for _, b := range [][]byte{nil, make([]byte, 47), negative, settingsOf(1, 1, 1, 1, nil, nil)[:90]} {
		if _, err := parseLinkSettings(b); err == nil {
			t.Errorf("%d bytes are no settings", len(b))
		}
	}
}

// Each mode has the speed in its name; a sample of each range's ends.
func TestFastest(t *testing.T) {
	for bit, mbps := range map[int]int64{
		0: 10, 3: 100, 5: 1000, 6: 0, 12: 10_000, 13: 0, 15: 2500, 16: 0, 17: 1000, 20: 10_000, 22: 20_000, 26: 40_000, 30: 56_000, 31: 25_000, 33: 25_000,
		34: 50_000, 36: 100_000, 39: 100_000, 40: 50_000, 41: 1000, 46: 10_000, 47: 2500, 48: 5000, 49: 0, 51: 0, 52: 50_000, 56: 50_000, 57: 100_000, 61: 100_000,
		62: 200_000, 66: 200_000, 67: 100, 68: 1000, 69: 400_000, 73: 400_000, 74: 0, 75: 100_000, 79: 100_000, 80: 200_000, 84: 200_000, 85: 400_000, 89: 400_000,
		90: 100, 92: 10, 93: 800_000, 98: 800_000, 99: 10, 102: 10, 103: 200_000, 108: 200_000, 109: 400_000, 114: 400_000, 115: 800_000, 120: 800_000, 121: 1_600_000, 124: 1_600_000, 125: 0,
	} {
		b := settingsOf(0, 0, 0, 0, []int{bit}, nil)
		if got := fastest(b[sizeofLinkSettings : sizeofLinkSettings+16]); got != mbps*1_000_000 {
			t.Errorf("mode %d: %d bit/s, want %d Mb/s", bit, got, mbps)
		}
	}
}

func TestParseQueueAnswers(t *testing.T) {
	rec := recordedIn(t, "ethtool")
	if got, err := parseRings(rec["rings"]); got != (measure.Rings{RX: 256, TX: 256, RXMax: 256, TXMax: 256}) || err != nil {
		t.Errorf("rings %+v, %v", got, err)
	}
	if got, err := parseRings(words(0x10, 4096, 1, 2, 8192, 512, 3, 4, 1024)); got != (measure.Rings{RX: 512, TX: 1024, RXMax: 4096, TXMax: 8192}) || err != nil {
		t.Errorf("rings %+v, %v", got, err)
	}
	if got, err := parseChannels(rec["channels"]); got != (measure.Channels{Combined: 1, CombinedMax: 1}) || err != nil {
		t.Errorf("channels %+v, %v", got, err)
	}
	if got, err := parseChannels(words(0x3c, 1, 2, 3, 4, 5, 6, 7, 8)); got != (measure.Channels{RXMax: 1, TXMax: 2, CombinedMax: 4, RX: 5, TX: 6, Combined: 8}) || err != nil {
		t.Errorf("channels %+v, %v", got, err)
	}
	if got, err := parseCoalesce(rec["coalesce"]); got != (measure.Coalesce{RXFrames: 1, TXFrames: 1}) || err != nil {
		t.Errorf("coalescing %+v, %v", got, err)
	}
	long := words(0xe, 50, 2, 9, 9, 60, 3, 9, 9, 9, 1, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9)
	if got, err := parseCoalesce(long); got != (measure.Coalesce{AdaptiveRX: true, RXNs: 50_000, RXFrames: 2, TXNs: 60_000, TXFrames: 3}) || err != nil {
		t.Errorf("coalescing %+v, %v", got, err)
	}
	if got, err := parsePause(words(0x12, 1, 0, 1)); got != (measure.Pause{Autoneg: true, TX: true}) || err != nil {
		t.Errorf("pause %+v, %v", got, err)
	}
	for name, err := range map[string]error{
		"rings": second(parseRings(long[:32])), "channels": second(parseChannels(long[:32])), "coalescing": second(parseCoalesce(long[:88])), "pause": second(parsePause(long[:12])),
	} {
		if err == nil {
			t.Errorf("%s: an answer that is too short", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestParseRSS(t *testing.T) {
	b := words(0x46, 0, 6, 40, 1, 0, 0, 1, 3, 0, 1, 0) // hash function 1 in the lowest byte, where the machine is little endian
	b[16] = 1
	got, err := parseRSS(append(b, make([]byte, 40)...))
	if want := (measure.RSS{Hash: "toeplitz", Table: 6, Queues: []int{3, 2, 0, 1}}); !cmp.Equal(want, got) || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = parseRSS(recordedIn(t, "ethtool")["rss"]); got.Table != 0 || got.Hash != "toeplitz" || len(got.Queues) != 0 || err != nil {
		t.Errorf("virtio: %+v, %v", got, err)
	}
	for _, b := range [][]byte{nil, b[:20], words(0x46, 0, 7, 0, 1, 0, 1, 1), words(0x46, 0, 0xFFFFFFFF, 0, 1, 0)} {
		if _, err := parseRSS(b); err == nil {
			t.Errorf("%d bytes are no table", len(b))
		}
	}
	if got := hashFields(1<<4 | 1<<5 | 1<<6 | 1<<7); !slices.Equal(got, []string{"src-ip", "dst-ip", "src-port", "dst-port"}) {
		t.Errorf("fields %q", got)
	}
}

func TestParseFeatures(t *testing.T) {
	names := make([]string, 34)
	names[0], names[1], names[2], names[33] = "can", "cannot", "never", "second"
	b := words(0x3a, 2, 1|1<<2, 0, 1<<1, 1<<2, 1<<1, 0, 1<<1, 0)
	got, err := parseFeatures(names, b)
	want := map[string]feature{"can": {}, "cannot": {on: true, fixed: true}, "never": {fixed: true}, "second": {on: true}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(feature{})); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := parseFeatures(names, b[:24]); err == nil {
		t.Error("an answer that is too short")
	}
}

func parseRings(b []byte) (measure.Rings, error)       { return answerOf(b, ringWords, ringsOf) }
func parseChannels(b []byte) (measure.Channels, error) { return answerOf(b, channelWords, channelsOf) }
func parseCoalesce(b []byte) (measure.Coalesce, error) { return answerOf(b, coalesceWords, coalesceOf) }
func parsePause(b []byte) (measure.Pause, error)       { return answerOf(b, pauseWords, pauseOf) }
