package nfs

import (
	"encoding/binary"
	"strings"
)

// Statuses of version 4.1 in replies, besides those of version 3.
const (
	statusNotSupported = 10004
	statusResource     = 10018
)

// scene is the state of the operations of one call.
type scene struct {
	answers
	*reader
	handle string // the current one
}

// compound adds the results of a call of version 4.1.
func (a answers) compound(reply []byte, r *reader) []byte {
	begin := len(reply)
	tag, minor, many := r.opaque(maxText), r.uint32(), r.uint32()
	reply = appendUint32(appendOpaque(appendUint32(reply, 0), tag), 0)
	count := len(reply) - 4
	if minor != fourMinor {
		binary.BigEndian.PutUint32(reply[begin:], codeMinor)
		return reply
	}
	x := &scene{answers: a, reader: r}
	for done := uint32(1); done <= many && !r.bad; done++ {
		op := r.uint32()
		reply = appendUint32(reply, op, 0)
		at, code := len(reply)-4, uint32(statusResource)
		if at <= begin+2*overhead { // in all replies the data is at the end
			reply, code = x.operation(reply, op)
		}
		binary.BigEndian.PutUint32(reply[at:], code)
		binary.BigEndian.PutUint32(reply[begin:], code)
		binary.BigEndian.PutUint32(reply[count:], done)
		if code != 0 {
			break
		}
	}
	return reply
}

// operation adds the result of an operation, and returns its status.
func (x *scene) operation(reply []byte, op uint32) ([]byte, uint32) {
	switch op {
	case opSequence, opExchangeID, opCreateSession, opReclaimComplete, opDestroySession, opDestroyClient:
		return x.session(reply, op), 0
	case opPutRoot:
		x.handle = rootHandle
	case opPutHandle:
		x.handle = string(x.opaque(maxFourHandle))
	case opSaveHandle:
	case opGetHandle:
		return appendOpaque(reply, x.handle), 0
	case opGetAttr:
		return x.getAttr(reply)
	case opLookup:
		name := string(x.opaque(maxRecord))
		if _, ok := x.files.Size(name); !ok || len(fileMark+name) > maxFourHandle {
			return reply, statusMissing
		}
		x.handle = fileMark + name
	case opOpen:
		return x.open(reply)
	case opClose:
		x.uint32()
		return append(reply, x.bytes(16)...), 0
	case opRead:
		return x.read(reply)
	case opWrite:
		return x.write(reply)
	case opCommit:
		x.bytes(12)
		return appendUint64(reply, 1), 0
	case opRemove:
		if !x.files.Remove(string(x.opaque(maxRecord))) {
			return reply, statusMissing
		}
		return append(reply, make([]byte, 20)...), 0
	case opRename:
		return x.rename(reply)
	default:
		return reply, statusNotSupported
	}
	return reply, 0
}

// session answers the creation and end of clients and sessions: each
// connection has one.
func (x *scene) session(reply []byte, op uint32) []byte {
	switch op {
	case opSequence:
		reply = append(reply, x.bytes(sessionLength)...)
		sequence, slot, highest, _ := x.uint32(), x.uint32(), x.uint32(), x.uint32()
		return appendUint32(reply, sequence, slot, highest, highest, 0)
	case opExchangeID:
		x.bytes(8)
		x.opaque(maxText)
		flags := x.uint32()
		x.bytes(8) // no protection, no name
		reply = appendUint64(appendUint32(appendUint64(reply, 1), 1, flags, 0), 0)
		return appendUint32(appendOpaque(appendOpaque(reply, "thru"), "thru"), 0)
	case opCreateSession:
		x.bytes(8)
		reply = appendUint32(append(reply, make([]byte, sessionLength)...), x.uint32(), x.uint32())
		fore := x.bytes(28)
		x.bytes(28 + 12)
		return append(append(reply, fore...), make([]byte, 28)...)
	case opReclaimComplete:
		x.uint32()
	case opDestroySession:
		x.bytes(sessionLength)
	case opDestroyClient:
		x.uint64()
	}
	return reply
}

// file returns the file of the current handle.
func (x *scene) file() (name string, size int64, ok bool) {
	name, ok = strings.CutPrefix(x.handle, fileMark)
	if ok {
		size, ok = x.files.Size(name)
	}
	return name, size, ok
}

func (x *scene) getAttr(reply []byte) ([]byte, uint32) {
	wanted := uint32(0)
	for i := range min(x.uint32(), 8) {
		if word := x.uint32(); i == 0 {
			wanted = word
		}
	}
	_, size, ok := x.file()
	kind := uint32(kindRegular)
	if x.handle == rootHandle {
		kind = kindFolder
	} else if !ok {
		return reply, statusStale
	}
	wanted &= attrType | attrSize | attrMaxRead | attrMaxWrite
	var values []byte
	if wanted&attrType != 0 {
		values = appendUint32(values, kind)
	}
	if wanted&attrSize != 0 {
		values = appendUint64(values, uint64(size))
	}
	for _, most := range []uint32{attrMaxRead, attrMaxWrite} {
		if wanted&most != 0 {
			values = appendUint64(values, largest)
		}
	}
	return appendOpaque(appendUint32(reply, 1, wanted), values), 0
}

// open creates a file, or opens the one of the handle.
func (x *scene) open(reply []byte) ([]byte, uint32) {
	const create = 1
	x.bytes(20) // sequence, access, denial, client
	x.opaque(maxText)
	if x.uint32() == create {
		x.uint32()
		x.bytes(4 * int(min(x.uint32(), 8)))
		x.opaque(maxText)
	}
	if x.uint32() == claimName {
		name := string(x.opaque(maxRecord))
		switch _, there := x.files.Size(name); {
		case x.bad:
		case there:
			return reply, statusExists
		case len(fileMark+name) > maxFourHandle:
			return reply, statusLong
		default:
			x.files.Grow(name, 0)
			x.handle = fileMark + name
		}
	} else if _, _, ok := x.file(); !ok {
		return reply, statusStale
	}
	return append(reply, make([]byte, 16+20+4+4+4)...), 0 // no change, no delegation
}

func (x *scene) read(reply []byte) ([]byte, uint32) {
	_, size, ok := x.file()
	x.bytes(16)
	offset, count := x.uint64(), x.uint32()
	if !ok || x.bad || offset > uint64(size) {
		return reply, statusStale
	}
	n, end := part(size, offset, count)
	return x.fill(appendUint32(reply, end), offset, n), 0
}

func (x *scene) write(reply []byte) ([]byte, uint32) {
	name, _, ok := x.file()
	x.bytes(16)
	offset, _ := x.uint64(), x.uint32()
	n := len(x.opaque(largest))
	if !ok || x.bad || offset > 1<<62 {
		return reply, statusStale
	}
	x.files.Grow(name, int64(offset)+int64(n))
	return appendUint64(appendUint32(reply, uint32(n), 0), 1), 0
}

func (x *scene) rename(reply []byte) ([]byte, uint32) {
	from, to := string(x.opaque(maxRecord)), string(x.opaque(maxRecord))
	switch {
	case len(fileMark+to) > maxFourHandle:
		return reply, statusLong
	case x.bad || !x.files.Rename(from, to):
		return reply, statusMissing
	}
	return append(reply, make([]byte, 40)...), 0
}
