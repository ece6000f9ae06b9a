package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/disk"
	"thru/internal/fault"
	"thru/internal/measure"
)

// DefaultFileBytes is the largest file that a client from outside may have
// written here, unless told otherwise.
const DefaultFileBytes = 16 << 30

// Files says where clients that have the privilege for it may measure disks.
type Files struct {
	Folders  []string // absolute; below them and nowhere else
	MaxBytes int64    // of the file that is written; 0: DefaultFileBytes
}

// diskTest is the measurement of a disk for a client: one at a time.
type diskTest struct {
	client, session string
	cancel          context.CancelFunc
	over            chan struct{} // closed when test is complete
	test            measure.DiskTest
}

// Disk implements bus.Handler. Nothing else is measured here meanwhile.
func (a *Agent) Disk(ctx context.Context, client string, m bus.Disk) (bus.DiskReply, error) {
	own := bus.IsOwn(ctx)
	if !own && !bus.Allows(ctx, bus.PrivilegeFiles) {
		return bus.DiskReply{}, fault.Failf("ask for the string that `thru serve --allow files --files DIR` prints there, and keep it: thru join NAME --replace",
			"agent: this client may measure the network here, but no disk")
	}
	if !a.turns.has(client) {
		return bus.DiskReply{}, errNotYourTurn("measuring a disk")
	}
	if err := disk.Check(m.Spec); err != nil {
		return bus.DiskReply{}, err
	}
	c := disk.Config{Path: m.Path, Host: a.conf.Host, Spec: m.Spec}
	if !own {
		if longest := a.conf.Limits.DurationNs; m.Spec.RunNs > longest {
			return bus.DiskReply{}, fault.Failf(fmt.Sprintf("-t %.0f is the most there", time.Duration(longest).Seconds()), "agent: a step of %v is above this end point's limit", time.Duration(m.Spec.RunNs))
		}
		c.MaxBytes = a.conf.Files.most()
	}
	var err error
	if c.Root, err = a.folder(m.Path, own); err != nil {
		return bus.DiskReply{}, err
	}
	d, err := a.beginDisk(client)
	if err != nil {
		c.Root.Close()
		return bus.DiskReply{}, err
	}
	dctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.cancel = cancel
	if !a.keepDisk(d) {
		cancel()
		c.Root.Close()
		return bus.DiskReply{}, fault.Failf("", "agent: measuring a disk: the client has gone or the agent ends")
	}
	go a.measureDisk(dctx, d, c)
	return bus.DiskReply{Session: d.session}, nil
}

// most is the largest file that may be written.
func (f Files) most() int64 {
	if f.MaxBytes > 0 {
		return f.MaxBytes
	}
	return DefaultFileBytes
}

// beginDisk takes the place of the one disk test that there can be.
func (a *Agent) beginDisk(client string) (*diskTest, error) {
	if !a.isQuiet() {
		return nil, fault.Failf("try again when that has ended", "agent: measuring a disk has to wait: something else is measured here")
	}
	return &diskTest{client: client, session: newID(), over: make(chan struct{})}, nil
}

// keepDisk makes it the one under way; false where the client has gone, or another was quicker.
func (a *Agent) keepDisk(d *diskTest) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.disk != nil || a.opening > 0 || !a.turns.has(d.client) {
		return false
	}
	a.disk = d
	a.busy()
	return true
}

// measureDisk measures, and tells the client of its progress and its end.
func (a *Agent) measureDisk(ctx context.Context, d *diskTest, c disk.Config) {
	defer close(d.over)
	defer c.Root.Close()
	test, err := disk.Measure(ctx, c, func(t measure.DiskTick) {
		a.tell(d.client, bus.Event{Session: d.session, Kind: bus.EventProgress, Disk: &t})
	})
	e := bus.Event{Session: d.session, Kind: bus.EventDone}
	if err != nil {
		test.Error = &measure.Error{Message: err.Error(), Hint: fault.Hint(err), ExitCode: fault.Code(err)}
		e = bus.Event{Session: d.session, Kind: bus.EventFailed, Error: err.Error(), Hint: fault.Hint(err)}
	}
	d.test = test
	a.tell(d.client, e)
}

// Disked implements bus.Handler. The turn stays the client's.
func (a *Agent) Disked(ctx context.Context, client string, m bus.Disked) (bus.DiskedReply, error) {
	a.mu.Lock()
	d := a.disk
	a.mu.Unlock()
	if d == nil || d.client != client || d.session != m.Session {
		return bus.DiskedReply{}, fault.Failf("", "agent: disk test %q is not known", m.Session)
	}
	d.cancel()
	select {
	case <-d.over:
		a.forgetDisk(d)
		return bus.DiskedReply{Test: d.test}, nil
	case <-ctx.Done():
		return bus.DiskedReply{}, fault.Failf("the disk holds an access back; the test ends when it comes back", "agent: ending a disk test: %w", ctx.Err())
	}
}

// endDisk ends the disk test of a client, and forgets it.
// It waits: the turn is given on when the disk is quiet.
func (a *Agent) endDisk(client, session string) {
	a.mu.Lock()
	d := a.disk
	ours := d != nil && d.client == client && (session == "" || session == d.session)
	a.mu.Unlock()
	if !ours {
		return
	}
	d.cancel()
	<-d.over
	a.forgetDisk(d)
}

// forgetDisk makes room for the next one.
func (a *Agent) forgetDisk(d *diskTest) {
	a.mu.Lock()
	if a.disk == d {
		a.disk = nil
	}
	tell := a.busy
	a.mu.Unlock()
	tell()
}

// folder opens the one in which a client wants to measure. One from outside gets
// no further than the folders that the operator has named: not by "..", and not
// by a link that leads out of them (os.Root).
func (a *Agent) folder(path string, own bool) (*os.Root, error) {
	if own {
		return openFolder(path, os.OpenRoot)
	}
	if !filepath.IsAbs(path) || slices.Contains(strings.Split(filepath.ToSlash(path), "/"), "..") || strings.ContainsRune(path, 0) {
		return nil, fault.Usagef("name the folder by its whole path there, such as /srv", "agent: measuring a disk: %.200q is no absolute path without ..", path)
	}
	for _, dir := range a.conf.Files.Folders {
		rel, err := filepath.Rel(dir, filepath.Clean(path))
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		return openFolder(path, func(string) (*os.Root, error) {
			root, err := os.OpenRoot(dir)
			if err != nil || rel == "." {
				return root, err
			}
			defer root.Close()
			return root.OpenRoot(rel)
		})
	}
	where := strings.Join(a.conf.Files.Folders, ", ")
	if where == "" {
		return nil, fault.Failf("its operator names the folders: thru serve --allow files --files DIR", "agent: no disk can be measured here")
	}
	return nil, fault.Failf("disks can be measured there below "+where+"; its operator names more with --files DIR", "agent: measuring a disk: %.200q is not below a folder that this end point allows", path)
}

// openFolder opens a folder, and says what is wrong with a path that is none.
func openFolder(path string, open func(string) (*os.Root, error)) (*os.Root, error) {
	root, err := open(path)
	if err == nil {
		return root, nil
	}
	reason := err
	var at *os.PathError
	if errors.As(err, &at) {
		reason = at.Err
	}
	hint := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		hint = "name a folder that is there"
	case errors.Is(err, fs.ErrPermission):
		hint = "name a folder that the user may write to under whom thru runs there"
	case strings.Contains(err.Error(), "not a directory"): // os.Root has no value for it
		return nil, fault.Usagef("name the folder that it is in: "+filepath.Dir(path), "agent: measuring a disk: %.200s is no folder", path)
	case strings.Contains(err.Error(), "escapes"):
		hint = "a link there leads out of the folders that this end point allows"
	}
	return nil, fault.Usagef(hint, "agent: measuring a disk: %.200s: %w", path, reason)
}
