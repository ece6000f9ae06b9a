package lab_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
	"thru/lab/wire"
)

// capturing starts an end point in b that allows captures, and joins it in a home folder for commands in a.
func capturing(t *testing.T, x *lab.Wired, args ...string) (home string) {
	t.Helper()
	server := serve(t, x.B, append([]string{"--allow", "capture"}, args...)...)
	strings := regexp.MustCompile(`thru1\.[\w-]+`).FindAllString(server.stdout.String(), -1)
	if len(strings) != 2 {
		t.Fatalf("thru serve --allow capture printed %d join strings", len(strings))
	}
	home = t.TempDir()
	for name, s := range map[string]string{"measures": strings[0], "captures": strings[1]} {
		if code := start(t, x.A, home, s, "join", name).wait(t, 20*time.Second); code != 0 {
			t.Fatalf("thru join %s ended with exit %d", name, code)
		}
	}
	return home
}

// TestCaptureAtBothEnds: packets that the path drops are lost between the two captures, and the counts match
// those of the kernels and of the stored files.
func TestCaptureAtBothEnds(t *testing.T) {
	t.Parallel()
	lab.Require(t, lab.Root())
	direction := wire.Impairment{Rate: 40e6, Queue: 256 << 10, Delay: 5 * time.Millisecond, Loss: 0.01, Seed: 7}
	x := lab.NewWired(t, lab.WiredOptions{AtoB: direction, BtoA: wire.Impairment{Delay: 5 * time.Millisecond}})
	home := capturing(t, x)
	file := filepath.Join(t.TempDir(), "x.pcapng")
	p := start(t, x.A, home, "", "test", "captures", "--json", "--keep", file, "--one-way", "-P", "2", "-t", "2", "-O", "1")
	if code := p.wait(t, 50*time.Second); code != 0 {
		t.Fatalf("exit %d", code)
	}
	doc := p.document(t)
	f := mainCells(doc)[0].Runs[0].Flows[0]
	if len(f.Captures) != 2 || f.Crossing == nil || len(f.Missing) > 0 {
		t.Fatalf("%d captures, crossing %v, missing %+v", len(f.Captures), f.Crossing, f.Missing)
	}
	for i, c := range f.Captures {
		if c.Interface != lab.DataDev || c.MTU != 1500 || c.Full || *c.Dropped > 0 || *c.CPUNs <= 0 || len(c.Conns) != 2 {
			t.Errorf("capture %d: %s, MTU %d, full %v, dropped %d, %d ns, %d connections", i, c.Interface, c.MTU, c.Full, *c.Dropped, *c.CPUNs, len(c.Conns))
		}
		for _, k := range c.Conns {
			if k.SYN == nil || k.SYNACK == nil || k.FromOpened == nil || !*k.FromOpened {
				t.Errorf("capture %d: the handshake of %s is not in it", i, k.From)
			}
		}
		if got := countTCP(t, c.File); got != c.TCP {
			t.Errorf("%s holds %d packets of TCP, the document says %d", c.File, got, c.TCP)
		}
	}
	sameAsKernel(t, f)
	lost, late := int64(0), int64(0)
	for _, c := range f.Crossing.Conns {
		lost += c.Data.Lost.N
		late += c.Data.Late.N
		if len(c.Changed) > 0 {
			t.Errorf("nothing rewrites packets here: %+v", c.Changed)
		}
	}
	if lost == 0 || late > 0 {
		t.Errorf("%d packets lost and %d overtaken, on a path that loses and does not reorder", lost, late)
	}
}

// sameAsKernel compares the retransmissions in the sender's capture with those of its kernel.
func sameAsKernel(t *testing.T, f measure.Flow) {
	t.Helper()
	for _, s := range f.Sender.Streams {
		i := slices.IndexFunc(f.Captures[0].Conns, func(c measure.Connection) bool { return c.From == s.Local })
		if i < 0 || s.TCPEnd == nil || s.TCPEnd.Retrans == nil {
			t.Errorf("no connection of stream %s, or no counter", s.Local)
			continue
		}
		counted, seen := float64(*s.TCPEnd.Retrans), float64(f.Captures[0].Conns[i].Data.Again.N)
		if !near(seen, counted, 10) && seen != counted {
			t.Errorf("stream %s: %v packets seen again, the kernel counted %v", s.Local, seen, counted)
		}
	}
}

// countTCP counts the TCP packets in a file with tshark.
func countTCP(t *testing.T, file string) int64 {
	t.Helper()
	lab.Require(t, lab.Program("tshark"))
	out, err := exec.Command("tshark", "-r", file, "-Y", "tcp", "-T", "fields", "-e", "frame.number").Output()
	if err != nil {
		t.Fatal(err)
	}
	return int64(strings.Count(string(out), "\n"))
}

// losesTCPOnly is a path that loses packets, behind a firewall that drops datagrams: only packets can show the loss.
func losesTCPOnly(t *testing.T) *lab.Wired {
	t.Helper()
	lab.Require(t, lab.Root(), lab.Program("nft"))
	delay := 5 * time.Millisecond
	x := lab.NewWired(t, lab.WiredOptions{AtoB: wire.Impairment{Delay: delay, Loss: 0.01, Seed: 7}, BtoA: wire.Impairment{Delay: delay}})
	x.B.Nft("table inet firewall {\n chain input {\n type filter hook input priority 0\n udp dport 5202-5233 drop\n }\n}\n")
	return x
}

// TestExplainCaptures: where counters do not decide, `thru explain` captures by itself, and names the packets
// that show the cause.
func TestExplainCaptures(t *testing.T) {
	t.Parallel()
	x := losesTCPOnly(t)
	home := capturing(t, x)
	var doc measure.Document
	for range 3 { // other tests that load the hosts leave doubts about one explanation
		p := start(t, x.A, home, "", "explain", "captures", "--json", "--one-way", "-t", "2", "-O", "0.5", "--budget", "45")
		p.wait(t, 55*time.Second)
		if doc = p.document(t); len(doc.Findings) > 0 && doc.Findings[0].Confidence == measure.Certain {
			break
		}
		t.Logf("found %s", causes(doc))
	}
	if len(doc.Findings) == 0 {
		t.Fatal("nothing was found")
	}
	if !slices.ContainsFunc(doc.Steps, func(s measure.Step) bool { return s.Experiment == "capture" && len(s.Raised) > 0 }) {
		t.Errorf("no capture told anything: %+v", doc.Steps)
	}
	f := doc.Findings[0]
	byPackets := slices.ContainsFunc(f.Evidence, func(p measure.Proof) bool { return len(p.Packets) > 0 && p.Capture != "" })
	if f.Cause != "loss" || f.Confidence != measure.Certain || !byPackets {
		t.Errorf("found %s, by %+v", causes(doc), f.Evidence)
	}
	for _, e := range doc.EndPoints {
		if !e.Captures {
			t.Errorf("%s does not capture: %s", e.Name, e.NoCapture)
		}
	}
}

// causes prints the findings.
func causes(doc measure.Document) string {
	var all []string
	for _, f := range doc.Findings {
		all = append(all, fmt.Sprintf("%s (%s): %s", f.Cause, f.Confidence, f.Summary))
	}
	return strings.Join(all, "\n")
}

// TestCaptureIsRefused: an end point that does not allow captures refuses.
func TestCaptureIsRefused(t *testing.T) {
	t.Parallel()
	x := losesTCPOnly(t)
	home := capturing(t, x)
	p := start(t, x.A, home, "", "test", "measures", "--capture", "-t", "0.3")
	if code := p.wait(t, 20*time.Second); code != 1 || !strings.Contains(p.stderr.String(), "--allow capture") {
		t.Errorf("exit %d: %s", code, p.stderr.String())
	}
	// With a capture of one end only, the explanation says what is missing.
	p = start(t, x.A, home, "", "explain", "measures", "--json", "--one-way", "-t", "1", "-O", "0.5", "--budget", "30")
	p.wait(t, 50*time.Second)
	captured := 0
	for _, f := range flows(p.document(t)) {
		if len(f.Captures) == 0 {
			continue
		}
		captured++
		said := slices.ContainsFunc(f.Missing, func(m measure.NotChecked) bool {
			return m.Fact == "captures at measures" && strings.Contains(m.Why, "--allow capture")
		})
		if len(f.Captures) != 1 || f.Captures[0].EndPoint != "local" || !said {
			t.Errorf("%d captures, the first at %s; missing %+v", len(f.Captures), f.Captures[0].EndPoint, f.Missing)
		}
	}
	if captured == 0 {
		t.Error("nothing was captured")
	}
}
