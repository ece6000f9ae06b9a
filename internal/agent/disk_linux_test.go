package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/measure"
)

// quickDisk is a disk test of less than a second.
func quickDisk(path string) bus.DiskStart {
	return bus.DiskStart{Path: path, Spec: measure.DiskSpec{Patterns: []string{measure.SequentialRead}, FileBytes: 4 << 20, RunNs: int64(measure.LeastDiskRun), By: measure.DiskByThru, Workers: 1, NoMemory: true}}
}

// endless returns a disk test that has to be ended.
func endless(path string) bus.DiskStart {
	m := quickDisk(path)
	m.Spec.RunNs = int64(time.Hour)
	return m
}

// stranger connects to an agent as a remote client with a privilege.
func stranger(t *testing.T, a *Agent, privilege string) *bus.Client {
	t.Helper()
	s, _, err := bus.Listen(t.Context(), bus.ServerConfig{Addrs: []string{"127.0.0.1:0"}, Allow: bus.Privileges()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	service, err := bus.Serve(s, a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { service.Close() })
	a.Publisher(service.Publish)
	j := s.JoinFor(privilege, nil)
	c, err := bus.Dial(t.Context(), bus.DialConfig{Addrs: j.Control, Secret: j.Secret, Pin: j.Pin})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ended waits for the last event of a disk test, and counts those before it.
func ended(t *testing.T, c *bus.Client, session string) (last bus.Event, ticks int) {
	t.Helper()
	over := time.After(30 * time.Second)
	for {
		select {
		case e := <-c.Events():
			if e.Session != session {
				t.Fatalf("an event of %q", e.Session)
			}
			if e.Kind != bus.EventProgress {
				return e, ticks
			}
			if e.Disk != nil {
				ticks++
			}
		case <-over:
			t.Fatal("it does not end")
		}
	}
}

// TestDiskOfRemoteClients: a client with the privilege can measure in the configured
// folders only.
func TestDiskOfRemoteClients(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "in"), 0o700), os.WriteFile(filepath.Join(dir, "file"), nil, 0o600),
		os.Symlink(outside, filepath.Join(dir, "out")), os.Symlink("in", filepath.Join(dir, "link")), os.Mkdir(dir+"-beside", 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	a, _, _ := newFake(t, DefaultLimits())
	a.conf.Files = Files{Folders: []string{dir}, MaxBytes: 8 << 20}
	c := stranger(t, a, bus.PrivilegeFiles)
	if _, err := bus.Call(t.Context(), c, bus.Disk.Begin, quickDisk(dir)); err == nil || !strings.Contains(err.Error(), "turn") {
		t.Error("without the turn:", err)
	}
	if r, err := bus.Call(t.Context(), c, bus.Reserve, bus.ReserveRequest{}); err != nil || !r.Granted {
		t.Fatal(r, err)
	}
	refused := map[string]string{
		outside: "not below", dir + "/../" + filepath.Base(outside): "without ..", dir + "/in/../..": "without ..", "in": "not an absolute path", "": "not an absolute path",
		dir + "-beside": "not below", dir + "/none": "no such file", dir + "/file": "not a folder", dir + "/out": "escapes", "/": "not below", dir + "\x00": "not an absolute path",
	}
	for path, want := range refused {
		if _, err := bus.Call(t.Context(), c, bus.Disk.Begin, quickDisk(path)); err == nil || !strings.Contains(err.Error(), want) || fault.Hint(err) == "" {
			t.Errorf("%q: %v (%s), want %q", path, err, fault.Hint(err), want)
		}
	}
	for _, path := range []string{dir, dir + "/", dir + "/in", dir + "/link", dir + "/./in"} {
		r, err := bus.Call(t.Context(), c, bus.Disk.Begin, quickDisk(path))
		if err != nil {
			t.Errorf("%q: %v", path, err)
			continue
		}
		last, ticks := ended(t, c, r.Session)
		if last.Kind != bus.EventDone || ticks == 0 {
			t.Errorf("%q: %+v after %d ticks", path, last, ticks)
		}
		got, err := bus.Call(t.Context(), c, bus.Disk.End, bus.JobEnd(r))
		if err != nil || len(got.Test.Runs) != 1 || got.Test.Path != path || got.Test.Error != nil {
			t.Errorf("%q: %+v %v", path, got, err)
		}
		if _, err := bus.Call(t.Context(), c, bus.Disk.End, bus.JobEnd(r)); err == nil {
			t.Error("it is reported twice")
		}
	}
	tooLarge := quickDisk(dir)
	tooLarge.Spec.FileBytes = 9 << 20
	r, err := bus.Call(t.Context(), c, bus.Disk.Begin, tooLarge)
	if err != nil {
		t.Fatal(err)
	}
	if last, _ := ended(t, c, r.Session); last.Kind != bus.EventFailed || !strings.Contains(last.Error, "at most 8 MiB") || last.Hint == "" {
		t.Errorf("%+v", last)
	}
	if got, err := bus.Call(t.Context(), c, bus.Disk.End, bus.JobEnd(r)); err != nil || got.Test.Error == nil || got.Test.Error.ExitCode != fault.Failed {
		t.Errorf("%+v %v", got, err)
	}
	tooLong := quickDisk(dir)
	tooLong.Spec.RunNs = a.conf.Limits.DurationNs + 1
	if a.conf.Limits.DurationNs < int64(measure.MostDiskRun) {
		if _, err := bus.Call(t.Context(), c, bus.Disk.Begin, tooLong); err == nil {
			t.Error("a step above the limit")
		}
	}
}

// TestDiskPrivilege: the privilege to measure does not include disks, and without
// configured folders no remote client can measure them.
func TestDiskPrivilege(t *testing.T) {
	dir := t.TempDir()
	a, _, _ := newFake(t, DefaultLimits())
	a.conf.Files = Files{Folders: []string{dir}}
	for _, p := range []string{bus.PrivilegeMeasure, bus.PrivilegeTune} {
		c := stranger(t, a, p)
		bus.Call(t.Context(), c, bus.Reserve, bus.ReserveRequest{})
		if _, err := bus.Call(t.Context(), c, bus.Disk.Begin, quickDisk(dir)); err == nil || !strings.Contains(fault.Hint(err), "--allow files") {
			t.Errorf("%s: %v (%s)", p, err, fault.Hint(err))
		}
		bus.Call(t.Context(), c, bus.Release, bus.ReleaseRequest{})
	}
	none, _, _ := newFake(t, DefaultLimits())
	c := stranger(t, none, bus.PrivilegeFiles)
	bus.Call(t.Context(), c, bus.Reserve, bus.ReserveRequest{})
	if _, err := bus.Call(t.Context(), c, bus.Disk.Begin, quickDisk(dir)); err == nil || !strings.Contains(fault.Hint(err), "--files DIR") {
		t.Errorf("%v (%s)", err, fault.Hint(err))
	}
}

// TestDiskKeepsOthersOut: a disk test runs alone, and ends with its client.
func TestDiskKeepsOthersOut(t *testing.T) {
	dir := t.TempDir()
	a, _, _ := newFake(t, DefaultLimits())
	c := own(t, a)
	a.Publisher(c.Publish)
	ctx := t.Context()
	if r, err := bus.Call(ctx, c, bus.Reserve, bus.ReserveRequest{Together: true}); err != nil || !r.Granted {
		t.Fatal(r, err)
	}
	if r, _ := a.Reserve(ctx, "other", bus.ReserveRequest{Together: true}); !r.Granted {
		t.Fatal(r)
	}
	flow, err := prepare(a, "other", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bus.Call(ctx, c, bus.Disk.Begin, endless(dir)); err == nil || !strings.Contains(err.Error(), "another test runs here") {
		t.Error("a disk during a flow:", err)
	}
	if _, err := a.Release(ctx, "other", bus.ReleaseRequest{Session: flow.Session}); err != nil {
		t.Fatal(err)
	}
	r, err := bus.Call(ctx, c, bus.Disk.Begin, endless(dir))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bus.Call(ctx, c, bus.Disk.Begin, endless(dir)); err == nil {
		t.Error("two disk tests at a time")
	}
	a.Reserve(ctx, "other", bus.ReserveRequest{Together: true})
	if _, err := prepare(a, "other", nil); err == nil || !strings.Contains(err.Error(), "a disk test runs") {
		t.Error("a flow during a disk test:", err)
	}
	if got := a.Busy(); !strings.Contains(got, "a disk") {
		t.Error(got)
	}
	if _, err := a.EndDisk(ctx, "other", bus.JobEnd(r)); err == nil {
		t.Error("another's test is ended")
	}
	got, err := bus.Call(ctx, c, bus.Disk.End, bus.JobEnd(r)) // during the test
	if err != nil || got.Test.Error == nil || got.Test.Path != dir {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := bus.Call(ctx, c, bus.Disk.Begin, endless(dir)); err != nil {
		t.Error("after one that was ended:", err)
	}
	c.Close()
	deadline, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for a.Busy() != "" && strings.Contains(a.Busy(), "a disk") && deadline.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if got := a.Busy(); strings.Contains(got, "a disk") {
		t.Error("it goes on without its client:", got)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v %v", entries, err)
	}
}
