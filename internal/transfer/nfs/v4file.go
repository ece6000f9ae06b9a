package nfs

import (
	"context"
	"math"
	"path"
	"strings"
)

// stateid names an open file.
type stateid [16]byte

// Attributes by their bits of the first word (RFC 8881, section 5.8).
const (
	attrType     = 1 << 1
	attrSize     = 1 << 4
	attrMaxRead  = 1 << 30
	attrMaxWrite = 1 << 31
)

// root walks from the server's root down to dir, which must exist.
func (v *v4) root(ctx context.Context, dir string) (mounted, error) {
	if v.session == nil {
		if err := v.begin(ctx); err != nil {
			return mounted{}, err
		}
	}
	r, err := v.do(ctx, compound{name: "PUTROOTFH"}.then(opPutRoot, nil).then(opGetHandle, nil), bulk{})
	if err != nil {
		return mounted{}, err
	}
	m := mounted{handle: parseHandle(r)}
	if r.bad {
		return mounted{}, errReply
	}
	for _, name := range strings.FieldsFunc(dir, func(c rune) bool { return c == '/' }) {
		n, err := v.lookup(ctx, m.handle, name)
		if err == nil && n.kind != kindFolder {
			err = status{codeNotFolder, true}
		}
		if err != nil {
			return mounted{}, err
		}
		m = mounted{path.Join(m.dir, name), n.handle}
	}
	return m, nil
}

// parseHandle reads a handle, which must not be empty.
func parseHandle(r *reader) []byte {
	handle := append([]byte(nil), r.opaque(maxFourHandle)...)
	r.bad = r.bad || len(handle) == 0
	return handle
}

// properties are attributes with the server's limits.
type properties struct {
	attributes
	limits
}

// parseProperties reads attributes. A server may omit the limits.
func parseProperties(r *reader) (p properties, err error) {
	p.limits = limits{math.MaxUint32, math.MaxUint32}
	var first uint32
	for i := range r.uint32() {
		if word := r.uint32(); i == 0 {
			first = word
		} else if word != 0 || r.bad {
			return p, errReply
		}
	}
	values := &reader{b: r.opaque(maxText)}
	if first&attrType != 0 {
		p.kind = values.uint32()
	}
	if first&attrSize != 0 {
		p.size = values.uint64()
	}
	if first&attrMaxRead != 0 {
		p.reads = uint32(min(values.uint64(), math.MaxUint32))
	}
	if first&attrMaxWrite != 0 {
		p.writes = uint32(min(values.uint64(), math.MaxUint32))
	}
	if r.bad || values.bad || len(values.b) > 0 || p.reads == 0 || p.writes == 0 {
		return p, errReply
	}
	return p, nil
}

// attributesOf returns a request for attributes.
func attributesOf(bits uint32) []byte { return appendUint32(nil, 1, bits) }

func (v *v4) limits(ctx context.Context, dir []byte) (limits, error) {
	r, err := v.do(ctx, at(dir, "GETATTR").then(opGetAttr, attributesOf(attrMaxRead|attrMaxWrite)), bulk{})
	if err != nil {
		return limits{}, err
	}
	p, err := parseProperties(r)
	return limits{min(p.reads, v.most.reads-overhead), min(p.writes, v.most.writes-overhead)}, err
}

func (v *v4) lookup(ctx context.Context, dir []byte, name string) (node, error) {
	r, err := v.do(ctx, at(dir, "LOOKUP").then(opLookup, appendOpaque(nil, name)).then(opGetHandle, nil).then(opGetAttr, attributesOf(attrType|attrSize)), bulk{})
	if err != nil {
		return node{}, err
	}
	return parseFound(r)
}

func parseFound(r *reader) (node, error) {
	n := node{handle: parseHandle(r)}
	if err := take(r, opGetAttr); err != nil {
		return node{}, err
	}
	p, err := parseProperties(r)
	n.attributes = p.attributes
	return n, err
}

// Values of OPEN (section 18.16).
const (
	openRead, openWrite = 1, 2
	noDelegation        = 0x400 // OPEN4_SHARE_ACCESS_WANT_NO_DELEG
	claimName           = 0     // the name in the folder
	claimHandle         = 4     // the file itself
)

// opening returns the arguments before how: an owner is enough, since each
// client is separate.
func (v *v4) opening(access uint32) []byte {
	return appendOpaque(appendUint64(appendUint32(nil, 0, access|noDelegation, 0), v.client), "thru")
}

func (v *v4) open(ctx context.Context, n node) (node, error) {
	const noCreate = 0
	r, err := v.do(ctx, at(n.handle, "OPEN").then(opOpen, appendUint32(v.opening(openRead), noCreate, claimHandle)), bulk{})
	if err == nil {
		n.state, err = parseOpen(r)
	}
	return n, err
}

func (v *v4) create(ctx context.Context, dir []byte, name string) (node, error) {
	const create, guarded, modeBit, mode = 1, 1, 1 << 1, 0o644 // FATTR4_MODE is the second of the second word
	args := appendUint32(v.opening(openWrite), create, guarded, 2, 0, modeBit, 4, mode, claimName)
	r, err := v.do(ctx, at(dir, "OPEN").then(opOpen, appendOpaque(args, name)).then(opGetHandle, nil), bulk{})
	if err != nil {
		return node{}, err
	}
	state, err := parseOpen(r)
	if err == nil {
		err = take(r, opGetHandle)
	}
	n := node{handle: parseHandle(r), state: state}
	if err == nil && r.bad {
		err = errReply
	}
	return n, err
}

// parseOpen reads the state id of the open file.
func parseOpen(r *reader) (state stateid, err error) {
	const none, noneSince, contention, resource = 0, 3, 1, 2
	copy(state[:], r.bytes(len(state)))
	r.bytes(20) // change of the folder
	r.uint32()
	if words := r.uint32(); words <= 8 {
		r.bytes(4 * int(words)) // attributes that were set
	} else {
		return state, errReply
	}
	switch r.uint32() {
	case none:
	case noneSince:
		if why := r.uint32(); why == contention || why == resource {
			r.uint32()
		}
	default: // a delegation, which was not requested
		return state, errReply
	}
	if r.bad {
		return state, errReply
	}
	return state, nil
}

func (v *v4) shut(ctx context.Context, n node) error {
	_, err := v.do(ctx, at(n.handle, "CLOSE").then(opClose, append(appendUint32(nil, 0), n.state[:]...)), bulk{})
	return err
}

func (v *v4) read(ctx context.Context, n node, b []byte, off int64) (int, error) {
	args := appendUint32(appendUint64(n.state[:len(n.state):len(n.state)], uint64(off)), uint32(len(b)))
	r, err := v.do(ctx, at(n.handle, "READ").then(opRead, args), bulk{into: b})
	if err != nil {
		return 0, err
	}
	return parseData(r, b)
}

func parseData(r *reader, b []byte) (int, error) {
	r.uint32() // whether this is the end
	data := r.opaque(len(b))
	if r.bad {
		return 0, errReply
	}
	return copy(b, data), nil // the same memory, unless it is less
}

func (v *v4) write(ctx context.Context, n node, b []byte, off int64) (int, verifier, error) {
	const unstable = 0
	args := appendUint32(appendUint64(n.state[:len(n.state):len(n.state)], uint64(off)), unstable)
	r, err := v.do(ctx, at(n.handle, "WRITE").then(opWrite, args), bulk{send: b})
	if err != nil {
		return 0, 0, err
	}
	return parseWritten(r, len(b))
}

func (v *v4) commit(ctx context.Context, n node) (verifier, error) {
	r, err := v.do(ctx, at(n.handle, "COMMIT").then(opCommit, appendUint32(appendUint64(nil, 0), 0)), bulk{}) // the whole file
	if err != nil {
		return 0, err
	}
	return parseBoot(r)
}

func (v *v4) remove(ctx context.Context, dir []byte, name string) error {
	_, err := v.do(ctx, at(dir, "REMOVE").then(opRemove, appendOpaque(nil, name)), bulk{})
	return err
}

func (v *v4) rename(ctx context.Context, dir []byte, from, to string) error {
	names := appendOpaque(appendOpaque(nil, from), to)
	_, err := v.do(ctx, at(dir, "RENAME").then(opSaveHandle, nil).then(opRename, names), bulk{})
	return err
}
