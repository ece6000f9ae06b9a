package nfs

import (
	"bufio"
	"encoding/binary"
	"io"
	"slices"
	"strings"
)

// Files is what Answer serves: one folder without subfolders.
type Files interface {
	// Size returns the size of a file; false where there is none.
	Size(name string) (int64, bool)
	// Grow makes a file at least so long, creating it if needed.
	Grow(name string, size int64)
	// Rename renames a file and replaces an existing one; false where there
	// is none.
	Rename(from, to string) bool
	// Remove removes a file; false where there is none.
	Remove(name string) bool
	// Fill returns the contents of a file from an offset.
	Fill(b []byte, offset int64)
}

// Answer serves one connection until it ends, by version 3 or by 4.1 only:
// the server against which this package's client is measured. It supports
// only that client's calls; written data is counted and discarded.
func Answer(conn io.ReadWriter, files Files, four bool) error {
	a := answers{files, four}
	in := bufio.NewReaderSize(conn, 64<<10)
	var record, reply []byte
	for {
		var err error
		if record, err = readInto(in, record[:0]); err != nil {
			return err
		}
		reply = a.answer(append(reply[:0], 0, 0, 0, 0), &reader{b: record})
		binary.BigEndian.PutUint32(reply, lastPiece|uint32(len(reply)-4))
		if _, err := conn.Write(reply); err != nil {
			return err
		}
	}
}

// Statuses in replies (nfsstat3).
const (
	statusMissing = 2
	statusExists  = 17
	statusLong    = 63
	statusStale   = 70
)

// rootHandle is the handle of the folder; that of a file is its name after
// fileMark.
const (
	rootHandle = "/"
	fileMark   = "f"
)

type answers struct {
	files Files
	four  bool
}

// answer adds the reply to one call (RFC 5531, section 9).
func (a answers) answer(reply []byte, r *reader) []byte {
	const unavailable, unknown, garbage = 1, 3, 4
	xid := r.uint32()
	r.bytes(8) // that it is a call, of version 2
	program, version, number := r.uint32(), r.uint32(), r.uint32()
	for range 2 { // credential and verifier
		r.uint32()
		r.opaque(maxVerf)
	}
	reply = appendUint32(reply, xid, msgReply, 0, authNone, 0)
	head := len(reply)
	reply = appendUint32(reply, 0)
	known := true
	switch {
	case a.four && program == nfsProgram && version == fourVersion:
		reply = a.compound(reply, r)
	case a.four || program != nfsProgram && program != mountProgram || version != nfsVersion:
		return appendUint32(reply[:head], unavailable)
	default:
		reply, known = a.call(reply, r, program, number)
	}
	switch {
	case r.bad:
		return appendUint32(reply[:head], garbage)
	case !known:
		return appendUint32(reply[:head], unknown)
	}
	return reply
}

// call executes a call; false for an unknown one.
func (a answers) call(reply []byte, r *reader, program, number uint32) (_ []byte, known bool) {
	const mnt, umnt = 1, 3
	switch {
	case program == mountProgram && number == mnt:
		return mountRoot(reply, r), true
	case program == mountProgram && number == umnt:
		return reply, true
	case program == mountProgram:
		return reply, false
	}
	switch number {
	case procRead.number:
		return a.read(reply, r), true
	case procWrite.number:
		return a.write(reply, r), true
	case procGetAttr.number:
		return a.getAttr(reply, r), true
	case procLookup.number:
		return a.lookup(reply, r), true
	case procCreate.number:
		return a.create(reply, r), true
	case procRemove.number:
		return a.remove(reply, r), true
	case procRename.number:
		return a.rename(reply, r), true
	case procFSInfo.number:
		return fsInfo(reply), true
	case procCommit.number:
		return commit(reply), true
	}
	return reply, false
}

func mountRoot(reply []byte, r *reader) []byte {
	if string(r.opaque(maxRecord)) != "/" {
		return appendUint32(reply, statusMissing)
	}
	return appendUint32(appendOpaque(appendUint32(reply, 0), rootHandle), 1, authSys)
}

// file returns the name that a handle stands for.
func (a answers) file(r *reader) (name string, size int64, ok bool) {
	name, ok = strings.CutPrefix(string(r.opaque(maxHandle)), fileMark)
	if ok {
		size, ok = a.files.Size(name)
	}
	return name, size, ok
}

// entry reads a name in the folder, after the folder's handle.
func entry(r *reader) string {
	r.opaque(maxHandle)
	return string(r.opaque(maxRecord))
}

func appendAttr(reply []byte, kind uint32, size int64) []byte {
	reply = appendUint64(appendUint32(reply, kind, 0o644, 1, 0, 0), uint64(size))
	return append(reply, make([]byte, 56)...)
}

// nothing adds the attributes that every reply may leave out: before and
// after.
func nothing(reply []byte) []byte { return appendUint32(reply, 0, 0) }

func (a answers) getAttr(reply []byte, r *reader) []byte {
	_, size, ok := a.file(r)
	if !ok {
		return appendUint32(reply, statusStale)
	}
	return appendAttr(appendUint32(reply, 0), 1, size)
}

func (a answers) lookup(reply []byte, r *reader) []byte {
	name := entry(r)
	size, ok := a.files.Size(name)
	if !ok {
		return appendUint32(reply, statusMissing, 0)
	}
	reply = appendOpaque(appendUint32(reply, 0), fileMark+name)
	return appendUint32(appendAttr(appendUint32(reply, 1), 1, size), 0)
}

// fsInfo returns limits not below those of the client (RFC 1813, 3.3.19).
func fsInfo(reply []byte) []byte {
	return appendUint32(reply, 0, 0, largest, largest, 4096, largest, largest, 4096, 4096)
}

func (a answers) read(reply []byte, r *reader) []byte {
	_, size, ok := a.file(r)
	offset, count := r.uint64(), r.uint32()
	if !ok || r.bad || offset > uint64(size) {
		return appendUint32(reply, statusStale, 0)
	}
	n, end := part(size, offset, count)
	return a.fill(appendUint32(reply, 0, 0, uint32(n), end), offset, n)
}

// part returns how much of a file follows an offset, and whether (1) it
// reaches the end.
func part(size int64, offset uint64, count uint32) (n int, end uint32) {
	if left := uint64(size) - offset; left <= uint64(min(count, largest)) {
		return int(left), 1
	}
	return int(min(count, largest)), 0
}

// fill adds bytes of a file with their length.
func (a answers) fill(reply []byte, offset uint64, n int) []byte {
	reply = appendUint32(reply, uint32(n))
	begin := len(reply)
	reply = slices.Grow(reply, n+padding(n))[:begin+n+padding(n)] // whatever is in memory, unless Fill is set
	a.files.Fill(reply[begin:begin+n], int64(offset))
	return reply
}

func (a answers) write(reply []byte, r *reader) []byte {
	name, _, ok := a.file(r)
	offset, _, _ := r.uint64(), r.uint32(), r.uint32()
	n := len(r.opaque(largest))
	if !ok || r.bad || offset > 1<<62 {
		return nothing(appendUint32(reply, statusStale))
	}
	a.files.Grow(name, int64(offset)+int64(n))
	return appendUint64(appendUint32(nothing(appendUint32(reply, 0)), uint32(n), 0), 1)
}

func (a answers) create(reply []byte, r *reader) []byte {
	name := entry(r)
	switch _, there := a.files.Size(name); {
	case r.bad:
	case there:
		return nothing(appendUint32(reply, statusExists))
	case len(fileMark+name) > maxHandle:
		return nothing(appendUint32(reply, statusLong))
	default:
		a.files.Grow(name, 0)
	}
	reply = appendOpaque(appendUint32(reply, 0, 1), fileMark+name)
	return nothing(appendUint32(reply, 0))
}

func (a answers) remove(reply []byte, r *reader) []byte {
	if name := entry(r); !r.bad && a.files.Remove(name) {
		return nothing(appendUint32(reply, 0))
	}
	return nothing(appendUint32(reply, statusMissing))
}

func (a answers) rename(reply []byte, r *reader) []byte {
	from, to := entry(r), entry(r)
	switch {
	case len(fileMark+to) > maxHandle:
		reply = appendUint32(reply, statusLong)
	case r.bad || !a.files.Rename(from, to):
		reply = appendUint32(reply, statusMissing)
	default:
		reply = appendUint32(reply, 0)
	}
	return nothing(nothing(reply))
}

// commit replies without work: nothing is kept, so nothing is lost.
func commit(reply []byte) []byte {
	return appendUint64(nothing(appendUint32(reply, 0)), 1)
}
