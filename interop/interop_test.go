//go:build interop

package interop

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"thru/lab"
)

// newer is the iperf3 that the variable names, in addition to the one in PATH.
const (
	newer         = "iperf3-newer"
	newerVariable = "IPERF3"
)

// kind returns the program of a name.
func kind(name string) string {
	if name == newer {
		return IPerf3
	}
	return name
}

// judges returns the real programs: those in PATH, and the newer one if the variable names it.
func judges() []string {
	if os.Getenv(newerVariable) == "" {
		return []string{IPerf3, IPerf2}
	}
	return []string{IPerf3, newer, IPerf2}
}

// table prints the rows as they come, and repeats the misses at the end.
type table struct {
	mu      sync.Mutex
	begin   time.Time
	rows    int
	headed  bool
	misses  []Row
	leftOut []string
}

var results = &table{begin: time.Now()}

// cell measures, and returns the rows.
type cell func(t *testing.T) []Row

// judge prints a cell's rows. It measures a miss once more, since other load of the machine can cause one;
// the second verdict counts, and fails the test.
func (b *table) judge(t *testing.T, c cell) {
	t.Helper()
	rows := c(t)
	if slices.ContainsFunc(rows, Row.missed) {
		b.print("again", rows)
		rows = c(t)
	}
	b.print("", rows)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows += len(rows)
	for _, r := range rows {
		if r.missed() {
			b.misses = append(b.misses, r)
			t.Fail()
		}
	}
}

// print prints rows at once; note marks rows that do not count.
func (b *table) print(note string, rows []Row) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.headed {
		b.headed = true
		fmt.Printf("%8s  %s\n", "", Head())
	}
	for _, r := range rows {
		fmt.Printf("%7.1fs  %s", time.Since(b.begin).Seconds(), r)
		if note != "" {
			fmt.Printf(" (%s)", note)
		}
		fmt.Println()
	}
}

// failed returns the row of a cell without figures.
func failed(who, what string, err error) []Row {
	return []Row{{Who: who, What: what, Client: "-", Server: "-", Miss: strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "\n            ")}}
}

func (b *table) leave(what, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if line := what + ": " + why; len(b.leftOut) == 0 || b.leftOut[len(b.leftOut)-1] != line {
		b.leftOut = append(b.leftOut, line)
	}
}

// summary prints the totals.
func (b *table) summary() {
	if b.rows == 0 {
		return
	}
	fmt.Printf("\n%d rows in %.0f s, %d missed\n", b.rows, time.Since(b.begin).Seconds(), len(b.misses))
	for _, r := range b.misses {
		fmt.Println("missed:", r)
	}
	for _, l := range b.leftOut {
		fmt.Println("left out:", l)
	}
}

// TestMain prints which programs judge, and at the end the totals.
func TestMain(m *testing.M) {
	os.Setenv(lab.RequireVariable, "1") // with an explicit request for the judges no verdict may be skipped
	for _, name := range judges() {
		out, err := exec.Command(path(name), "-v").CombinedOutput() // iperf exits with 1 here
		version, _, _ := strings.Cut(string(out), "\n")
		if version == "" {
			version = fmt.Sprintf("absent: %v", err)
		}
		fmt.Printf("%s: %s\n", name, version)
	}
	if os.Getenv(newerVariable) == "" {
		results.leave("a newer iperf3", "name one with "+newerVariable+"=/path")
	}
	code := m.Run()
	results.summary()
	os.Exit(code)
}

// needs requires the programs without which there is no verdict.
func needs(t *testing.T) {
	t.Helper()
	for _, name := range judges() {
		lab.Require(t, lab.Program(path(name)))
	}
}

// newPair returns two hosts with the link for all tests.
func newPair(t *testing.T) *lab.Pair {
	t.Helper()
	needs(t)
	p := lab.NewPair(t, lab.Options{Rate: LinkRate})
	for _, h := range []*lab.Host{p.A, p.B} { // data in the senders' buffers must not be part of a figure
		h.Sysctl("net.ipv4.tcp_wmem", "4096 16384 524288")
	}
	return p
}

// ports hands out ports in sequence, so that no test waits for another's port.
type ports struct{ last int }

func (p *ports) next() int { p.last++; return p.last }

// eachShape runs a test for every shape of a pair of programs.
func eachShape(t *testing.T, client, server string, run func(t *testing.T, who string, s Shape) []Row) {
	who := client + " -> " + server
	t.Run(client+"-"+server, func(t *testing.T) {
		for _, s := range Shapes() {
			if why := LeftOut(kind(client), kind(server), s); why != "" {
				results.leave(who+" "+s.String(), why)
				continue
			}
			t.Run(s.String(), func(t *testing.T) {
				results.judge(t, func(t *testing.T) []Row { return run(t, who, s) })
			})
		}
	})
}

// TestJudges measures the real programs against themselves: how far their figures differ without thru, and
// that this harness reads them.
func TestJudges(t *testing.T) {
	p, at := newPair(t), &ports{5300}
	for _, name := range judges() {
		eachShape(t, name, name, func(t *testing.T, who string, s Shape) []Row {
			port := at.next()
			report := realServer(t, p.B, p.Data.B4, name, port, s)
			client, err := realClient(t, p.A, p.Data.B4, name, port, s)
			return compare(who, s, client, err, report)
		})
	}
}

// TestInterop judges thru as the client of real servers, and as the server of real clients.
func TestInterop(t *testing.T) {
	p, at := newPair(t), &ports{5300}
	for _, name := range judges() {
		eachShape(t, Thru, name, func(t *testing.T, who string, s Shape) []Row {
			port := at.next()
			report := realServer(t, p.B, p.Data.B4, name, port, s)
			client, err := thruClient(t, p.A, p.Data.B4, name, port, s)
			return compare(who, s, client, err, report)
		})
	}
	server := serve(t, p.B)
	for _, name := range judges() {
		eachShape(t, name, Thru, func(t *testing.T, who string, s Shape) []Row {
			n := server.told()
			client, err := realClient(t, p.A, p.Data.B4, name, servedPort(name), s)
			return compare(who, s, client, err, func() (Report, error) { return server.report(n) })
		})
	}
}

// compare judges the reports of both ends.
func compare(who string, s Shape, client Report, err error, report func() (Report, error)) []Row {
	server, serr := report()
	if err = cmp.Or(err, serr); err != nil {
		return failed(who, s.String(), err)
	}
	return Judge(who, s, client, server)
}
