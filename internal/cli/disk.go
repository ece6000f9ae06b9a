package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/disk"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/remote"
	"thru/internal/report/transfer"
)

type diskCmd struct {
	Path     string        `arg:"" name:"path" help:"Folder of the file system to measure. thru creates an unnamed file in it, of at most half of the free space, and leaves nothing behind."`
	EndPoint string        `arg:"" optional:"" name:"end-point" help:"Host of that folder: a joined name (thru serve --allow files --files DIR), or ssh://[USER@]HOST[:PORT]; without it this machine."`
	Pattern  []string      `group:"What" name:"pattern" placeholder:"PATTERN" help:"Measure only these: seq-read, rand-read, seq-write, rand-write (default: all)."`
	Block    int64         `group:"What" name:"block" type:"size" like:"128K or 4K" placeholder:"SIZE" help:"Bytes of each access (default: 128K sequential, 4K random)."`
	Size     int64         `group:"What" name:"size" type:"size" like:"1G" placeholder:"SIZE" help:"Size of the file (default: 1G with direct I/O, else twice the memory; less if space is short or the disk is slow)."`
	Time     time.Duration `group:"What" short:"t" name:"time" type:"time" like:"3s" default:"3s" placeholder:"TIME" help:"Measured time of each step."`
	By       string        `group:"What" name:"by" placeholder:"METHOD" help:"fio, or thru for its own workers (default: fio where it is installed)."`
	Workers  int           `group:"What" name:"max-workers" default:"64" placeholder:"N" help:"Most workers: they are doubled until the total rises by less than 5% twice in a row."`
	NoMemory bool          `group:"What" name:"no-memory" help:"Skip the baseline: the same with a file in memory, and with /dev/zero and /dev/null."`
	Port     int           `group:"Ends" short:"p" default:"5200" help:"Control port of the end point."`
	formFlags
	storeFlags
}

// diskPatterns maps the pattern names of the command line to those of measure.
func diskPatterns() map[string]string {
	return map[string]string{
		"seq-read": measure.SequentialRead, "seq-write": measure.SequentialWrite, "rand-read": measure.RandomRead, "rand-write": measure.RandomWrite,
	}
}

// Run measures the disk of one folder.
func (c *diskCmd) Run(ctx context.Context, e *env) error {
	spec, err := c.spec()
	if err != nil {
		return err
	}
	out, err := c.wanted()
	if err != nil {
		return err
	}
	path, err := c.folder()
	if err != nil {
		return err
	}
	end, closeEnd, err := c.end(ctx, e)
	if err != nil {
		return err
	}
	defer closeEnd()
	w := newDiskWatch(e)
	runner := &control.Runner{Version: e.Version, Watch: w}
	doc, err := runner.Disk(ctx, end, bus.DiskStart{Path: path, Spec: spec}, w.tick)
	return e.concluded(doc, out, w, err)
}

// spec converts the flags to what to measure.
func (c *diskCmd) spec() (measure.DiskSpec, error) {
	s := measure.DiskSpec{By: c.By, Workers: c.Workers, NoMemory: c.NoMemory, BlockBytes: c.Block, FileBytes: c.Size, RunNs: int64(c.Time)}
	known := diskPatterns()
	for _, name := range splitList(c.Pattern) {
		p, ok := known[name]
		if !ok {
			return s, fault.Usagef("--pattern takes seq-read, rand-read, seq-write, rand-write", "--pattern %s: there is no such pattern", name)
		}
		s.Patterns = append(s.Patterns, p)
	}
	if c.Workers < 1 {
		return s, fault.Usagef("take 1 or more", "--max-workers %d: no worker would measure", c.Workers)
	}
	return s, disk.Check(s)
}

// folder returns the path for the agent: absolute for this host, unchanged for another.
func (c *diskCmd) folder() (string, error) {
	if c.Path == "" {
		return "", fault.Usagef("thru disk PATH [END POINT], such as thru disk /srv web1", "the path is empty")
	}
	if c.EndPoint != "" && c.EndPoint != control.Local {
		if !strings.HasPrefix(c.Path, "/") { // relative to which folder of that host is unknown
			return "", fault.Usagef("thru disk /srv "+c.EndPoint, "%s is not an absolute path", c.Path)
		}
		return c.Path, nil
	}
	if _, err := os.Lstat(c.Path); err != nil {
		if end, path, ok := strings.Cut(c.Path, ":/"); ok && end != "" && !strings.HasPrefix(path, "/") {
			return "", fault.Usagef(fmt.Sprintf("thru disk /%s %s", path, end), "%s: no such folder here", fault.Named(c.Path))
		}
	}
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return "", fmt.Errorf("cli: finding %s: %w", c.Path, err)
	}
	return path, nil
}

// end connects the end point that has the disk.
func (c *diskCmd) end(ctx context.Context, e *env) (*control.EndPoint, func(), error) {
	if _, err := remote.EngineOf(c.EndPoint); err != nil {
		return nil, nil, err
	}
	d := remote.Dialer{Network: e.network, Port: c.Port}
	if c.EndPoint == "" || c.EndPoint == control.Local {
		return d.Local(ctx, true)
	}
	return d.EndPoint(ctx, c.EndPoint)
}

// diskWatch shows the progress of a disk test on a terminal.
type diskWatch struct {
	*console.Board
	last time.Time
}

func newDiskWatch(e *env) *diskWatch { return &diskWatch{Board: e.Board(false)} }

func (w *diskWatch) tick(t measure.DiskTick) {
	if now := time.Now(); now.Sub(w.last) >= drawEvery {
		w.last = now
		w.Checking(transfer.DiskLive(t))
	}
}
