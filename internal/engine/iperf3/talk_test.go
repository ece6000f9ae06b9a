//go:build unix

package iperf3

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"thru/internal/engine"
	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/measure"
)

// still is a data session that moves nothing and obeys at once: for the protocol around a test, without a process.
type still struct {
	task    worker.Task
	updates chan engine.Update
	stopped chan struct{}
	mu      sync.Mutex
	over    bool
	tasks   sync.WaitGroup
}

func newStill(t worker.Task) (dataSession, error) {
	return &still{task: t, updates: make(chan engine.Update, 1), stopped: make(chan struct{})}, nil
}

func (s *still) Ready() engine.Ready             { return engine.Ready{} }
func (s *still) Joined(context.Context) error    { return nil }
func (s *still) Updates() <-chan engine.Update   { return s.updates }
func (s *still) DataSince(time.Time)             {}
func (s *still) Process() int                    { return 0 }
func (s *still) Stopped() <-chan struct{}        { return s.stopped }
func (s *still) Far() (far, b *measure.Evidence) { return nil, nil }

func (s *still) Take(_ context.Context, conns []worker.Conn) error {
	closeAll(conns)
	return nil
}

func (s *still) Start(context.Context, time.Duration, host.PlacementFacts) error {
	if s.task.Leads {
		close(s.stopped)
	}
	return nil
}

func (s *still) Enough() error {
	s.tasks.Go(func() { s.end(s.task.Conclude()) })
	return nil
}

func (s *still) Abort(err error) { s.end(err) }

func (s *still) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	u := engine.Update{Kind: engine.Done}
	if err != nil {
		u = engine.Update{Kind: engine.Failed, Err: err}
	}
	s.updates <- u
	close(s.updates)
}

func (s *still) Evidence() measure.Evidence {
	n := s.task.End.Spec.Streams
	return measure.Evidence{Sends: s.task.End.Sends, Dialled: s.task.End.Dials, MeasuredNs: 1e9, Streams: make([]measure.Stream, n)}
}

func (s *still) Back() (measure.Evidence, bool) {
	e := s.Evidence()
	e.Sends = !e.Sends
	return e, s.task.End.Spec.Duplex
}

func (s *still) Close() error {
	s.end(errors.New("closed"))
	s.tasks.Wait()
	return nil
}

// brief returns timeouts for peers that send nothing.
func brief(each time.Duration) waits {
	return waits{word: each, begin: 4 * each, stream: each, hello: each / 4, turn: 4 * each, grace: each, goodbye: each}
}

// Timeouts for tests of silence, and for tests of invalid input.
const (
	silence  = 50 * time.Millisecond
	nonsense = 10 * time.Millisecond
)

// Conversations of a client with our server, and their outcome.
const (
	plainTest = `{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":131072}`
	plainEnd  = `{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":0,"sender_has_retransmits":0,"streams":[{"id":1,"bytes":5,"retransmits":0,"jitter":0,"errors":0,"packets":0}]}`
)

// hold runs a server with these timeouts whose calls are answered without a worker.
func hold(t testing.TB, bounds waits) (addr string, ends func() []error) {
	t.Helper()
	d, err := NewServer(ServerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	d.wait = bounds
	e := Engine{Server: d, adopt: newStill}
	ports := anyPort(t)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []error
	wg.Go(func() {
		d.Serve(ctx, ports, func(c engine.Call) {
			wg.Go(func() {
				err := answered(e, c)
				mu.Lock()
				defer mu.Unlock()
				all = append(all, err)
			})
		})
	})
	return ports.TCP[0].Addr().String(), func() []error {
		cancel()
		wg.Wait()
		if len(d.calls)+len(d.tokens)+d.unnamed.Size()+len(d.opening) > 0 {
			t.Errorf("the server still holds %d calls, %d tokens, %d strangers, %d that open", len(d.calls), len(d.tokens), d.unnamed.Size(), len(d.opening))
		}
		return all
	}
}

// answered runs a call's test to its end.
func answered(e Engine, c engine.Call) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	s, err := e.Open(ctx, engine.End{Spec: c.Specs[0], Sends: c.Specs[0].From == "local", Token: c.Token})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Start(ctx, 0, host.PlacementFacts{}); err != nil {
		return err
	}
	select {
	case u := <-s.Updates():
		return u.Err
	case <-ctx.Done():
		return errors.New("the session does not end")
	}
}

// converse sends a peer's bytes to our server on a control connection, and opens a data connection when allowed; it returns when the server has closed.
func converse(t testing.TB, addr string, says []byte) (heard []byte) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	var data net.Conn
	defer func() {
		if data != nil {
			data.Close()
		}
	}()
	go conn.Write(says)
	b := make([]byte, 512)
	for {
		n, err := conn.Read(b)
		heard = append(heard, b[:n]...)
		for _, x := range b[:n] {
			if state(x) == createStreams && data == nil && len(says) >= cookieSize {
				if data, err = net.Dial("tcp", addr); err == nil {
					data.Write(says[:cookieSize])
				}
			}
		}
		if err != nil {
			if errors.Is(err, context.DeadlineExceeded) || isLate(err) {
				t.Errorf("%q: the server keeps the connection", says)
			}
			return heard
		}
	}
}

// letter returns a cookie, and what follows it.
func letter(parts ...string) []byte {
	b := []byte("abcdefghijklmnopqrstuvwxyz234567abcd\x00")
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

func TestServerTalk(t *testing.T) {
	defer goleak.VerifyNone(t)
	whole := letter(string(frame(plainTest)))
	for _, c := range []struct {
		name  string
		says  []byte
		heard string // its first bytes
		last  byte   // the server's last state, or the one before its error numbers
	}{
		{"nothing", nil, "", 0},
		{"another protocol", []byte("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n\r\n"), "", 0},
		{"half a cookie", letter()[:20], "", 0},
		{"a cookie alone", letter(), "\x09", 0xfe},
		{"a frame too long", letter("\xff\xff\xff\xff"), "\x09\xfe\x00\x00\x00\x72", 0},
		{"half a frame", letter(string(frame(plainTest))[:20]), "\x09\xfe\x00\x00\x00\x72", 0},
		{"deep JSON", letter(string(frame("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["))), "\x09\xfe\x00\x00\x00\x72", 0},
		{"no number", letter(string(frame(`{"tcp":true,"time":-1}`))), "\x09\xfe\x00\x00\x00\x05", 0},
		{"sctp", letter(string(frame(`{"sctp":true}`))), "\x09\xfe\x00\x00\x00\x83", 0},
		{"the end before the beginning", append(whole, 4), "\x09", 0},
		{"an unknown state", append(whole, 77), "\x09", 0},
		{"silence after the parameters", whole, "\x09\x0a\x01\x02\xfe\x00\x00\x00\xa0", 0},
		{"udp without datagrams", letter(string(frame(`{"udp":true,"time":1,"parallel":1}`))), "\x09\x0a\xfe\x00\x00\x00\xcc", 0},
	} {
		addr, ends := hold(t, brief(silence))
		started := time.Now()
		heard := string(converse(t, addr, c.says))
		if len(heard) < len(c.heard) || heard[:len(c.heard)] != c.heard || c.last != 0 && (len(heard) < 2 || heard[1] != c.last) {
			t.Errorf("%s: the server sends %q", c.name, heard)
		}
		for _, err := range ends() {
			if err == nil {
				t.Errorf("%s: the test went well", c.name)
			}
		}
		if d := time.Since(started); d > 9*time.Second {
			t.Errorf("%s: took %v", c.name, d)
		}
	}
}

// Each client that is turned away before it is a call is reported once, and no other is.
func TestRefusalIsReported(t *testing.T) {
	private, _ := keys(t)
	for _, c := range []struct {
		name, says string
		conf       ServerConfig
		want       string // empty: no report
	}{
		{name: "who only looks"},
		{name: "another protocol", says: "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n\r\n", want: "not an iperf3 client"},
		{name: "half a cookie", says: "abc", want: "reading a cookie"},
		{name: "no login", says: string(letter(string(frame(plainTest)))), conf: ServerConfig{PrivateKey: private}, want: "no user and password"},
		{name: "too long", says: string(letter(string(frame(plainTest)))), conf: ServerConfig{Limits: Limits{Duration: 1}}, want: "exceed the limit"},
		{name: "a call that is refused", says: string(letter(string(frame(plainTest))))},
	} {
		testRecord := make(chan string, 8)
		c.conf.Refused = func(addr string, reason error) { testRecord <- addr + ": " + reason.Error() }
		d, err := NewServer(c.conf)
		if err != nil {
			t.Fatal(err)
		}
		d.now = func() time.Time { return time.Unix(0, 0) } // no second passes
		port := serve(t, d, func(call engine.Call) { call.Refuse(engine.ErrBusy) })
		for range 2 {
			conn, err := net.Dial("tcp", local(port))
			if err != nil {
				t.Fatal(err)
			}
			conn.Write([]byte(c.says))
			conn.(*net.TCPConn).CloseWrite()
			conn.SetReadDeadline(time.Now().Add(limit))
			io.Copy(io.Discard, conn) // until the server has closed it
			conn.Close()
		}
		if c.want != "" {
			if s := <-testRecord; !strings.HasPrefix(s, "127.0.0.1:") || !strings.Contains(s, c.want) {
				t.Errorf("%s: reported %q", c.name, s)
			}
		}
		if len(testRecord) > 0 {
			t.Errorf("%s: reported %q", c.name, <-testRecord)
		}
	}
}

// upToResults runs a test with our server up to the point where it wants the results.
func upToResults(t *testing.T, addr string) (conn net.Conn, expect func(want string)) {
	t.Helper()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(limit))
		c.Write(letter())
		return c
	}
	conn = dial()
	expect = func(want string) {
		t.Helper()
		b := make([]byte, len(want))
		if _, err := io.ReadFull(conn, b); err != nil || string(b) != want {
			t.Fatalf("the server sends %q, %v; want %q", b, err, want)
		}
	}
	expect("\x09")
	conn.Write(frame(plainTest))
	expect("\x0a")
	dial()
	expect("\x01\x02")
	conn.Write([]byte{4})
	expect("\x0d")
	return conn, expect
}

// A whole test, message by message.
func TestServerTalksToTheEnd(t *testing.T) {
	defer goleak.VerifyNone(t)
	addr, ends := hold(t, usual())
	conn, expect := upToResults(t, addr)
	conn.Write(frame(plainEnd))
	b, err := readFrame(conn, mostResults)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readResults(b, []int{1}, 0); err != nil {
		t.Error(err)
	}
	expect("\x0e")
	conn.Write([]byte{16})
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after the farewell: %d, %v", n, err)
	}
	if all := ends(); len(all) != 1 || all[0] != nil {
		t.Errorf("the test ended with %v", all)
	}
}

// The server does not read results larger than any client's.
func TestServerReadsNoLongResults(t *testing.T) {
	defer goleak.VerifyNone(t)
	addr, ends := hold(t, brief(silence))
	conn, _ := upToResults(t, addr)
	conn.Write(binary.BigEndian.AppendUint32(nil, uint32(mostResultBytes(1)+1)))
	conn.Read(make([]byte, 1))
	if all := ends(); len(all) != 1 || all[0] == nil || !strings.Contains(all[0].Error(), "is outside 1 to") {
		t.Errorf("the test ended with %v", all)
	}
}

// FuzzServerTalk: whatever a client sends, the server ends in limited time and keeps nothing of it.
func FuzzServerTalk(f *testing.F) {
	whole := string(frame(plainTest))
	f.Add(letter())
	f.Add(letter(whole))
	f.Add(letter(whole, "\x04", string(frame(plainEnd)), "\x10"))
	f.Add(letter(whole, "\x0c"))
	f.Add(letter(string(frame(`{"udp":true,"reverse":true,"time":1,"parallel":2,"len":100}`)), "\x04"))
	f.Add([]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"))
	f.Fuzz(func(t *testing.T, b []byte) {
		addr, ends := hold(t, brief(nonsense))
		converse(t, addr, b)
		ends()
	})
}

// clientTalk runs our client with a server that sends b, and returns how that ends.
func clientTalk(t testing.TB, b []byte, spec measure.Spec, bounds waits) error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for first := true; ; first = false {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if first {
				c.Write(b)
			}
			wg.Go(func() { // reads to the end, and sends nothing more
				io.Copy(io.Discard, c)
				c.Close()
			})
		}
	})
	defer wg.Wait()
	defer l.Close()
	e := Engine{adopt: newStill, bounds: &bounds}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	s, err := e.Open(ctx, engine.End{Spec: spec, Sends: true, Dials: true, Targets: []string{l.Addr().String()}})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Start(ctx, 0, host.PlacementFacts{}); err != nil {
		return err
	}
	select {
	case u := <-s.Updates():
		return u.Err
	case <-ctx.Done():
		t.Errorf("%q: the session does not end", b)
		return ctx.Err()
	}
}

func TestClientTalk(t *testing.T) {
	defer goleak.VerifyNone(t)
	whole := "\x09\x0a\x01\x02"
	for says, want := range map[string]string{
		"":                                     "sends nothing",
		"HTTP/1.1 400 Bad Request\r\n\r\n":     `"HTTP/1.1 400 Bad Request"`,
		"SSH-2.0-OpenSSH_9.2\r\n":              `"SSH-2.0-OpenSSH_9.2"`,
		"\xff":                                 "busy",
		"\xfe\x00\x00\x00\x8e\x00\x00\x00\x00": "rejects this user",
		"\x09\xfe\x00\x00\x00\x8e\x00\x00\x00\x00": "requires a login",
		"\x09":     "CREATE_STREAMS",
		"\x09\x0a": "TEST_RUNNING",
		"\x09\x01": "sent TEST_START, expected CREATE_STREAMS",
		"\x09\xfe\x00\x00\x00\x25\x00\x00\x00\x00": "the server's time limit",
		"\x09\x0b":     "stopped there",
		whole:          "does not send its results",
		whole + "\x0e": "sent DISPLAY_RESULTS, expected EXCHANGE_RESULTS",
		whole + "\x0b": "stopped there",
	} {
		err := clientTalk(t, []byte(says), short(measure.TCP, 1), brief(silence))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", says, err, want)
		}
		reason := map[string]fault.Reason{"busy": ReasonBusy, "rejects this user": ReasonLogin, "requires a login": ReasonLogin, "stopped there": ReasonTerminated}[want]
		if got := fault.ReasonOf(err); reason != "" && got != reason {
			t.Errorf("%q: the reason is %q, want %q", says, got, reason)
		}
	}
}

// FuzzClientTalk: whatever a server sends, the client ends in limited time.
func FuzzClientTalk(f *testing.F) {
	whole := "\x09\x0a\x01\x02\x0d"
	f.Add([]byte(whole+string(frame(plainEnd))+"\x0e"), false)
	f.Add([]byte("\x09\x0a\x01\x02"), true)
	f.Add([]byte("\x09\xfe\x00\x00\x00\x25"), false)
	f.Add([]byte("\xff"), false)
	f.Add([]byte("220 ready\r\n"), true)
	f.Fuzz(func(t *testing.T, b []byte, udp bool) {
		spec := short(measure.TCP, 1)
		if udp {
			spec = short(measure.UDP, 1)
		}
		clientTalk(t, b, spec, brief(nonsense))
	})
}
