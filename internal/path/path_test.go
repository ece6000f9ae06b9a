package path

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/token"
)

// open starts an answering end on loopback that is closed with the test.
func open(t *testing.T, ctx context.Context, addr string) (*Responder, string) {
	t.Helper()
	r, err := Open(ctx, Listen{Addrs: []string{addr}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, net.JoinHostPort(addr, strconv.Itoa(r.Port()))
}

// TestFromWhere: the dialling end uses the given address and interface, for datagrams too.
func TestFromWhere(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux answers at all of 127.0.0.0/8, and binds to a device")
	}
	r, err := Open(t.Context(), Listen{Device: "lo"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	target := net.JoinHostPort("127.0.0.4", strconv.Itoa(r.Port()))
	p, err := Probe(t.Context(), Dial{Targets: []string{target}, Token: r.Token(), Quick: true, Source: "127.0.0.3", Device: "lo", Family: 4})
	if err != nil || p.FromAddr != "127.0.0.3" || p.ToAddr != "127.0.0.4" || p.Back.UDP == nil || p.Back.UDP.Got == 0 {
		t.Errorf("%+v: %v", p, err)
	}
	for _, d := range []Dial{{Source: "moon"}, {Source: "192.0.2.1"}, {Device: "no-such0"}, {Family: 6}} {
		d.Targets, d.Token = []string{target}, r.Token()
		if _, err := Probe(t.Context(), d); err == nil {
			t.Errorf("%+v: no error", d)
		}
	}
}

// introduced dials an answering end, and presents the token.
func introduced(t *testing.T, target, shown string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := introduce(c, shown); err != nil {
		t.Fatal(err)
	}
	return c
}

// leaks checks after all clean-up that no goroutine is left.
func leaks(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
}

// TestLoopback: on Linux no fact is missing but those that a quick probe leaves out and one that loopback hides; other systems report their part.
func TestLoopback(t *testing.T) {
	leaks(t)
	for _, addr := range []string{"127.0.0.1", "::1"} {
		for _, quick := range []bool{true, false} {
			r, target := open(t, t.Context(), addr)
			p, err := Probe(t.Context(), Dial{Targets: []string{"127.0.0.1:1", target}, Token: r.Token(), Quick: quick})
			if err != nil {
				t.Fatal(err)
			}
			<-r.Done()
			if p.RTT == nil || p.Clock == nil || p.ToAddr != addr || p.FromAddr != addr || p.SeenAs != "" || p.TakenAt == 0 {
				t.Errorf("%s: %+v", addr, p)
			}
			for _, w := range []measure.DirectionFacts{p.Forward, p.Back} {
				if w.UDP == nil || w.UDP.Got != w.UDP.Sent || w.Route == nil {
					t.Errorf("%s: %+v", addr, w)
				}
			}
			if runtime.GOOS == "linux" {
				checkLinux(t, p)
			}
		}
	}
}

// checkLinux checks the facts that only Linux reports.
func checkLinux(t *testing.T, p measure.Path) {
	t.Helper()
	for _, m := range p.Missing {
		if m.Fact != "handshake.synack_seen.mss_bytes" && (m.Fact != "source_ports" || !p.Quick) {
			t.Errorf("not checked: %+v", m)
		}
	}
	for _, w := range []measure.DirectionFacts{p.Forward, p.Back} {
		if w.MTU == nil || !w.MTU.Local || w.MTU.Bytes != w.MTU.Claimed || w.Hops == nil || *w.Hops != 0 || len(w.Marks) != len(marks()) {
			t.Errorf("%s: %+v %+v", p.ToAddr, w, w.MTU)
		}
	}
	if !p.Quick && (p.Ports == nil || p.Ports.Directions != 1) {
		t.Errorf("%s: source ports %+v", p.ToAddr, p.Ports)
	}
}

// TestLook checks what this end sees of a program that is not thru.
func TestLook(t *testing.T) {
	leaks(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, err := Look(t.Context(), Dial{Targets: []string{l.Addr().String()}})
	if err != nil || p.Forward.Route == nil || p.ToAddr != "127.0.0.1" {
		t.Errorf("%+v: %v", p, err)
	}
	if runtime.GOOS == "linux" && (p.Handshake.SYNSent == nil || p.Handshake.SYNACKSeen == nil || p.Handshake.SYNSeen != nil || p.Handshake.RTTNs == nil) {
		t.Errorf("handshake %+v", p.Handshake)
	}
	for _, fact := range []string{"rtt_idle", "clock_offset", "source_ports", "handshake.syn_seen", "forward.mtu", "back.mtu", "back.route", "back.udp"} {
		if !slices.ContainsFunc(p.Missing, func(m measure.NotChecked) bool { return m.Fact == fact && m.Why != "" }) {
			t.Errorf("nothing says why %s is missing: %+v", fact, p.Missing)
		}
	}
	if _, err := Look(t.Context(), Dial{Targets: []string{"127.0.0.1:1"}}); err == nil || fault.Hint(err) == "" {
		t.Errorf("nobody there: %v", err)
	}
}

// TestStrangers: a client without the token gets nothing, and blocks nobody.
func TestStrangers(t *testing.T) {
	leaks(t)
	r, target := open(t, t.Context(), "127.0.0.1")
	var strangers []net.Conn
	for _, says := range []string{"", "thru-p2\n", "GET / HTTP/1.1\r\n\r\n" + strings.Repeat("x", 100), "thru-p2\n" + strings.Repeat("x", 1<<16)} {
		c, err := net.Dial("tcp", target)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, says)
		strangers = append(strangers, c)
	}
	if _, err := Probe(t.Context(), Dial{Targets: []string{target}, Token: token.New(), Quick: true}); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("with another token: %v", err)
	}
	if _, err := Probe(t.Context(), Dial{Targets: []string{target}, Token: "0"}); err == nil {
		t.Error("a token that is none is taken")
	}
	if p, err := Probe(t.Context(), Dial{Targets: []string{target}, Token: r.Token(), Quick: true}); err != nil || p.RTT == nil {
		t.Errorf("the right one is kept out: %v, %+v", err, p)
	}
	<-r.Done()
	for _, c := range strangers {
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if n, _ := c.Read(make([]byte, 1)); n != 0 {
			t.Error("a stranger was answered")
		}
	}
}

// TestEnds: an answering end ends by itself, and frees its port.
func TestEnds(t *testing.T) {
	leaks(t)
	ctx, cancel := context.WithCancel(t.Context())
	r, target := open(t, ctx, "127.0.0.1")
	introduced(t, target, r.Token())
	cancel()
	<-r.Done()
	first, err := Open(t.Context(), Listen{Addrs: []string{"127.0.0.1"}, First: r.Port(), Last: r.Port()}, nil)
	if err != nil {
		t.Fatalf("the port is not free: %v", err)
	}
	defer first.Close()
	if _, err := Open(t.Context(), Listen{Addrs: []string{"127.0.0.1"}, First: r.Port(), Last: r.Port()}, nil); err == nil || fault.Hint(err) == "" {
		t.Errorf("a port in use: %v", err)
	}
	if _, err := Open(t.Context(), Listen{Addrs: []string{"192.0.2.1"}}, nil); err == nil || fault.Hint(err) == "" {
		t.Errorf("an address of another host: %v", err)
	}
}

// TestOtherUDPPort: where the UDP port of the same number is in use, another one of the range serves.
func TestOtherUDPPort(t *testing.T) {
	r, target := open(t, t.Context(), "127.0.0.1")
	u, err := net.ListenPacket("udp", target)
	if err != nil {
		t.Skip(err)
	}
	defer u.Close()
	p, err := Probe(t.Context(), Dial{Targets: []string{target}, Token: r.Token(), Quick: true})
	if err != nil || p.Forward.UDP == nil || p.Forward.UDP.Got == 0 || p.Back.UDP == nil || p.Back.UDP.Got == 0 {
		t.Errorf("%+v: %v", p, err)
	}
}

// hostile answers one connection with the token, and then runs then.
func hostile(t *testing.T, then func(net.Conn, *bufio.Reader)) Dial {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	shown := token.New()
	var wg sync.WaitGroup
	t.Cleanup(func() { l.Close(); wg.Wait() })
	wg.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if err := greet(c, shown); err == nil {
			then(c, bufio.NewReader(c))
		}
	})
	return Dial{Targets: []string{l.Addr().String()}, Token: shown, Quick: true}
}

// TestHostileAnswers: a wrong answer of the other end ends the probe with a reason for each fact, and no fact is invented.
func TestHostileAnswers(t *testing.T) {
	leaks(t)
	good := hello{Version: 1, Cookie: "0011223344556677", UDP: 9, Seen: "127.0.0.1", Claim: 1500}
	pong := func(c net.Conn, r *bufio.Reader, change func([]byte) []byte) {
		for {
			_, b, err := readFrame(r)
			if err != nil || len(b) != pingSize {
				return
			}
			writeFrame(c, framePong, change(append(b, make([]byte, 16)...)))
		}
	}
	same := func(b []byte) []byte { return b }
	for name, then := range map[string]func(net.Conn, *bufio.Reader){
		"hangs up":         func(net.Conn, *bufio.Reader) {},
		"garbage":          func(c net.Conn, _ *bufio.Reader) { fmt.Fprint(c, strings.Repeat("garbage ", 1000)) },
		"half a message":   func(c net.Conn, _ *bufio.Reader) { c.Write([]byte{frameJSON, 255, 255, '{'}) },
		"no JSON":          func(c net.Conn, _ *bufio.Reader) { writeFrame(c, frameJSON, bytes.Repeat([]byte("["), 60000)) },
		"no cookie":        func(c net.Conn, _ *bufio.Reader) { writeJSON(c, hello{UDP: 9, Claim: 1500}) },
		"a port too large": func(c net.Conn, _ *bufio.Reader) { writeJSON(c, hello{Cookie: good.Cookie, UDP: 65536 + 9}) },
		"echoes of nothing": func(c net.Conn, _ *bufio.Reader) {
			writeJSON(c, good)
			for range 100 {
				writeFrame(c, framePong, binary.BigEndian.AppendUint32(nil, 7))
			}
		},
		"echoes of others": func(c net.Conn, r *bufio.Reader) {
			writeJSON(c, good)
			pong(c, r, func(b []byte) []byte { b[3]++; return b })
		},
		"an old version": func(c net.Conn, r *bufio.Reader) {
			writeJSON(c, good)
			pong(c, r, same)
			writeJSON(c, reply{Unknown: true})
			readFrame(r) // until it disconnects
		},
		"a report of more than was sent": func(c net.Conn, r *bufio.Reader) {
			writeJSON(c, good)
			pong(c, r, same)
			writeJSON(c, reply{Report: &report{Sent: 100000}})
			readFrame(r)
		},
		"a report of other shots": func(c net.Conn, r *bufio.Reader) {
			writeJSON(c, good)
			pong(c, r, same)
			writeJSON(c, reply{Report: &report{Got: []arrival{{Shot: 99}}}})
			readFrame(r)
		},
		"silence": func(c net.Conn, r *bufio.Reader) { readFrame(r) },
		"silence after the hello": func(c net.Conn, r *bufio.Reader) {
			writeJSON(c, good)
			io.Copy(io.Discard, r)
		},
		"words for a terminal": func(c net.Conn, _ *bufio.Reader) {
			h := good
			h.UDP, h.NoUDP = 0, "\x1b[2J"+strings.Repeat("x", 9999)
			writeJSON(c, h)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // it ends the wait of silent peers
			defer cancel()
			p, err := Probe(ctx, hostile(t, then))
			if err != nil {
				t.Fatal(err)
			}
			for fact, known := range map[string]bool{"forward.mtu": p.Forward.MTU != nil, "back.mtu": p.Back.MTU != nil, "forward.udp": p.Forward.UDP != nil,
				"back.udp": p.Back.UDP != nil, "back.hops": p.Back.Hops != nil, "source_ports": p.Ports != nil} {
				i := slices.IndexFunc(p.Missing, func(m measure.NotChecked) bool { return m.Fact == fact })
				if known || i < 0 || p.Missing[i].Why == "" || len(p.Missing[i].Why) > 500 || strings.Contains(p.Missing[i].Why, "\x1b") {
					t.Errorf("%s: known %v, not checked %+v", fact, known, p.Missing)
				}
			}
		})
	}
}

// TestHostileQuestions: a request that no honest end sends ends the session.
func TestHostileQuestions(t *testing.T) {
	leaks(t)
	for name, ask := range map[string]string{
		"too many":       `{"volley":{"n":1,"sent":1,"send":[{"copies":100000}],"gap_us":0,"settle_us":1000}}`,
		"too large":      `{"volley":{"n":1,"sent":1,"send":[{"copies":1,"size":1000000}],"settle_us":1000}}`,
		"negative":       `{"volley":{"n":1,"sent":-1,"send":[{"copies":-1}],"settle_us":1000}}`,
		"endless":        `{"volley":{"n":1,"sent":1,"settle_us":99999999999}}`,
		"no JSON at all": `{"volley":`,
	} {
		r, target := open(t, t.Context(), "127.0.0.1")
		c := introduced(t, target, r.Token())
		in := bufio.NewReader(c)
		if err := readJSON(in, &hello{}); err != nil {
			t.Fatal(err)
		}
		writeFrame(c, frameJSON, []byte(ask))
		if err := readJSON(in, &reply{}); err == nil {
			t.Errorf("%s: it was answered", name)
		}
		<-r.Done()
	}
}

// TestLaterVersion: an unknown request gets a reply.
func TestLaterVersion(t *testing.T) {
	r, target := open(t, t.Context(), "127.0.0.1")
	c := introduced(t, target, r.Token())
	in := bufio.NewReader(c)
	readJSON(in, &hello{})
	for _, ask := range []func() error{
		func() error { return writeFrame(c, frameJSON, []byte(`{"teleport":{"to":"moon"}}`)) },
		func() error { return writeFrame(c, 'Z', []byte("zzz")) },
	} {
		var got reply
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		if err := readJSON(in, &got); err != nil || !got.Unknown {
			t.Errorf("%+v: %v", got, err)
		}
	}
}

// TestOnlyTheOtherHost: no datagram leaves before one with the cookie has arrived from the host that presented the token.
func TestOnlyTheOtherHost(t *testing.T) {
	r, target := open(t, t.Context(), "127.0.0.1")
	c := introduced(t, target, r.Token())
	in := bufio.NewReader(c)
	var h hello
	if err := readJSON(in, &h); err != nil {
		t.Fatal(err)
	}
	cookie, err := hex.DecodeString(h.Cookie)
	if err != nil {
		t.Fatal(err)
	}
	// Another address of this host, which has not presented the token.
	u, err := net.DialUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2)}, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: h.UDP})
	if err != nil {
		t.Skip(err)
	}
	defer u.Close()
	u.Write(appendDatagram(nil, cookie, datagram{kind: kindForward, round: 1}))
	u.Write(appendDatagram(nil, cookie, datagram{kind: kindAsk, round: 1}))
	v := volley{Number: 1, Sent: 1, Send: []shot{{Copies: 1}}, SettleUs: 100_000}
	if err := writeJSON(c, request{Volley: &v}); err != nil {
		t.Fatal(err)
	}
	var got reply
	if err := readJSON(in, &got); err != nil || got.Report == nil || !got.Report.NoPeer {
		t.Errorf("%+v: %v", got, err)
	}
	u.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := u.Read(make([]byte, 100)); err == nil {
		t.Errorf("a stranger was sent %d bytes", n)
	}
	// The address that has presented it.
	u, err = net.DialUDP("udp", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: h.UDP})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	u.Write(appendDatagram(nil, cookie, datagram{kind: kindForward, round: 2}))
	v.Number = 2
	if err := writeJSON(c, request{Volley: &v}); err != nil {
		t.Fatal(err)
	}
	if err := readJSON(in, &got); err != nil || got.Report.Sent != 1 || len(got.Report.Got) != 1 {
		t.Errorf("%+v: %v", got.Report, err)
	}
}

// FuzzFrames: no bytes of a peer do harm.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("J\x00\x02{}p\x00\x14aaaabbbbbbbbcccccccc"))
	f.Add([]byte(`J` + "\x00\x50" + `{"report":{"got":[{"s":1,"o":-1,"t":64}],"sent":3,"refused":[0],"router":1400}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(bytes.NewReader(b))
		for {
			kind, payload, err := readFrame(r)
			if err != nil {
				return
			}
			if kind == framePong {
				p := pinger{began: make(chan time.Time, 1), free: make(chan struct{}, 1)}
				p.began <- time.Now()
				p.free <- struct{}{}
				var again bytes.Buffer
				writeFrame(&again, kind, payload)
				trips, _ := p.receive(bufio.NewReader(&again))
				distribution(trips)
				clockOffset(trips)
			}
			var q request
			if decode(payload, &q) == nil && q.Volley != nil && q.Volley.check() == nil {
				for _, s := range q.Volley.Send {
					if s.Copies < 1 || s.Size < 0 || s.Size > maxPacket {
						t.Errorf("%+v is let through", s)
					}
				}
			}
			var a reply
			d := newDirection("forward", 1500, 0, 44)
			if decode(payload, &a) == nil && a.Report != nil {
				if shots := d.load(2); a.Report.check(shots, shots) == nil {
					d.take(*a.Report, a.Report.Got)
					d.facts(&measure.DirectionFacts{}, func(string, string) {})
				}
			}
			var h hello
			if decode(payload, &h) == nil && h.check() == nil && (h.UDP < 0 || len(h.NoUDP) > 300 || strings.ContainsRune(h.NoRoute, '\n')) {
				t.Errorf("%+v is let through", h)
			}
		}
	})
}

// FuzzDatagram: only datagrams with the cookie are accepted.
func FuzzDatagram(f *testing.F) {
	cookie := []byte("abcdefgh")
	f.Add(appendDatagram(nil, cookie, datagram{kindBack, 64, 7, 9}))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, ok := parseDatagram(b, cookie)
		if ok && !bytes.HasPrefix(b, appendDatagram(nil, cookie, d)) {
			t.Errorf("%x was read as %+v", b, d)
		}
	})
}
