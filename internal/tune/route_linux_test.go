package tune

import (
	"testing"

	"golang.org/x/sys/unix"
)

// recorded is the answer to RTM_GETROUTE for `10.8.0.0/16 via 10.7.0.2 dev 3
// metric 7 mtu 1400 congctl reno`, on a machine of small ends.
func recorded() []byte {
	return []byte{
		2, 16, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0,
		8, 0, 15, 0, 254, 0, 0, 0, 8, 0, 1, 0, 10, 8, 0, 0, 8, 0, 6, 0, 7, 0, 0, 0,
		24, 0, 8, 0, 8, 0, 2, 0, 120, 5, 0, 0, 9, 0, 16, 0, 'r', 'e', 'n', 'o', 0, 0, 0, 0,
		8, 0, 5, 0, 10, 7, 0, 2, 8, 0, 4, 0, 3, 0, 0, 0,
	}
}

func TestParseRoute(t *testing.T) {
	r, err := parseRoute(recorded())
	if err != nil {
		t.Fatal(err)
	}
	cc, err := r.congestion()
	if key := r.key("v0"); key != "10.8.0.0/16 dev v0 table main metric 7" || cc != "reno" || err != nil || r.number(unix.RTA_OIF) != 3 || r.restorable() != nil {
		t.Errorf("%s, %q, %v, interface %d", key, cc, err, r.number(unix.RTA_OIF))
	}
	if _, err := parseRoute(recorded()[:11]); err == nil {
		t.Error("a short answer is one")
	}
	if _, err := parseRoute(recorded()[:42]); err == nil {
		t.Error("an answer cut in an attribute is one")
	}
}

func FuzzRoute(f *testing.F) {
	f.Add(recorded())
	f.Fuzz(func(_ *testing.T, b []byte) {
		r, err := parseRoute(b)
		if err != nil {
			return
		}
		_, _ = r.congestion()
		_, _, _ = r.key("v0"), r.restorable(), r.alone([]route{r, r})
	})
}
