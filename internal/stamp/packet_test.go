package stamp

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// worked has one of each packet, with a value in every field.
func worked() (Request, Reply) {
	m := Request{Sequence: 0x01020304, At: 0x1112131415161718, Error: 0x8101, SSID: 0x2122}
	r := Reply{Received: 0x3132333435363738, Of: m, SenderTTL: 0x40}
	r.Request = Request{Sequence: 0x51525354, At: 0x6162636465666768, Error: 0x8202, SSID: 0x2122}
	return m, r
}

// TestLayout compares with bytes written by the figures of RFC 8762, 4.2 and 4.3, and RFC 8972, 3.
func TestLayout(t *testing.T) {
	const zeros = "00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
	z := func(n int) string { return zeros[:2*n] }
	m, r := worked()
	for _, tt := range []struct {
		name string
		key  []byte
		put  func(b []byte, k *Key)
		want string
	}{
		{"request", nil, m.Put, "01020304" + "1112131415161718" + "8101" + "2122" + z(28)},
		{"reply", nil, r.Put, "51525354" + "6162636465666768" + "8202" + "2122" + "3132333435363738" + "01020304" + "1112131415161718" + "8101" + z(2) + "40" + z(3)},
		{"authenticated request", []byte("key"), m.Put, "01020304" + z(12) + "1112131415161718" + "8101" + "2122" + z(68)},
		{"authenticated reply", []byte("key"), r.Put, "51525354" + z(12) + "6162636465666768" + "8202" + "2122" + z(4) + "3132333435363738" + z(8) +
			"01020304" + z(12) + "1112131415161718" + "8101" + z(6) + "40" + z(15)},
	} {
		want, err := hex.DecodeString(tt.want)
		if err != nil {
			t.Fatal(err)
		}
		k := NewKey(tt.key)
		if k != nil {
			h := hmac.New(sha256.New, tt.key)
			h.Write(want)
			want = h.Sum(want)[:len(want)+16]
		}
		b := make([]byte, SizeOf(k))
		tt.put(b, k)
		if !bytes.Equal(b, want) {
			t.Errorf("%s:\n%x\nwant\n%x", tt.name, b, want)
		}
		if !k.Verify(b) {
			t.Errorf("%s: its own HMAC is refused", tt.name)
		}
	}
}

// TestRoundTrip: what is written is read again, with padding and without; the reply has the size of the request, and its padding is recognized.
func TestRoundTrip(t *testing.T) {
	m, r := worked()
	for _, key := range []*Key{nil, NewKey([]byte("a key"))} {
		base := SizeOf(key)
		for _, n := range []int{base, base + 4, base + 100, 1472, maxPacket} {
			b := make([]byte, n)
			m.Put(b, key)
			got, err := ParseRequest(b, key != nil)
			if err != nil || got != m || isReply(b, key != nil) {
				t.Errorf("%d bytes: %+v, %v", n, got, err)
			}
			size := len(b)
			r.Put(b, key)
			back, err := ParseReply(b, key != nil)
			if err != nil || back != r || len(b) != size || !key.Verify(b) || !isReply(b, key != nil) {
				t.Errorf("%d bytes: %+v, %v", n, back, err)
			}
			if len(b) > base && b[base] != 0 {
				t.Errorf("%d bytes: the padding has the flags %#x", n, b[base])
			}
		}
	}
}

// TestForged: no byte that the HMAC covers may change.
func TestForged(t *testing.T) {
	m, _ := worked()
	k := NewKey([]byte("key"))
	b := make([]byte, AuthenticatedSize+20)
	m.Put(b, k)
	for i := range AuthenticatedSize {
		b[i] ^= 1
		if k.Verify(b) {
			t.Errorf("byte %d may change", i)
		}
		b[i] ^= 1
	}
	if !k.Verify(b) || k.Verify(b[:AuthenticatedSize-1]) || NewKey([]byte("other")).Verify(b) {
		t.Error("the packet itself is refused, or a cut one or another key accepted")
	}
}

// TestTLVs: a reflector flags what it does not know, and what is cut.
func TestTLVs(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"padding", "80010002abcd", "00010002abcd"},
		{"unknown, then padding", "80040004aabbccdd80010000", "80040004aabbccdd00010000"},
		{"cut", "80010003abcd", "40010003abcd"},
		{"unknown and cut", "80ff0003abcd", "c0ff0003abcd"},
		{"no whole header", "800100", "800100"},
		{"nothing", "", ""},
	} {
		b, _ := hex.DecodeString(tt.in)
		answerTLVs(b)
		if got := hex.EncodeToString(b); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestNoAllocation: a packet costs no memory.
func TestNoAllocation(t *testing.T) {
	m, r := worked()
	for _, key := range []*Key{nil, NewKey([]byte("key"))} {
		b := make([]byte, SizeOf(key)+50)
		if n := testing.AllocsPerRun(100, func() {
			m.Put(b, key)
			ParseRequest(b, key != nil)
			r.Put(b, key)
			ParseReply(b, key != nil)
			key.Verify(b)
		}); n != 0 {
			t.Errorf("with key: %v: %v allocations", key != nil, n)
		}
	}
}

// FuzzPacket: whatever arrives is answered by a packet of its own size, or not at all.
func FuzzPacket(f *testing.F) {
	m, r := worked()
	for _, key := range []*Key{nil, NewKey([]byte("key"))} {
		b := make([]byte, SizeOf(key)+12)
		m.Put(b, key)
		f.Add(bytes.Clone(b))
		r.Put(b, key)
		f.Add(bytes.Clone(b))
	}
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		k := NewKey([]byte("key"))
		k.Verify(b)
		for _, authenticated := range []bool{false, true} {
			in := bytes.Clone(b)
			m, err := ParseRequest(in, authenticated)
			if (err == nil) != (len(b) >= layoutOf(authenticated).size) {
				t.Fatalf("%d bytes: %v", len(b), err)
			}
			if err != nil {
				continue
			}
			var key *Key
			if authenticated {
				key = k
			}
			want := Reply{Request: Request{Sequence: 7, At: 9, Error: Unsynced, SSID: m.SSID}, Received: 8, Of: m, SenderTTL: 3}
			want.Put(in, key)
			if got, err := ParseReply(in, authenticated); err != nil || got != want {
				t.Errorf("%+v, want %+v: %v", got, want, err)
			}
		}
	})
}

// TestTimestamp: times in both formats, and in both eras of NTP.
func TestTimestamp(t *testing.T) {
	for _, at := range []time.Time{
		time.Date(2026, 11, 28, 22, 0, 0, 123456789, time.UTC), time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2036, 2, 7, 6, 28, 15, 999999999, time.UTC), time.Date(2036, 2, 7, 6, 28, 16, 1, time.UTC), time.Date(2050, 1, 1, 0, 0, 0, 5, time.UTC),
	} {
		if d := StampOf(at).Time(Unsynced).Sub(at); d.Abs() > 1 {
			t.Errorf("%v is off by %v", at, d)
		}
	}
	if s := StampOf(time.Date(1900+70, 1, 1, 0, 0, 0, 5e8, time.UTC)); s != 0x83aa7e80_80000000 {
		t.Errorf("1970 is %#x", uint64(s))
	}
	ptp := Timestamp(uint64(1800000000)<<32 | 123456789)
	if at := ptp.Time(errorPTP); !at.Equal(time.Unix(1800000000, 123456789)) {
		t.Errorf("PTP: %v", at)
	}
	if at := Timestamp(0xffffffff).Time(errorPTP); at.Nanosecond() != 999999999 {
		t.Errorf("an impossible fraction: %v", at)
	}
}

// TestError: an estimate is never less than the bound, and at most 1% and 1 ns more.
func TestError(t *testing.T) {
	if Unsynced.Bound() != time.Second || Unsynced&errorSynced != 0 {
		t.Errorf("Unsynced is %v", Unsynced.Bound())
	}
	for _, d := range []time.Duration{0, 1, 2, 59, 60, 61, 999, time.Microsecond, 12345 * time.Nanosecond, time.Millisecond, time.Second, time.Hour} {
		e := ErrorOf(d)
		if got := e.Bound(); got < d-1 || got > d+d/100+1 || e&errorSynced == 0 || e&0xff == 0 || e.isPTP() {
			t.Errorf("%v becomes %#x: %v", d, uint16(e), got)
		}
	}
	if e := Error(63<<8 | 255); e.Bound() != math.MaxInt64 {
		t.Errorf("the largest: %v", e.Bound())
	}
}
