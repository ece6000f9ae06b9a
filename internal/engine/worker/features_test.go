//go:build linux

package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"thru/internal/engine"
	"thru/internal/engine/enginetest"
	"thru/internal/host"
	"thru/internal/measure"
)

// run measures spec between two engines on loopback.
func run(t *testing.T, spec measure.Spec, a, b Engine, through func(target string) string) (sent, got measure.Evidence) {
	t.Helper()
	receiver, err := b.Open(t.Context(), engine.End{Name: "b", Spec: spec, Listen: engine.Listen{Addrs: []string{"127.0.0.1"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { receiver.Close() })
	target := net.JoinHostPort("127.0.0.1", port(receiver))
	if through != nil {
		target = through(target)
	}
	sender, err := a.Open(t.Context(), engine.End{Name: "a", Spec: spec, Sends: true, Dials: true, Token: receiver.Ready().Token, Targets: []string{target}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sender.Close() })
	start(t, rampOf(spec), sender, receiver)
	enginetest.Finish(t, sender)
	enginetest.Finish(t, receiver)
	return sender.Evidence(), receiver.Evidence()
}

func port(s engine.Session) string {
	addr := &net.TCPAddr{Port: s.Ready().Port}
	_, p, _ := net.SplitHostPort(addr.String())
	return p
}

// A feature that one end lacks is replaced there, reported, and breaks nothing.
func TestFeaturesFallBack(t *testing.T) {
	suite := suite{Engine: Engine{}}
	udp := func(s *measure.Spec) { s.Protocol, s.Rate = measure.UDP, 8e6 }
	for _, tt := range []struct {
		name           string
		change         func(*measure.Spec)
		without        [2][]string // at the sender, at the receiver
		sender, answer string      // data paths used
		missing        string
	}{
		{"everything", udp, [2][]string{}, measure.IOGSO, measure.IOGSO, ""},
		{"a peer without GRO", udp, [2][]string{nil, {measure.IOGSO}}, measure.IOGSO, measure.IOBatch, "io.gso"},
		{"a sender without GSO", udp, [2][]string{{measure.IOGSO}, nil}, measure.IOBatch, measure.IOGSO, "io.gso"},
		{"neither batches", udp, [2][]string{{measure.IOGSO, measure.IOBatch}, {measure.IOGSO, measure.IOBatch}}, measure.IOPortable, measure.IOPortable, "io.mmsg"},
		{"no sendfile", func(s *measure.Spec) { s.IO = measure.IOLean }, [2][]string{{measure.IOSendfile}, nil}, measure.IOCopy, measure.IOLean, "io.sendfile"},
		{"no MSG_TRUNC", func(s *measure.Spec) { s.IO = measure.IOLean }, [2][]string{nil, {measure.IOLean}}, measure.IOSendfile, measure.IOCopy, "io.lean"},
		{"no raw calls", func(*measure.Spec) {}, [2][]string{{measure.IOCopy, measure.IOSendfile}, nil}, measure.IOPortable, measure.IOCopy, "io.copy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := suite.spec(1)
			tt.change(&spec)
			p := program(t)
			var sent, got measure.Evidence
			inOneOfSome(t, func() error {
				sent, got = run(t, spec, Engine{Program: p, Without: tt.without[0]}, Engine{Program: p, Without: tt.without[1]}, nil)
				if got.Bytes == 0 {
					return errors.New("nothing arrived in the measured time")
				}
				return nil
			})
			if sent.IO != tt.sender || got.IO != tt.answer {
				t.Errorf("paths %q and %q; want %q and %q", sent.IO, got.IO, tt.sender, tt.answer)
			}
			named := func(e measure.Evidence) bool {
				return slices.ContainsFunc(e.Missing, func(m measure.NotChecked) bool { return m.Fact == tt.missing && m.Why != "" })
			}
			if tt.missing != "" && !named(sent) && !named(got) {
				t.Errorf("%s is not named: %v, %v", tt.missing, sent.Missing, got.Missing)
			}
		})
	}
}

// A forced path is used or refused.
func TestForcedPathIsRefused(t *testing.T) {
	spec := suite{Engine: Engine{}}.spec(1)
	spec.Protocol, spec.Rate, spec.IO, spec.IOForced = measure.UDP, 8e6, measure.IOGSO, true
	p := program(t)
	receiver, err := Engine{Program: p}.Open(t.Context(), engine.End{Spec: spec, Listen: engine.Listen{Addrs: []string{"127.0.0.1"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Close()
	sender, err := Engine{Program: p, Without: []string{measure.IOGSO}}.Open(t.Context(), engine.End{
		Spec: spec, Sends: true, Dials: true, Token: receiver.Ready().Token, Targets: []string{net.JoinHostPort("127.0.0.1", port(receiver))},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	us := enginetest.Finish(t, sender)
	if last := us[len(us)-1]; last.Kind != engine.Failed || !strings.Contains(last.Err.Error(), "switched off") {
		t.Errorf("ended with %+v", last)
	}
}

// The kernel paces a rate where it can, thru itself elsewhere, and both hold the rate.
func TestRateIsHeldEitherDirection(t *testing.T) {
	for _, without := range [][]string{nil, {"pacing"}} {
		spec := suite{Engine: Engine{}}.spec(2)
		spec.Rate, spec.Duration = 100e6, int64(time.Second)
		p := program(t)
		want := "kernel"
		if without != nil {
			want = "thru"
		}
		inOneOfSome(t, func() error {
			sent, got := run(t, spec, Engine{Program: p, Without: without}, Engine{Program: p}, nil)
			if by := sent.Streams[0].PacedBy; by != want || got.Streams[0].PacedBy != "" {
				t.Errorf("paced by %q, at the receiver by %q; want %q", by, got.Streams[0].PacedBy, want)
			}
			rate := float64(got.Bytes) * 8e9 / float64(got.MeasuredNs)
			if rate > 110e6 { // other load on the machine makes a run slower, never faster
				t.Errorf("by %s: %.1f Mb/s of 100", want, rate/1e6)
			}
			if rate < 80e6 {
				return fmt.Errorf("by %s: %.1f Mb/s of 100", want, rate/1e6)
			}
			return nil
		})
	}
}

// Verification finds a byte that the path changes, with its position.
func TestVerifyFindsAWrongByte(t *testing.T) {
	spec := suite{Engine: Engine{}}.spec(1)
	spec.Verify = true
	const wrong = 1_000_000
	p := program(t)
	_, got := run(t, spec, Engine{Program: p}, Engine{Program: p}, func(target string) string {
		// Hello and pings pass before the data: those bytes belong to the handshake.
		return relay(t, target, func(data []byte, at int64) {
			i := bytes.Index(data, pattern(64)) // the data has begun
			if i >= 0 && at == 0 {
				data[i+7] ^= 1
			}
		})
	})
	c := got.Streams[0].Checked
	if c == nil || c.WrongBytes == 0 || c.FirstWrong == nil || *c.FirstWrong%period != 7 || c.Bytes < wrong {
		t.Errorf("compared %+v", c)
	}
}

// relay forwards a TCP connection and lets change modify what the dialling end sends; at counts the changes.
func relay(t *testing.T, target string, change func(data []byte, at int64)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		in, err := l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", target)
		if err != nil {
			in.Close()
			return
		}
		go func() { io.Copy(in, out); in.Close() }()
		buf, changed := make([]byte, 128<<10), int64(0)
		for {
			n, err := in.Read(buf)
			if n > 0 {
				before := bytes.Clone(buf[:n])
				change(buf[:n], changed)
				if !bytes.Equal(before, buf[:n]) {
					changed++
				}
				out.Write(buf[:n])
			}
			if err != nil {
				out.(*net.TCPConn).CloseWrite()
				return
			}
		}
	}()
	return l.Addr().String()
}

// Pipes that the kernel keeps small are a note of the stream: a user with many pipes gets no large ones.
func TestSmallPipes(t *testing.T) {
	runtime.LockOSThread() // and never unlock: the thread has lost what frees it from that limit
	caps := [2]unix.CapUserData{}
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &caps[0]); err != nil {
		t.Fatal(err)
	}
	for range 2 * allPages / mostPages {
		p, err := newPages(mostPages)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		switch {
		case p.small == "" && p.bytes != mostPages:
			t.Fatalf("the pipe holds %d bytes, and nothing says so", p.bytes)
		case p.small != "":
			if !strings.Contains(p.small, "1 MiB") || p.bytes == 0 {
				t.Errorf("%d bytes: %s", p.bytes, p.small)
			}
			return
		}
	}
	t.Skip("this kernel does not limit the pipes of a user (pipe-user-pages-soft)")
}

// The pages to send are the pattern, as many as a pipe holds, and each call sends the same.
func TestPages(t *testing.T) {
	for _, n := range []int{1, 1000, 128 << 10, 8 << 20} {
		p, err := newPages(n)
		if err != nil {
			t.Fatal(err)
		}
		room, err := unix.FcntlInt(uintptr(p.kept[1]), unix.F_GETPIPE_SZ, 0)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got := make([]byte, n)
			teed, err := unix.Tee(p.kept[0], p.next[1], n, 0)
			if err != nil || int(teed) != p.bytes || p.bytes != min(n, mostPages, room) {
				t.Fatalf("%d of %d bytes in a pipe of %d, %v", teed, p.bytes, room, err)
			}
			if k, err := unix.Read(p.next[0], got); err != nil || k != p.bytes || !bytes.Equal(got[:k], pattern(k)) {
				t.Errorf("%d bytes of %d, %v", k, p.bytes, err)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A tiny amount, which has passed before the first check, ends at once.
func TestTinyAmountEnds(t *testing.T) {
	p := program(t)
	for range 8 {
		spec := suite{Engine: Engine{}}.spec(3)
		spec.Amount, spec.Duration = 1, int64(time.Minute)
		if _, got := run(t, spec, Engine{Program: p}, Engine{Program: p}, nil); got.Bytes != 1 || got.Error != "" {
			t.Fatalf("%d bytes, error %q", got.Bytes, got.Error)
		}
	}
}

// The error for a missing CPU lists the existing ones.
func TestUnknownCPU(t *testing.T) {
	spec := suite{Engine: Engine{}}.spec(1)
	spec.SenderCPU = new(1000)
	p := program(t)
	sender, receiver := suite{Engine: Engine{Program: p}, Gone: gone}.pair(t, spec, true)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	receiver.Start(ctx, 0, host.PlacementFacts{})
	sender.Start(ctx, 0, host.PlacementFacts{})
	us := enginetest.Finish(t, sender)
	if last := us[len(us)-1]; last.Kind != engine.Failed || !strings.Contains(last.Err.Error(), "CPU 1000") {
		t.Errorf("ended with %+v", last)
	}
}

// Live figures more often than once a second do not affect the seconds.
func TestShortIntervalsKeepTheSeconds(t *testing.T) {
	spec := suite{Engine: Engine{}}.spec(1)
	spec.Duration, spec.Rate = int64(2*time.Second), 50e6
	p := program(t)
	_, got := run(t, spec, Engine{Program: p}, Engine{Program: p}, nil)
	if len(got.Bins) != 2 {
		t.Errorf("%d bins of 2 s with live figures each 0.1 s: %+v", len(got.Bins), got.Bins)
	}
}
