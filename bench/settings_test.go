//go:build linux

// Package bench compares thru with other tools and with the limit of the machine (ceiling.c): interleaved
// runs in a separate network namespace, the same CPUs for all, ratios with their 95% interval, and the bars
// that thru must meet. `make bench` runs it; docs/performance.md contains its tables.
//
// It looks for peers in PATH: iperf3, iperf, netperf with netserver, tcp_stream, tcp_rr, tcp_crr and
// udp_stream of neper, nuttcp, sockperf; for files curl, lftp, sftp, scp, smbclient, nfs-cp, rsync, with
// nginx, vsftpd, sshd, smbd, ganesha.nfsd, rsync as servers. IPERF3 names a second, newer iperf3. It reports
// missing programs.
package bench

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"thru/internal/unit"
)

// settings holds the options of the command line.
type settings struct {
	seconds    float64
	repeats    int
	only       *regexp.Regexp
	markdown   string
	lock       string
	thru       string
	ceiling    string
	congestion string
	idle       time.Duration
	scale      []int
	bytes      int64
}

func parse(args []string) (settings, error) {
	var s settings
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.Float64Var(&s.seconds, "seconds", 2, "measured time of each run, whole seconds (some peers take no others)")
	f.IntVar(&s.repeats, "repeats", 7, "rounds: in each, every tool runs once in random order; 6 are needed for a 95% interval")
	only := f.String("only", "", "run the comparisons whose name matches this `regexp`")
	f.StringVar(&s.markdown, "markdown", "", "also write the tables to this `file`, between its markers if it has them")
	f.StringVar(&s.lock, "lock", "/tmp/measure.lock", "hold this lock `file` during each round, so that measurements take turns")
	f.StringVar(&s.thru, "thru", "bin/thru", "thru to measure")
	f.StringVar(&s.ceiling, "ceiling", "bin/ceiling", "built from ceiling.c")
	f.StringVar(&s.congestion, "congestion", "cubic", "congestion control for all, set as the namespace's route attribute")
	f.DurationVar(&s.idle, "idle", 10*time.Second, "how long the idle agent is watched")
	bytes := f.String("bytes", "1G", "`size` of the file of the transfers; four times as much is needed in /dev/shm")
	scale := f.String("scale", "50,100,200,500", "agents of the fleets that are measured, with commas")
	if err := f.Parse(args); err != nil {
		return s, fmt.Errorf("bench: reading the command line: %w", err)
	}
	re, err := regexp.Compile(*only)
	if err != nil {
		return s, fmt.Errorf("bench: reading -only: %w", err)
	}
	s.only = re
	if s.bytes, err = unit.ParseSize(*bytes); err != nil || s.bytes < 1 {
		return s, fmt.Errorf("bench: -bytes takes a size, such as 1G")
	}
	for _, word := range strings.Split(*scale, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 2 {
			return s, fmt.Errorf("bench: -scale takes numbers of agents, from 2 on")
		}
		s.scale = append(s.scale, n)
	}
	if s.seconds < 1 || s.seconds != float64(int(s.seconds)) || s.repeats < 1 {
		return s, fmt.Errorf("bench: -seconds takes whole seconds, -repeats 1 or more")
	}
	return s, nil
}

// progress overwrites the last line of a terminal.
func (s settings) progress(format string, values ...any) {
	if term.IsTerminal(int(os.Stderr.Fd())) {
		fmt.Fprintf(os.Stderr, "\r\033[K"+format, values...)
	}
}

// run starts this program again in a namespace, where it measures.
func run(ctx context.Context, s settings) error {
	if os.Getenv(insideVariable) == "" {
		return enterNamespace(ctx)
	}
	site, err := setUp(s)
	if err != nil {
		return err
	}
	tools := findTools(s)
	r := &report{settings: s, site: site, tools: tools}
	r.writeHead(os.Stdout)
	for _, c := range comparisons() {
		if !s.only.MatchString(c.name) {
			continue
		}
		result, err := c.run(ctx, s, tools)
		if err != nil {
			return fmt.Errorf("bench: comparison %s: %w", c.name, err)
		}
		r.add(os.Stdout, result)
	}
	if err := r.addTransfer(ctx, os.Stdout); err != nil {
		return err
	}
	if err := r.addAgent(ctx, os.Stdout); err != nil {
		return err
	}
	if err := r.addCluster(ctx, os.Stdout); err != nil {
		return err
	}
	if err := r.addScale(ctx, os.Stdout); err != nil {
		return err
	}
	r.writeBars(os.Stdout)
	if s.markdown == "" {
		return nil
	}
	return r.save(s.markdown)
}
