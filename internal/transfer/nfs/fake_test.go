package nfs

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"thru/internal/transfer"
	"thru/internal/transfer/transfertest"
)

// fake is a server in this process, over a folder, for machines without a
// real one, and for behaviour that a real one does not show on request.
type fake struct {
	root  string // of the file system; it exports all below
	short bool   // moves at most 1000 bytes a call
	boots bool   // changes its verifier each time
	busy  int    // number of calls that it first answers with JUKEBOX

	mu    sync.Mutex
	paths []string // by handle
	boot  uint64
	calls sync.WaitGroup
}

// serve runs the server, and returns the folder files of its root.
func (f *fake) serve(t *testing.T) transfertest.Server {
	t.Helper()
	f.root = t.TempDir()
	folder := filepath.Join(f.root, "export", "files")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); f.calls.Wait() })
	f.calls.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f.calls.Go(func() { f.connection(conn) })
		}
	})
	host, port, _ := net.SplitHostPort(l.Addr().String())
	return transfertest.Server{
		Config: transfer.Config{Host: host, Port: port, Path: "export/files/x"},
		Folder: folder, Dir: "export/files",
	}
}

func (f *fake) connection(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		record, err := readRecord(in)
		if err != nil || len(record) < 24 {
			return
		}
		r := &reader{b: record}
		xid := r.uint32()
		r.bytes(8)
		program, _, number := r.uint32(), r.uint32(), r.uint32()
		for range 2 {
			r.uint32()
			r.opaque(400)
		}
		reply := appendUint32(make([]byte, 4), xid, msgReply, 0, authNone, 0, 0)
		if program == mountProgram {
			reply = f.mount(reply, r, number)
		} else {
			reply = f.nfs(reply, r, number)
		}
		binary.BigEndian.PutUint32(reply, lastPiece|uint32(len(reply)-4))
		if _, err := conn.Write(reply); err != nil {
			return
		}
	}
}

// handle is a path's number; path is the way back.
func (f *fake) handle(p string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.paths = append(f.paths, p)
	return appendUint32(nil, uint32(len(f.paths)-1))
}

func (f *fake) path(r *reader) string {
	n := (&reader{b: r.opaque(maxHandle)}).uint32()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.paths[n]
}

func (f *fake) entry(r *reader) string { dir := f.path(r); return dir + "/" + string(r.opaque(4096)) }

func (f *fake) mount(reply []byte, r *reader, number uint32) []byte {
	const mnt = 1
	if number != mnt {
		return reply
	}
	p := filepath.Join(f.root, string(r.opaque(4096)))
	info, err := os.Stat(p)
	switch {
	case err != nil:
		return appendUint32(reply, 2)
	case !info.IsDir():
		return appendUint32(reply, 20)
	}
	return appendUint32(appendOpaque(appendUint32(reply, 0), f.handle(p)), 1, authSys)
}

// code returns the status for an error.
func code(err error) uint32 {
	var errno syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.Is(err, fs.ErrNotExist):
		return 2
	case errors.Is(err, fs.ErrExist):
		return 17
	case errors.As(err, &errno):
		return uint32(errno)
	}
	return 5
}

// weak adds no attributes before and after.
func weak(b []byte) []byte { return appendUint32(b, 0, 0) }

func appendAttributes(b []byte, info fs.FileInfo) []byte {
	kind := uint32(1)
	if info.IsDir() {
		kind = 2
	}
	b = appendUint64(appendUint32(b, kind, 0o644, 1, 0, 0), uint64(info.Size()))
	return append(b, make([]byte, 56)...)
}

func (f *fake) nfs(reply []byte, r *reader, number uint32) []byte {
	if f.late() {
		return appendUint32(reply, codeDelay, 0, 0)
	}
	switch number {
	case procGetAttr.number:
		info, err := os.Stat(f.path(r))
		if reply = appendUint32(reply, code(err)); err == nil {
			reply = appendAttributes(reply, info)
		}
	case procLookup.number:
		p := f.entry(r)
		_, err := os.Stat(p)
		if reply = appendUint32(reply, code(err)); err == nil { // leaves the attributes to GETATTR
			reply = appendUint32(appendOpaque(reply, f.handle(p)), 0)
		}
		reply = appendUint32(reply, 0)
	case procFSInfo.number:
		return appendUint32(reply, 0, 0, 1<<20, 65536, 4096, 65536, 65536, 4096, 4096)
	case procRead.number:
		return f.read(reply, r)
	case procWrite.number:
		return f.write(reply, r)
	case procCreate.number:
		file, err := os.OpenFile(f.entry(r), os.O_CREATE|os.O_EXCL, 0o644)
		file.Close()
		return weak(appendUint32(reply, code(err), 0, 0)) // leaves the handle to LOOKUP
	case procRemove.number:
		return weak(appendUint32(reply, code(os.Remove(f.entry(r)))))
	case procRename.number:
		from := f.entry(r)
		return weak(weak(appendUint32(reply, code(os.Rename(from, f.entry(r))))))
	case procCommit.number:
		return appendUint64(weak(appendUint32(reply, 0)), f.verifier())
	}
	return reply
}

func (f *fake) late() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy--
	return f.busy >= 0
}

func (f *fake) verifier() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.boots {
		f.boot++
	}
	return f.boot
}

func (f *fake) most(n uint32) uint32 {
	if f.short {
		return min(n, 1000)
	}
	return n
}

func (f *fake) read(reply []byte, r *reader) []byte {
	p, off := f.path(r), r.uint64()
	file, err := os.Open(p)
	if err != nil {
		return appendUint32(reply, code(err), 0)
	}
	defer file.Close()
	b := make([]byte, f.most(r.uint32()))
	n, _ := file.ReadAt(b, int64(off))
	return appendOpaque(appendUint32(reply, 0, 0, uint32(n), 0), b[:n])
}

func (f *fake) write(reply []byte, r *reader) []byte {
	p, off, count := f.path(r), r.uint64(), r.uint32()
	r.uint32()
	file, err := os.OpenFile(p, os.O_WRONLY, 0)
	if err != nil {
		return weak(appendUint32(reply, code(err)))
	}
	defer file.Close()
	count = f.most(count)
	_, err = file.WriteAt(r.opaque(maxRecord)[:count], int64(off))
	reply = weak(appendUint32(reply, code(err)))
	return appendUint64(appendUint32(reply, count, 0), f.verifier())
}
