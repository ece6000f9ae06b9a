package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/sock"
	dataplane "thru/internal/transfer/own"
	"thru/internal/unit"
)

// fileWait is how long EndFile waits for the end of a transfer: less than the silence
// that any client accepts.
const fileWait = 200 * time.Millisecond

var errFileEnded = errors.New("the client ended it")

// BeginFile answers bus.File.Begin.
func (a *Agent) BeginFile(ctx context.Context, client string, m bus.FileStart) (bus.FileReply, error) {
	doing := "reading a file"
	if m.Put {
		doing = "writing a file"
	}
	dir, name, err := a.fileAt(ctx, client, doing, m.Path)
	if err != nil {
		return bus.FileReply{}, err
	}
	defer dir.Close()
	listen, err := a.enter(client, doing)
	if err != nil {
		return bus.FileReply{}, err
	}
	defer a.leave("")
	end, err := a.openEnd(ctx, dir, name, m)
	if err != nil {
		return bus.FileReply{}, fileError(doing, m.Path, err)
	}
	from, _ := bus.ClientAddr(ctx)
	if len(a.conf.DataAddrs) > 0 { // data may use another network
		from = netip.Addr{}
	}
	door, err := dataplane.OpenDoor(ctx, sock.Range{Addrs: listen.Addrs, First: listen.First, Last: listen.Last, Offset: listen.Offset}, listen.Device, m.Buffer, from)
	if err != nil {
		end.drop()
		return bus.FileReply{}, fmt.Errorf("agent: %s: %w", doing, err)
	}
	x := &fileMove{job: newJob(client, movingFiles), door: door, end: end, rate: a.limits().RateBps, silence: fileSilence}
	if x.bytes.Store(end.size()); !bus.IsOwn(ctx) {
		x.longest = time.Duration(a.limits().DurationNs)
	}
	mctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	x.stop = func() { cancel(errFileEnded) }
	if err := a.keepFile(x); err != nil {
		cancel(nil)
		door.Close()
		end.drop()
		return bus.FileReply{}, fileError(doing, m.Path, err)
	}
	go func() {
		defer close(x.over)
		if err := x.move(mctx, end); err != nil {
			x.err = fileError(doing, m.Path, err)
		}
	}()
	return bus.FileReply{Session: x.session, Token: door.Token(), Port: door.Port(), Bytes: end.size()}, nil
}

// fileAt opens the folder of the file that a client names, and returns the file's
// name in it.
func (a *Agent) fileAt(ctx context.Context, client, doing, path string) (*os.Root, string, error) {
	if err := mayFiles(ctx); err != nil {
		return nil, "", err
	}
	if !a.turns.has(client) {
		return nil, "", errNotYourTurn(doing)
	}
	dir, name := filepath.Split(path)
	if !filepath.IsAbs(path) || name == "" || name == "." || name == ".." {
		return nil, "", fault.Usagef("give the absolute path of the file there, such as /srv/data/file", "agent: %s: %.200q is not the absolute path of a file", doing, path)
	}
	root, err := a.folder(doing, cmp.Or(strings.TrimRight(dir, `/\`), dir), bus.IsOwn(ctx))
	return root, name, err
}

// openEnd opens the file to send, or to write.
func (a *Agent) openEnd(ctx context.Context, dir *os.Root, name string, m bus.FileStart) (fileEnd, error) {
	if !m.Put {
		return openSource(dir, name)
	}
	if most := a.conf.Files.most(); !bus.IsOwn(ctx) && m.Bytes > most {
		return nil, fault.Because(bus.ReasonFull, fault.Failf("use a smaller file; its operator can allow more with --max-file", "this end point allows files up to %s", unit.Size(most)))
	}
	if m.Bytes < 0 {
		return nil, fault.Usagef("", "%d is not a file size", m.Bytes)
	}
	return openTarget(dir, name, m.Bytes, m.Overwrite)
}

// mostEnded bounds the ended transfers of a client that it has not fetched.
const mostEnded = 256

// keepFile adds a transfer to the running ones, unless the client is gone or has
// too many, or the file system has no room beside the other files. It adds the
// transfer before it checks the room, so that of two at once neither misses the other.
func (a *Agent) keepFile(x *fileMove) error {
	var promised int64
	if !a.keep(x, func() bool {
		promised = a.promised(x.end)
		return !a.measuresDisk() && count(a, func(*fileMove) bool { return true }) < mostEnded
	}) {
		return fault.Failf("try again", "the client has disconnected or has too many transfers, or the agent is shutting down")
	}
	err := x.end.fits(promised)
	if err != nil {
		close(x.over)
		a.forget(x)
	}
	return err
}

// promised returns the bytes still to be written to the same file system by other
// transfers. The caller holds mu.
func (a *Agent) promised(end fileEnd) (bytes int64) {
	at, written := end.place()
	count(a, func(x *fileMove) bool {
		device, taken := x.end.place()
		if written && taken && at == device && !x.isOver() {
			bytes += x.bytes.Load() - x.moved.Load()
		}
		return true
	})
	return bytes
}

// EndFile answers bus.File.End.
func (a *Agent) EndFile(ctx context.Context, client string, m bus.FileEnd) (bus.FileResult, error) {
	x, err := find[*fileMove](a, client, m.Session)
	if err != nil {
		return bus.FileResult{}, err
	}
	wait := time.After(fileWait)
	if m.End {
		x.stop()
		wait = nil
	}
	select {
	case <-x.over:
		a.forget(x)
		return bus.FileResult{Over: true, Bytes: x.moved.Load()}, x.err
	case <-wait:
	case <-ctx.Done():
	}
	return bus.FileResult{Bytes: x.moved.Load()}, nil
}

// FileSize answers bus.FileSize.
func (a *Agent) FileSize(ctx context.Context, client string, m bus.FilePath) (bus.FileSizeReply, error) {
	const doing = "reading the size of a file"
	dir, name, err := a.fileAt(ctx, client, doing, m.Path)
	if err != nil {
		return bus.FileSizeReply{}, err
	}
	defer dir.Close()
	info, err := dir.Stat(name)
	if err == nil {
		err = isFile(info)
	}
	if err != nil {
		return bus.FileSizeReply{}, fileError(doing, m.Path, err)
	}
	return bus.FileSizeReply{Bytes: info.Size()}, nil
}

// FileRemove answers bus.FileRemove: it removes files, not folders.
func (a *Agent) FileRemove(ctx context.Context, client string, m bus.FilePath) (bus.Empty, error) {
	const doing = "removing a file"
	dir, name, err := a.fileAt(ctx, client, doing, m.Path)
	if err != nil {
		return bus.Empty{}, err
	}
	defer dir.Close()
	info, err := dir.Lstat(name)
	if err == nil {
		err = isFile(info)
	}
	if err == nil {
		err = asWriting(dir.Remove(name))
	}
	if err != nil {
		return bus.Empty{}, fileError(doing, m.Path, err)
	}
	return bus.Empty{}, nil
}
