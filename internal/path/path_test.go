package path

import (
	"context"
	"encoding/json"
	"net"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"thru/internal/measure"
)

// over opens an answering end and probes it.
func over(t *testing.T, addr string, quick bool) measure.Path {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := Open(ctx, Listen{Addrs: []string{addr}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := Probe(ctx, Dial{Targets: []string{net.JoinHostPort(addr, strconv.Itoa(r.Port()))}, Token: r.Token(), Quick: quick})
	if err != nil {
		t.Fatal(err)
	}
	<-r.Done()
	return p
}

func TestLoopback(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, addr := range []string{"127.0.0.1", "::1"} {
		for _, quick := range []bool{true, false} {
			began := time.Now()
			p := over(t, addr, quick)
			b, _ := json.MarshalIndent(p, "", " ")
			t.Logf("%v %s", time.Since(began), b)
		}
	}
}
