//go:build faults && linux

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/cause"
	"thru/internal/measure"
	"thru/lab"
	"thru/lab/wire"
)

// chapter is one step of a story: the finding that is wanted, and its fix.
type chapter struct {
	name  string
	wants []string // the first finding must be one of them
	// fix repairs the fault; nil runs the commands of the finding.
	fix func()
}

// tell runs `thru explain` for each chapter and applies its fix.
func tell(t *testing.T, s *Scene, chapters []chapter, args ...string) {
	t.Helper()
	defer take(t)()
	for n, c := range chapters {
		d := Measure(t, s, strings.Fields(*command), append(args, "--one-way")...)
		base := baseCell(d, true)
		if base == nil || len(base.Findings) == 0 {
			t.Fatalf("%s: the document has no finding: %+v", c.name, d.Error)
		}
		first, bps := base.Findings[0], 0.0
		if base.Goodput != nil {
			bps = base.Goodput.Value
		}
		fmt.Printf("%d. %-34s %8.1f Mb/s  %s (%s): %s\n", n+1, c.name, bps/1e6, first.Cause, first.Confidence, first.Summary)
		if *keep != "" {
			saveDocument(t, filepath.Join(*keep, fmt.Sprintf("%s-%d.json", filepath.Base(t.Name()), n+1)), d)
		}
		if !slices.Contains(c.wants, first.Cause) {
			t.Fatalf("%s: %s, want %v", c.name, first.Cause, c.wants)
		}
		switch {
		case n == len(chapters)-1:
		case c.fix != nil:
			c.fix()
		default:
			obey(t, s, first)
		}
	}
}

// obey runs the commands of a finding as they are printed.
func obey(t *testing.T, s *Scene, x measure.Finding) {
	t.Helper()
	if x.Fix == nil || len(x.Fix.Commands) == 0 {
		t.Fatalf("%s: no commands to run: %+v", x.Cause, x.Fix)
	}
	host := s.Server
	if x.Fix.EndPoint == "local" {
		host = s.Client
	}
	for _, line := range x.Fix.Commands {
		fmt.Printf("   %s# %s\n", host.Name, line)
		if out, err := host.Output("sh", "-c", line); err != nil {
			t.Fatalf("%s: %v %s", line, err, out)
		}
	}
}

// TestStoryS follows checklist S-01 to S-10: jumbo frames are set but do not pass; once they pass, TCP is
// slow; with segmentation off, the receiver's buffers limit; with larger buffers the link is full.
func TestStoryS(t *testing.T) {
	const rate = 1_000_000_000
	good := wire.Impairment{Rate: rate, Delay: 5 * time.Millisecond, Queue: 2 << 20}
	x := lab.NewWired(t, lab.WiredOptions{MTU: 9000, AtoB: good, BtoA: good})
	x.B.Sysctl("net.ipv4.tcp_rmem", "4096 131072 262144")
	set := func(change func(w *wire.Impairment)) {
		for _, d := range []wire.Direction{wire.AtoB, wire.BtoA} {
			w := good
			change(&w)
			x.Wire.Set(d, w)
		}
	}
	set(func(w *wire.Impairment) { w.MTU = 1500 })
	tell(t, between(x.Pair), []chapter{
		{"jumbo frames are set", []string{"jumbo-mismatch"}, func() { set(func(w *wire.Impairment) { w.DropAbove = 9014 }) }},
		{"the switch passes them now", []string{"broken-tso"}, nil},
		{"segmentation is off", []string{"receive-window"}, nil},
		{"the receiver may buffer more", []string{"link-rate"}, nil},
	}, "--link-rate", "1G/l2")
}

// TestStoryB: a generator that is too weak for the link that it is to prove, and a figure above the rate of
// the link (checklist B-07, B-10).
func TestStoryB(t *testing.T) {
	lab.Require(t, lab.Program("iperf3"))
	defer take(t)()
	s := quota(true, 30_000)(t)
	s.ServerBy = s.ClientBy
	lower := Measure(t, &Scene{Client: s.Client, ClientBy: s.ClientBy}, []string{"test"}, flags("-t 2 --one-way --force -C cubic")...)
	upper := Measure(t, s, []string{"test"}, flags("-t 2 --one-way --force --link-rate 40G")...)
	cause.Rungs([]*measure.Document{lower, upper})
	if found := upper.Findings; len(found) == 0 || found[0].Where.Place != measure.AtTool || !strings.HasSuffix(found[0].Cause, "-cpu") {
		t.Errorf("of a generator that is too weak: %+v", found)
	} else {
		fmt.Printf("B-07 %s: %s\n", found[0].Cause, found[0].Summary)
	}

	file := filepath.Join(t.TempDir(), "rung4.json")
	if err := os.WriteFile(file, iperf3(t, overVeth(lab.Options{})(t), "-b", "9.74G", "-t", "3"), 0o644); err != nil {
		t.Fatal(err)
	}
	d := Measure(t, &Scene{Client: s.Client}, []string{"explain"}, file, "--link-rate", "10G")
	if len(d.Findings) == 0 || d.Findings[0].Cause != "measurement" {
		t.Fatalf("of 9.74 Gb/s at an MTU of 1500 over a link of 10: %+v", d.Findings)
	}
	fmt.Printf("B-10 %s (%s): %s\n", d.Findings[0].Cause, d.Findings[0].Confidence, d.Findings[0].Summary)
}

// iperf3 returns the output of the real program for a test over a scene.
func iperf3(t *testing.T, s *Scene, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	server := s.Server.Command(ctx, "iperf3", "-s", "-1")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	lab.Eventually(t, readyLimit, "iperf3 listens", func() bool { return len(s.Server.Sockets()) > 0 })
	out, err := s.Client.Command(ctx, "iperf3", append([]string{"-J", "-c", s.Target}, args...)...).Output()
	if err != nil || !json.Valid(out) {
		t.Fatalf("iperf3: %v\n%.1000s", err, out)
	}
	_ = server.Wait() // ends after one test
	return out
}
