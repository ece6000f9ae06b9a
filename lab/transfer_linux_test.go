package lab_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"thru/internal/measure"
	"thru/internal/unit"
	"thru/lab"
	"thru/lab/wire"
)

// binding is a transfer with a deliberate limit, and the finding that it must give.
type binding struct {
	name     string
	path     func(testing.TB) *lab.Pair
	protocol string
	upload   bool
	size     int64    // MiB
	more     string   // a line of the server's configuration
	slow     string   // disk of 10 MB/s: slowHere, slowThere
	unnamed  bool     // the command does not name the server's folder
	alone    bool     // runs alone
	quota    int      // us of CPU that the server has in each 100 ms; 0: all
	flags    string   // of thru transfer
	layer    string   // layer that limits
	causes   []string // one of them must be the first finding
}

// Ends whose disk can be slow, and the rate of a slow disk in bytes a second.
const (
	slowHere, slowThere = "here", "there"
	slowDisk            = 10_000_000
)

// capped is a link with a rate limit and without delay.
func capped(rate int64) func(testing.TB) *lab.Pair {
	return func(t testing.TB) *lab.Pair { t.Helper(); return lab.NewPair(t, lab.Options{Rate: rate}) }
}

// far is 200 Mb/s over 20 ms, with a queue of 50 ms.
func far(t testing.TB) *lab.Pair {
	t.Helper()
	const rate = 200_000_000
	direction := wire.Impairment{Rate: rate, Delay: 10 * time.Millisecond, Queue: rate / 8 / 20}
	return lab.NewWired(t, lab.WiredOptions{AtoB: direction, BtoA: direction}).Pair
}

// TestTransferLayer: thru names the network where it limits, and the server where that limits.
func TestTransferLayer(t *testing.T) {
	t.Parallel()
	for _, b := range []binding{
		{name: "link", path: capped(100e6), protocol: "http", size: 20, layer: measure.LayerNetwork, causes: []string{"network", "shaper", "link-rate"}},
		{name: "server", path: capped(100e6), protocol: "http", size: 5, more: "limit_rate 3m;", layer: measure.LayerMemory, causes: []string{"app-limited"}},
	} {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			b.check(t)
		})
	}
}

// TestTransferWarmUp: the first pass from the server's slow disk does not count as the result, with any
// protocol.
func TestTransferWarmUp(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"http", "nfs", "nfs4"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			b := binding{name: "cold", path: capped(1e9), protocol: protocol, size: 20, slow: slowThere, flags: "--no-ceiling", unnamed: true}
			doc := b.transfer(t)
			if doc.Error != nil || len(doc.Transfer.Runs) != 1 {
				t.Fatalf("no result: %+v", doc.Error)
			}
			run, best := doc.Transfer.Runs[0], 0.0
			if len(run.Passes) > 1 {
				best = slices.Max(run.Passes[1:])
			}
			if best == 0 || best < 2*run.Passes[0] || run.Bps.Value != best {
				t.Errorf("passes %v, figure %s", run.Passes, unit.Rate(run.Bps.Value))
			}
			if said := strings.Join(doc.Warnings, "\n"); !strings.Contains(said, "filled the server's cache") {
				t.Errorf("nothing is said of the first pass: %s", said)
			}
		})
	}
}

// check runs the transfer and checks its findings.
func (b binding) check(t *testing.T) {
	t.Helper()
	doc := b.transfer(t)
	x := doc.Transfer
	if doc.Error != nil || x == nil || len(doc.Findings) == 0 {
		t.Fatalf("no result: %+v", doc.Error)
	}
	b.keep(t, doc)
	f := doc.Findings[0]
	row := []string{}
	for _, l := range x.Layers {
		if l.Bps != nil {
			row = append(row, l.Name+" "+unit.Rate(*l.Bps))
		}
	}
	t.Logf("MATRIX %s\t%s\t%s: %s (%s)\t%s", b.title(), strings.Join(row, ", "), x.Binds, f.Cause, f.Confidence, f.Summary)
	if x.Binds != b.layer && b.layer != "" {
		t.Errorf("%q binds, want %q", x.Binds, b.layer)
	}
	atServer := slices.Contains(b.causes, "app-limited") && !slices.Contains(b.causes, "client") // this end is not the limit
	if b.layer == measure.LayerDiskFar && f.Where.EndPoint != "server" || atServer && f.Where.EndPoint == "local" {
		t.Errorf("%s is laid to %+v", f.Cause, f.Where)
	}
	if !slices.Contains(b.causes, f.Cause) {
		t.Errorf("the cause is %q, want one of %v: %+v", f.Cause, b.causes, f)
	}
}

// keepVariable names a folder to keep the documents in.
const keepVariable = "THRU_LAB_KEEP"

func (b binding) keep(t *testing.T, doc *measure.Document) {
	t.Helper()
	dir := os.Getenv(keepVariable)
	if dir == "" {
		return
	}
	text, err := json.MarshalIndent(doc, "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, strings.ReplaceAll(b.title(), " ", "-")+".json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (b binding) title() string {
	direction := "down"
	if b.upload {
		direction = "up"
	}
	return strings.Join([]string{b.name, b.protocol, direction}, " ")
}

// transfer builds the path, server, agent and limits, and runs the command.
func (b binding) transfer(t *testing.T) *measure.Document {
	t.Helper()
	p := b.path(t)
	there := place{host: p.B, addr: p.Data.B4.String(), folder: b.folder(t), more: b.more}
	var here []string
	switch b.slow {
	case slowHere:
		here = append(here, lab.SlowDisk(t, t.TempDir(), slowDisk, slowDisk))
	case slowThere:
		there.limits = append(there.limits, lab.SlowDisk(t, there.folder, slowDisk, slowDisk))
	}
	home := there.agent(t, p.A) // the disk's limit applies to the agent too, the CPU quota only to the server
	if b.quota > 0 {
		there.limits = append(there.limits, lab.Group(t, "cpu", map[string]string{"cpu.cfs_quota_us": fmt.Sprint(b.quota)}, map[string]string{"cpu.max": fmt.Sprint(b.quota, " 100000")}))
	}
	server := servers()[b.protocol](t, there)
	args := append([]string{"transfer", "--json", "--end-point", "server", "-t", "1"}, server.args...)
	args = append(args, strings.Fields(b.flags)...)
	if b.slow == slowThere && !b.unnamed {
		args = append(args, "--server-folder", there.folder)
	}
	args = append(args, b.amount(t, there.folder)...)
	return command(t, p.A, home, here, server.env, append(args, server.url+"f"))
}

// folder is the server's folder: in memory, except where its disk must show.
func (b binding) folder(t *testing.T) string {
	t.Helper()
	parent := t.TempDir()
	if b.slow != slowThere && b.protocol != "nfs" {
		dir, err := os.MkdirTemp("/dev/shm", "thru-lab-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		parent = dir
	}
	dir := filepath.Join(parent, "files")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(parent, 0o755); err != nil { // MkdirTemp makes it for its owner alone
		t.Fatal(err)
	}
	return dir
}

// amount makes the files, and returns the arguments that select the amount.
func (b binding) amount(t *testing.T, folder string) (args []string) {
	t.Helper()
	mine := t.TempDir()
	if b.slow != slowHere {
		args = append(args, "--no-disk")
	}
	switch {
	case b.upload && b.slow == slowHere:
		return append(args, "--upload", "--no-read-back", "--from", coldFile(t, mine, b.size))
	case b.upload:
		return append(args, "--upload", "--no-read-back", "--size", fmt.Sprintf("%dM", b.size))
	}
	coldFile(t, folder, b.size)
	if b.slow == slowHere {
		args = append(args, "--to", filepath.Join(mine, "f"))
	}
	return args
}

// coldFile makes a file of random bytes that is not in the page cache.
func coldFile(t *testing.T, dir string, mib int64) string {
	t.Helper()
	name := filepath.Join(dir, "f")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	random, block := rand.NewChaCha8([32]byte{}), make([]byte, 1<<20)
	_, _ = random.Read(block)
	for i := range mib {
		block[0] = byte(i)
		if _, err := f.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) // does nothing on tmpfs, whose files are only in memory
	return name
}

// transferLimit bounds one command, far above the usual time.
const transferLimit = 100 * time.Second

// command runs thru in a host, in control groups, and returns its document.
func command(t *testing.T, h *lab.Host, home string, groups, env, args []string) *measure.Document {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), transferLimit)
	defer cancel()
	cmd := h.Command(ctx, lab.Binary(t), args...)
	groupsFirst(cmd, groups)
	var stdout, stderr output
	cmd.Env = append(append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CACHE_HOME="), env...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var doc measure.Document
	if wrong := json.Unmarshal([]byte(stdout.String()), &doc); wrong != nil || err != nil {
		t.Fatalf("thru %s: %v\n%s%s", strings.Join(args, " "), err, shorten(stdout.String()), shorten(stderr.String()))
	}
	return &doc
}
