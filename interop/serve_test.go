//go:build interop

package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
)

// thruServer is `thru serve --iperf` in a host.
type thruServer struct{ *program }

// serveLimit is longer than all tests with one server.
const serveLimit = 20 * time.Minute

// servedPort returns thru's port for a kind of client.
func servedPort(name string) int {
	if kind(name) == IPerf2 {
		return 5001
	}
	return 5201
}

func serve(t *testing.T, h *lab.Host) thruServer {
	t.Helper()
	p := start(t, h, serveLimit, lab.Binary(t), "serve", "--no-auth", "--iperf", "--json", "--results", t.TempDir())
	lab.Eventually(t, 15*time.Second, "thru serves", func() bool {
		select {
		case <-p.ended:
			t.Fatalf("%s has ended\n%s", p, p.said())
		default:
		}
		return bytes.Contains(p.stdout.bytes(), []byte(`"ready":true`))
	})
	return thruServer{p}
}

// record is the line that the server prints about each test.
type record struct {
	Caller string         `json:"caller"`
	Kept   string         `json:"kept_in"`
	Error  *measure.Error `json:"error"`
}

// records returns the lines printed so far.
func (s thruServer) records() []record {
	var all []record
	in := bufio.NewScanner(bytes.NewReader(s.stdout.bytes()))
	for in.Scan() {
		var r record
		if err := json.Unmarshal(in.Bytes(), &r); err == nil && strings.Contains(r.Caller, "://") {
			all = append(all, r)
		}
	}
	return all
}

// told returns how many tests the server has reported.
func (s thruServer) told() int { return len(s.records()) }

// report reads the result of the n-th test that the server stored.
func (s thruServer) report(n int) (Report, error) {
	return s.find(func(all []record) (record, bool) {
		if len(all) <= n {
			return record{}, false
		}
		return all[n], true
	})
}

// reportOf reads the result of the client with that address, after the first ones.
func (s thruServer) reportOf(addr string, first int) (Report, error) {
	return s.find(func(all []record) (record, bool) {
		for _, r := range all[min(first, len(all)):] {
			if strings.HasSuffix(r.Caller, "//"+addr) {
				return r, true
			}
		}
		return record{}, false
	})
}

// find waits for a test, and reads its result.
func (s thruServer) find(which func([]record) (record, bool)) (Report, error) {
	r, found := which(s.records())
	for deadline := time.Now().Add(10 * time.Second); !found; r, found = which(s.records()) {
		if time.Now().After(deadline) {
			return Report{}, fmt.Errorf("thru serve tells of no test\n%s", s.said())
		}
		time.Sleep(50 * time.Millisecond)
	}
	if r.Error != nil {
		return Report{}, fmt.Errorf("thru serve says: %s", r.Error.Message)
	}
	text, err := os.ReadFile(r.Kept)
	if err != nil {
		return Report{}, err
	}
	var d measure.Document
	if err := json.Unmarshal(text, &d); err != nil {
		return Report{}, err
	}
	return ThruReport(&d, true), nil
}
