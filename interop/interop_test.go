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

// newer is the iperf3 that the variable names, beside the one on PATH.
const (
	newer         = "iperf3-newer"
	newerVariable = "IPERF3"
)

// kind is the program that a name stands for.
func kind(name string) string {
	if name == newer {
		return IPerf3
	}
	return name
}

// judges are the real programs: those on PATH, and the newer one where it is named.
func judges() []string {
	if os.Getenv(newerVariable) == "" {
		return []string{IPerf3, IPerf2}
	}
	return []string{IPerf3, newer, IPerf2}
}

// table prints the rows as they come, and keeps the misses for the end.
type table struct {
	mu      sync.Mutex
	begin   time.Time
	rows    int
	headed  bool
	misses  []Row
	leftOut []string
}

var results = &table{begin: time.Now()}

// cell measures, and says what came of it.
type cell func(t *testing.T) []Row

// judge prints a cell's rows. A miss is measured once more, since what else the
// machine does can make one; the second verdict counts, and fails the test.
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

// print shows rows at once; note says that they do not count.
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

// failed is the row of a cell that gave no figures.
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

// summary says what came of it all.
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

// TestMain says which programs judge, and in the end what came of it.
func TestMain(m *testing.M) {
	os.Setenv(lab.RequireVariable, "1") // whoever asks for the judges wants no skipped verdict
	for _, name := range judges() {
		out, err := exec.Command(path(name), "-v").CombinedOutput() // iperf ends with 1 here
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

// needs are the programs without which there is no verdict.
func needs(t *testing.T) {
	t.Helper()
	for _, name := range judges() {
		lab.Require(t, lab.Program(path(name)))
	}
}

// newPair is two hosts with the link that all is judged over.
func newPair(t *testing.T) *lab.Pair {
	t.Helper()
	needs(t)
	p := lab.NewPair(t, lab.Options{Rate: LinkRate})
	for _, h := range []*lab.Host{p.A, p.B} { // what waits in the senders' buffers shall be no part of a figure that counts
		h.Sysctl("net.ipv4.tcp_wmem", "4096 16384 524288")
	}
	return p
}

// ports are handed out one after the other, so that no test waits for a port of another.
type ports struct{ last int }

func (p *ports) next() int { p.last++; return p.last }

// eachShape runs a test for every shape that a pair of programs has.
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

// TestJudges measures the real programs against themselves: what their
// figures differ by without thru, and that this harness reads them.
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

// compare is the verdict on what both ends said.
func compare(who string, s Shape, client Report, err error, report func() (Report, error)) []Row {
	server, serr := report()
	if err = cmp.Or(err, serr); err != nil {
		return failed(who, s.String(), err)
	}
	return Judge(who, s, client, server)
}
