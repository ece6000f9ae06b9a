//go:build unix

package iperf3

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"thru/internal/engine"
	"thru/internal/engine/enginetest"
	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/measure"
)

// lastOf returns the last of a session's updates.
func lastOf(t *testing.T, s engine.Session) engine.Update {
	t.Helper()
	us := enginetest.Finish(t, s)
	if len(us) == 0 {
		t.Fatal("no update came")
	}
	return us[len(us)-1]
}

// Whatever one end does, the other one fails soon, with the reason.
func TestEndsEarly(t *testing.T) {
	spec := short(measure.TCP, 2)
	spec.Duration = int64(time.Minute)
	kill := func(s engine.Session) error { return syscall.Kill(s.Process(), syscall.SIGKILL) }
	quit := func(s engine.Session) error { return s.Close() }
	for name, c := range map[string]struct {
		sends         bool
		calledSession bool // this end is the one that ends
		how           func(engine.Session) error
	}{
		"the client closes":        {sends: true, how: quit},
		"the server closes":        {sends: true, calledSession: true, how: quit},
		"a sending server closes":  {calledSession: true, how: quit},
		"the client's worker dies": {sends: true, how: kill},
		"the server's worker dies": {calledSession: true, how: kill},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, calledSession := newBench(t, ServerConfig{}).both(spec, c.sends, 0)
			ends, stays := client, calledSession
			if c.calledSession {
				ends, stays = calledSession, client
			}
			<-stays.Updates()
			if err := c.how(ends); err != nil {
				t.Fatal(err)
			}
			if u := lastOf(t, stays); u.Kind != engine.Failed {
				// A worker's death is reported by its own session.
				t.Errorf("the other end says %+v", u)
			}
			if e := stays.Evidence(); e.Error == "" {
				t.Error("the evidence does not say that it was cut short")
			}
		})
	}
}

func TestAmounts(t *testing.T) {
	for _, protocol := range []string{measure.TCP, measure.UDP} {
		for _, sends := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s %v", protocol, sends), func(t *testing.T) {
				t.Parallel()
				spec := short(protocol, 2)
				spec.Amount, spec.Duration, spec.Rate = 2_000_003, int64(limit), 50e6
				client, calledSession := newBench(t, ServerConfig{}).both(spec, sends, 0)
				a, b := finished(t, "client", client), finished(t, "server", calledSession)
				if sends && protocol == measure.TCP && (a.Bytes != b.Bytes || a.Bytes > spec.Amount+1000 || a.TotalBytes != b.TotalBytes) {
					t.Errorf("sent %d, received %d of %d", a.Bytes, b.Bytes, spec.Amount)
				}
				if a.Bytes < spec.Amount || b.Bytes < spec.Amount {
					t.Errorf("%d and %d of %d bytes", a.Bytes, b.Bytes, spec.Amount)
				}
			})
		}
	}
}

func TestRealAmounts(t *testing.T) {
	program(t)
	for _, args := range [][]string{
		{"-n", "3M"}, {"-n", "3M", "-R"}, {"-k", "20"}, {"-k", "20", "-R", "-P", "3"}, {"-n", "3M", "-P", "4", "-R"},
		{"-u", "-n", "1M", "-b", "20M"}, {"-u", "-k", "50", "-b", "20M", "-R"}, {"-n", "2M", "--bidir"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, ServerConfig{})
			testRecord := make(chan realReport, 1)
			go func() { testRecord <- realClient(t, b.port, nil, args...) }()
			s, call := b.answer()
			if call.Specs[0].Amount <= 0 {
				t.Errorf("the client wants %+v", call.Specs[0])
			}
			if err := <-begin(t, s, 0); err != nil {
				t.Fatal(err)
			}
			ours := finished(t, "server", s)
			if r := <-testRecord; r.Error != "" || r.End.Received.Bytes < 500_000 || ours.Bytes < 500_000 {
				t.Errorf("%q: %+v; ours %d bytes", r.Error, r.End, ours.Bytes)
			}
		})
	}
	for _, sends := range []bool{true, false} {
		port := realServer(t)
		spec := short(measure.TCP, 2)
		spec.Amount, spec.Duration = 3_000_001, int64(limit)
		s := newBench(t, ServerConfig{}).open(engine.End{Name: "client", Spec: spec, Sends: sends, Dials: true, Targets: []string{local(port)}})
		if err := <-begin(t, s, 0); err != nil {
			t.Fatal(err)
		}
		ours := finished(t, "client", s)
		if far, _ := s.Far(); far.Bytes < spec.Amount || ours.Bytes < spec.Amount {
			t.Errorf("sends %v: %d and %d of %d bytes", sends, ours.Bytes, far.Bytes, spec.Amount)
		}
	}
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// write writes a file for the real program.
func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// oaep reports whether the real program is version 3.17 or later, which uses the newer padding and has a time limit.
func oaep(t *testing.T) bool {
	t.Helper()
	out, err := exec.Command(program(t), "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(out), "iperf %d.%d", &major, &minor); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return major > 3 || minor >= 17
}

func TestRealAuthentication(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command(program(t), "--version").Output(); err == nil && !strings.Contains(string(out), "authentication") {
		t.Skip("this iperf3 was built without authentication")
	}
	private, public := keys(t)
	users := userLineOf("mario", "rossi")
	key, pub, list := write(t, "private.pem", private), write(t, "public.pem", public), write(t, "users", []byte(users))
	for password, good := range map[string]bool{"rossi": true, "verdi": false, "": false} {
		port := realServer(t, "--rsa-private-key-path", key, "--authorized-users-path", list)
		b := newBench(t, ServerConfig{})
		spec := short(measure.TCP, 1)
		login := engine.Login{User: "mario", Password: password, PublicKey: public, PKCS1: !oaep(t)}
		if password == "" {
			login = engine.Login{}
		}
		s := b.open(engine.End{Name: "client", Spec: spec, Sends: true, Dials: true, Targets: []string{local(port)}, Login: login})
		err := <-begin(t, s, 0)
		switch {
		case good && err != nil:
			t.Error(err)
		case good:
			finished(t, "client", s)
		case login.User == "":
			if err == nil || !strings.HasPrefix(fault.Hint(err), "give --username") {
				t.Errorf("no login: %v (%s)", err, fault.Hint(err))
			}
		case err == nil || !strings.Contains(err.Error(), "rejects this user"):
			t.Errorf("a wrong password: %v", err)
		}
	}
	known, err := ParseUsers(strings.NewReader(users))
	if err != nil {
		t.Fatal(err)
	}
	for password, good := range map[string]bool{"rossi": true, "verdi": false} {
		b := newBench(t, ServerConfig{Users: known, PrivateKey: private, PKCS1: !oaep(t)})
		testRecord := make(chan realReport, 1)
		go func() {
			testRecord <- realClient(t, b.port, []string{"IPERF3_PASSWORD=" + password}, "-t", "1", "-b", "50M", "--username", "mario", "--rsa-public-key-path", pub)
		}()
		if !good {
			if r := <-testRecord; !strings.Contains(r.Error, "authorization failed") {
				t.Errorf("a wrong password: the real client says %q", r.Error)
			}
			continue
		}
		s, call := b.answer()
		if !strings.HasSuffix(call.Program, "user mario") {
			t.Errorf("the call is of %q", call.Program)
		}
		if err := <-begin(t, s, 0); err != nil {
			t.Fatal(err)
		}
		finished(t, "server", s)
		if r := <-testRecord; r.Error != "" {
			t.Error(r.Error)
		}
	}
}

// The real client understands the refusals.
func TestRealRefusals(t *testing.T) {
	longSays := "int_errno=37" // versions without such a limit have no error for it
	if oaep(t) {
		longSays = "duration"
	}
	for _, c := range []struct {
		reason error
		limits Limits
		says   string
	}{
		{limits: Limits{Duration: time.Second}, says: longSays},
		{limits: Limits{RateBps: 1e6}, says: "server"},
		{reason: engine.ErrBusy, says: "busy"},
		{reason: errors.New("other"), says: "terminated"},
	} {
		b := newBench(t, ServerConfig{Limits: c.limits})
		testRecord := make(chan realReport, 1)
		go func() { testRecord <- realClient(t, b.port, nil, "-t", "2", "-b", "10M") }()
		if c.reason != nil {
			call := <-b.calls
			call.Refuse(c.reason)
			call.Refuse(c.reason) // has no effect
		}
		if r := <-testRecord; !strings.Contains(r.Error, c.says) {
			t.Errorf("%v, %+v: the real client says %q", c.reason, c.limits, r.Error)
		}
	}
}

// Several real clients at once, each with its own test.
func TestRealClientsAtOnce(t *testing.T) {
	program(t)
	t.Parallel()
	b := newBench(t, ServerConfig{})
	const n = 8
	testRecord := make(chan realReport, n)
	for i := range n {
		args := []string{"-t", "1", "-b", "5M", "-P", strconv.Itoa(1 + i%3)}
		if i%2 == 1 {
			args = append(args, "-u")
		}
		if i%4 > 1 {
			args = append(args, "-R")
		}
		go func() { testRecord <- realClient(t, b.port, nil, args...) }()
	}
	var sessions []engine.Session
	started := make(chan error, n)
	for range n {
		s, _ := b.answer()
		sessions = append(sessions, s)
		go func() { started <- s.Start(t.Context(), 0, host.PlacementFacts{}) }()
	}
	for range n {
		if err := <-started; err != nil {
			t.Error(err)
		}
	}
	for i, s := range sessions {
		e := finished(t, fmt.Sprint("server ", i), s)
		if asked := 5e6 * float64(len(e.Streams)); rate(e) < asked/4 || rate(e) > 2*asked {
			t.Errorf("test %d with %d streams: %.3g bit/s, asked for %.3g", i, len(e.Streams), rate(e), asked)
		}
	}
	for range n {
		if r := <-testRecord; r.Error != "" || 4*r.End.Received.Lost > r.End.Received.Packets {
			t.Errorf("a real client says %q, %+v", r.Error, r.End.Received)
		}
	}
}

// A flood of connections is limited, and a client among them is served.
func TestFlood(t *testing.T) {
	t.Parallel()
	b := newBench(t, ServerConfig{MaxCalls: 2})
	var held []net.Conn
	defer func() {
		for _, c := range held {
			c.Close()
		}
	}()
	dial := func(says string) net.Conn {
		c, err := net.Dial("tcp", b.target())
		if err != nil {
			t.Fatal(err)
		}
		c.Write([]byte(says))
		c.SetReadDeadline(time.Now().Add(limit))
		held = append(held, c)
		return c
	}
	for range mostFromOne {
		dial("")
	}
	if n, err := dial("").Read(make([]byte, 1)); n > 0 || isLate(err) {
		t.Errorf("one connection more than %d is taken: %v", mostFromOne, err)
	}
	for _, c := range held {
		c.Close()
	}
	heard := make([]byte, 1)
	for range mostFromOne / 2 { // a connection with only a cookie blocks nobody
		k := newCookie()
		for { // until the server has seen the others close
			if n, _ := dial(string(k[:])).Read(heard); n == 1 && state(heard[0]) == paramExchange {
				break
			}
		}
	}
	first, second := newCookie(), newCookie()
	dial(string(first[:]) + string(frame(plainTest)))
	<-b.calls // and waits for its turn: one address has half of the room
	c := dial(string(second[:]) + string(frame(plainTest)))
	c.Read(heard)
	if _, err := c.Read(heard); err != nil || state(heard[0]) != accessDenied {
		t.Errorf("a client too many hears %v, %v", state(heard[0]), err)
	}
}

// from is a connection from that address.
type from struct {
	net.Conn
	addr string
}

func (f from) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(f.addr)) }

// No address takes all the room, and a connection without a request takes none.
func TestRoom(t *testing.T) {
	d, err := NewServer(ServerConfig{MaxCalls: 5})
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range []struct {
		addr string
		good bool
	}{
		{"192.0.2.1:1", true}, {"192.0.2.1:2", true}, {"192.0.2.1:3", true}, {"192.0.2.1:4", false}, {"[::ffff:192.0.2.1]:5", false},
		{"192.0.2.2:1", true}, {"192.0.2.2:2", true}, {"192.0.2.3:1", false},
	} {
		for range 2 * d.conf.MaxCalls { // with other connections that send nothing
			c := newCall(d, newCookie(), from{addr: "192.0.2.9:9"})
			d.tokens[c.token] = c
		}
		c := newCall(d, newCookie(), from{addr: x.addr})
		d.tokens[c.token] = c
		if err := d.seat(c); (err == nil) != x.good || c.ready != x.good || err != nil && !errors.Is(err, engine.ErrBusy) {
			t.Errorf("call %d, %s: %v", i, x.addr, err)
		}
	}
}
