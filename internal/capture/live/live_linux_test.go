package live

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"thru/internal/capture/frame"
	"thru/internal/capture/pcapfile"
	"thru/internal/fault"
	"thru/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const dataPort = 5300

// start starts a capture in a host.
func start(t *testing.T, h *lab.Host, c Config) *Ring {
	t.Helper()
	var r *Ring
	h.Inside(func() (err error) { r, err = Start(c); return err })
	t.Cleanup(r.Close)
	return r
}

// stop ends a capture.
func stop(t *testing.T, r *Ring, iface string) Recording {
	t.Helper()
	rec, err := r.Stop(iface, netip.AddrPort{})
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// move sends bytes over a connection from one host to the other, until both
// sides have closed it.
func move(t *testing.T, from, to *lab.Host, at netip.AddrPort, size int) {
	t.Helper()
	var listener net.Listener
	to.Inside(func() (err error) { listener, err = net.Listen("tcp", at.String()); return err })
	defer listener.Close()
	arrived := make(chan int64, 1)
	go func() {
		var n int64
		if c, err := listener.Accept(); err == nil {
			n, _ = io.Copy(io.Discard, c)
			c.Close()
		}
		arrived <- n
	}()
	var c net.Conn
	from.Inside(func() (err error) { c, err = net.DialTimeout("tcp", at.String(), 5*time.Second); return err })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := c.Write(make([]byte, size)); err != nil {
		t.Error(err)
	}
	c.(*net.TCPConn).CloseWrite()
	io.Copy(io.Discard, c)
	c.Close()
	if n := <-arrived; n != int64(size) {
		t.Errorf("%d bytes of %d arrived", n, size)
	}
}

// tcpdump runs in parallel, from the return of this function until the
// returned function is called.
func tcpdump(t *testing.T, h *lab.Host, iface, filter string) (end func() string) {
	t.Helper()
	lab.Require(t, lab.Program("tcpdump"))
	file := filepath.Join(t.TempDir(), "beside.pcap")
	cmd := h.Command(context.Background(), "tcpdump", "-i", iface, "-s", "200", "-U", "-Z", "root", "-w", file, filter)
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	said := bufio.NewScanner(errs)
	for said.Scan() && !strings.Contains(said.Text(), "listening on") {
	}
	return func() string {
		time.Sleep(1500 * time.Millisecond) // its own ring hands a block over after a second
		_ = cmd.Process.Signal(os.Interrupt)
		for said.Scan() {
		}
		_ = cmd.Wait()
		return file
	}
}

// fields returns tshark's output for a file: one line a packet.
func fields(t *testing.T, file string) []string {
	t.Helper()
	lab.Require(t, lab.Program("tshark"))
	args := []string{"-r", file, "-o", "tcp.relative_sequence_numbers:FALSE", "-T", "fields"}
	for _, f := range []string{"frame.len", "vlan.id", "ip.id", "ip.len", "ipv6.plen", "tcp.srcport", "tcp.dstport", "tcp.seq", "tcp.ack",
		"tcp.len", "tcp.flags", "tcp.window_size_value", "tcp.options"} {
		args = append(args, "-e", f)
	}
	out, err := exec.Command("tshark", args...).Output()
	if err != nil {
		t.Fatalf("tshark on %s: %v", file, err)
	}
	return strings.Split(strings.TrimRight(string(out), "\n"), "\n")
}

// inFile writes a recording to a file.
func inFile(t *testing.T, rec Recording) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ours.pcapng")
	if err := os.WriteFile(file, rec.Pcapng, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// same compares the packets of two files, in any order: two CPUs may pass
// packets to two rings in two orders.
func same(t *testing.T, ours, theirs []string) {
	t.Helper()
	count := map[string]int{}
	for _, l := range theirs {
		count[l]++
	}
	for _, l := range ours {
		count[l]--
	}
	for l, n := range count {
		if n != 0 {
			t.Errorf("tcpdump has %d more of %q", n, l)
		}
	}
	if len(ours) < 10 {
		t.Errorf("only %d packets", len(ours))
	}
}

// TestSameAsTcpdump: each packet of an interface is in the recording, once,
// with the fields that tcpdump has.
func TestSameAsTcpdump(t *testing.T) {
	p := lab.NewPair(t, lab.Options{})
	for name, c := range map[string]struct {
		to    *lab.Host
		addr  netip.Addr
		iface string
	}{
		"loopback":  {p.A, netip.MustParseAddr("127.0.0.1"), "lo"},
		"loopback6": {p.A, netip.IPv6Loopback(), "lo"},
		"link":      {p.B, p.Data.B4, lab.DataDev},
		"link6":     {p.B, p.Data.B6, lab.DataDev},
	} {
		t.Run(name, func(t *testing.T) {
			at := netip.AddrPortFrom(c.addr, dataPort)
			end := tcpdump(t, p.A, c.iface, fmt.Sprint("tcp port ", dataPort))
			dials := start(t, p.A, Config{Peers: []netip.AddrPort{at}})
			listens := start(t, c.to, Config{Ports: [2]int{dataPort, dataPort + 9}})
			move(t, p.A, c.to, at, 4<<20)
			rec, other := stop(t, dials, c.iface), stop(t, listens, c.iface)
			if rec.Dropped != 0 || rec.Full || rec.MTU < 1500 || rec.Interface != c.iface || !rec.Ended.After(rec.Began) || rec.CPUNs <= 0 {
				rec.Pcapng = nil
				t.Errorf("the recording is %+v", rec)
			}
			ours := fields(t, inFile(t, rec))
			if int64(len(ours)) != rec.Packets {
				t.Errorf("%d packets in the file, %d by the recording", len(ours), rec.Packets)
			}
			same(t, ours, fields(t, end()))
			if c.to == p.A { // both filters take the same packets
				same(t, fields(t, inFile(t, other)), ours)
			}
		})
	}
}

// TestSegmentsLargerThanTheMTU: segments that the NIC has to split are
// recorded with their whole length, with their headers only.
func TestSegmentsLargerThanTheMTU(t *testing.T) {
	p := lab.NewPair(t, lab.Options{})
	at := netip.AddrPortFrom(p.Data.B4, dataPort)
	r := start(t, p.A, Config{Peers: []netip.AddrPort{at}})
	move(t, p.A, p.B, at, 32<<20)
	largest, longest := 0, 0
	_ = r.finish()
	for k, data := range r.kept.all() {
		largest, longest = max(largest, int(k.wire)), max(longest, len(data))
	}
	if largest < 32<<10 || longest > Snap4 {
		t.Errorf("the largest frame has %d bytes, of which at most %d were kept", largest, longest)
	}
}

// TestPeerThatAnswered: with a second peer that is never dialled, packets of
// other programs to it are left out.
func TestPeerThatAnswered(t *testing.T) {
	p := lab.NewPair(t, lab.Options{})
	for name, addr := range map[string]netip.Addr{"IPv4": p.Data.B4, "IPv6": p.Data.B6} {
		t.Run(name, func(t *testing.T) {
			answered, other := netip.AddrPortFrom(addr, dataPort), netip.AddrPortFrom(addr, dataPort+1)
			both := Config{Peers: []netip.AddrPort{answered, other}}
			one, all := start(t, p.A, both), start(t, p.A, both)
			move(t, p.A, p.B, answered, 1<<20)
			move(t, p.A, p.B, other, 1<<20)
			rec, err := one.Stop(lab.DataDev, answered)
			if err != nil {
				t.Fatal(err)
			}
			wide := stop(t, all, lab.DataDev)
			ofPeer := func(file string) (lines []string) {
				for _, l := range fields(t, file) {
					if slices.Contains(strings.Split(l, "\t"), fmt.Sprint(dataPort)) {
						lines = append(lines, l)
					}
				}
				return lines
			}
			ours, wanted := fields(t, inFile(t, rec)), ofPeer(inFile(t, wide))
			same(t, ours, wanted)
			if int64(len(ours)) != rec.Packets || rec.Packets >= wide.Packets {
				t.Errorf("%d packets in the file, %d by the recording, %d of both peers", len(ours), rec.Packets, wide.Packets)
			}
		})
	}
}

// TestFull: the limit ends the capture, and the packets before it are there.
func TestFull(t *testing.T) {
	p := lab.NewPair(t, lab.Options{})
	at := netip.AddrPortFrom(p.Data.B4, dataPort)
	r := start(t, p.A, Config{Peers: []netip.AddrPort{at}, Packets: 20})
	move(t, p.A, p.B, at, 8<<20)
	<-r.read // it ended by itself
	move(t, p.A, p.B, at, 1<<20)
	rec := stop(t, r, lab.DataDev)
	if !rec.Full || rec.Packets != 20 || rec.Ended.IsZero() {
		t.Errorf("full %v, %d packets, ended %v", rec.Full, rec.Packets, rec.Ended)
	}
}

// TestDropped: a ring that is full reports how many packets it lost.
func TestDropped(t *testing.T) {
	p := lab.NewPair(t, lab.Options{})
	at := netip.AddrPortFrom(p.Data.B4, dataPort)
	c := Config{Peers: []netip.AddrPort{at}}
	whole := start(t, p.A, c) // a second ring in parallel has them all
	var tiny *Ring
	p.A.Inside(func() (err error) {
		tiny, err = open(c, geometry{os.Getpagesize(), 2, 10 * time.Millisecond})
		return err
	})
	move(t, p.A, p.B, at, 16<<20) // nobody reads
	go tiny.follow()
	some, all := stop(t, tiny, lab.DataDev), stop(t, whole, lab.DataDev)
	if some.Dropped == 0 || some.Packets == 0 || some.Packets+some.Dropped != all.Packets || all.Dropped != 0 {
		t.Errorf("%d packets and %d dropped, of %d and %d", some.Packets, some.Dropped, all.Packets, all.Dropped)
	}
	for _, rec := range []Recording{some, all} {
		checkFile(t, rec)
	}
}

// checkFile compares the file of a recording with the recording's fields.
func checkFile(t *testing.T, rec Recording) {
	t.Helper()
	r, err := pcapfile.NewReader(bytes.NewReader(rec.Pcapng))
	if err != nil {
		t.Fatal(err)
	}
	count, last, packet := int64(0), rec.Began.UnixNano(), pcapfile.Record{}
	for err == nil {
		if packet, err = r.Next(); err == nil {
			count++
			if packet.TimeNs < last || packet.TimeNs > rec.Ended.UnixNano() {
				t.Fatalf("packet %d is of %v, the capture of %v to %v", count, time.Unix(0, packet.TimeNs), rec.Began, rec.Ended)
			}
			last = packet.TimeNs
		}
	}
	if err != io.EOF || count != rec.Packets {
		t.Errorf("the file has %d packets (%v), the recording counts %d", count, err, rec.Packets)
	}
	i := r.Interfaces()[0]
	if i.Name != rec.Interface || i.Link != frame.Ethernet || i.Dropped == nil || *i.Dropped != rec.Dropped {
		t.Errorf("the file's interface is %+v", i)
	}
}

// TestNothingStays: descriptors and mappings are released, by Stop, by Close
// and where Stop fails.
func TestNothingStays(t *testing.T) {
	lab.Require(t, lab.Root())
	before := held(t)
	for _, end := range []func(*Ring){
		func(r *Ring) { stop(t, r, "lo"); r.Close() },
		func(r *Ring) { r.Close(); r.Close() },
		func(r *Ring) {
			if _, err := r.Stop("no-such-dev", netip.AddrPort{}); !errors.Is(err, unix.ENODEV) {
				t.Errorf("stopped at an interface that is not there: %v", err)
			}
			if _, err := r.Stop("lo", netip.AddrPort{}); err == nil {
				t.Error("stopped twice")
			}
		},
	} {
		r, err := Start(Config{Ports: [2]int{dataPort, dataPort}})
		if err != nil {
			t.Fatal(err)
		}
		if held(t) == before {
			t.Error("a ring holds nothing")
		}
		end(r)
		if after := held(t); after != before {
			t.Errorf("holds %q, before %q", after, before)
		}
	}
}

// held returns how many descriptors and rings this process has.
func held(t *testing.T) string {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(len(fds), " descriptors, ", bytes.Count(maps, []byte("socket:")), " mappings")
}

// TestNotAllowed removes the capability from one thread.
func TestNotAllowed(t *testing.T) {
	lab.Require(t, lab.Root())
	if err := Possible(); err != nil {
		t.Fatalf("root may not capture: %v", err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var had [2]unix.CapUserData
	if err := unix.Capget(&header, &had[0]); err != nil {
		t.Fatal(err)
	}
	fewer := had
	fewer[0].Effective &^= 1 << unix.CAP_NET_RAW
	if err := unix.Capset(&header, &fewer[0]); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Capset(&header, &had[0]); err != nil {
			t.Fatal(err)
		}
	}()
	_, startErr := Start(Config{Ports: [2]int{dataPort, dataPort}})
	for _, err := range []error{Possible(), startErr} {
		if !errors.Is(err, unix.EPERM) || !strings.Contains(fault.Hint(err), "cap_net_raw+ep") {
			t.Errorf("%v (hint %q)", err, fault.Hint(err))
		}
	}
}

func TestBadConfig(t *testing.T) {
	for _, c := range []Config{{}, {Ports: [2]int{9, 8}}, {Ports: [2]int{-1, 8}}, {Ports: [2]int{1, 65536}}} {
		if r, err := Start(c); fault.Code(err) != fault.Usage {
			t.Errorf("%+v: %v, %v", c, r, err)
		}
	}
}
