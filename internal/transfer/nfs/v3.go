package nfs

import (
	"context"
	"fmt"

	"thru/internal/transfer"
)

// Procedures of NFS version 3 (RFC 1813, section 3).
var (
	procGetAttr = nfsProcedure(1, "GETATTR")
	procLookup  = nfsProcedure(3, "LOOKUP")
	procRead    = nfsProcedure(6, "READ")
	procWrite   = nfsProcedure(7, "WRITE")
	procCreate  = nfsProcedure(8, "CREATE")
	procRemove  = nfsProcedure(12, "REMOVE")
	procRename  = nfsProcedure(14, "RENAME")
	procFSInfo  = nfsProcedure(19, "FSINFO")
	procCommit  = nfsProcedure(21, "COMMIT")
)

func nfsProcedure(number uint32, name string) procedure {
	return procedure{nfsProgram, nfsVersion, number, name}
}

// v3 is NFS version 3.
type v3 struct {
	*link
	ports  ports    // empty: not looked up yet
	mounts []string // folders
}

func (v *v3) describe(info *transfer.Info) (calls int) {
	info.Client, info.Details = "thru's own NFSv3 client", []string{"NFS 3 over TCP"} // version 3 does not name the server
	return 0
}

// do calls a procedure of NFS and reads the status.
func (v *v3) do(ctx context.Context, p procedure, args []byte, data bulk) (*reader, error) {
	return patient(ctx, v.cfg.Timeout, func() (*reader, error) {
		r, err := v.rpc.call(ctx, p, args, data, nil)
		if err != nil {
			return nil, err
		}
		if code := r.uint32(); code != 0 && !r.bad {
			return nil, fmt.Errorf("%s: %w", p.name, status{code: code})
		}
		return r, nil
	})
}

func parseAttributes(r *reader) attributes {
	const afterSize = 56
	a := attributes{kind: r.uint32()}
	r.bytes(16) // mode, links, user, group
	a.size = r.uint64()
	r.bytes(afterSize)
	return a
}

// parsePost reads attributes that a server may omit.
func parsePost(r *reader) (attributes, bool) {
	if r.uint32() == 0 {
		return attributes{}, false
	}
	return parseAttributes(r), !r.bad
}

// skipWeak skips a file's attributes before and after a change (wcc_data).
func skipWeak(r *reader) {
	if r.uint32() != 0 {
		r.bytes(24)
	}
	parsePost(r)
}

func (v *v3) limits(ctx context.Context, handle []byte) (limits, error) {
	r, err := v.do(ctx, procFSInfo, appendOpaque(nil, handle), bulk{})
	if err != nil {
		return limits{}, err
	}
	return parseLimits(r)
}

func parseLimits(r *reader) (limits, error) {
	parsePost(r)
	l := limits{reads: r.uint32()}
	r.bytes(8)
	if l.writes = r.uint32(); r.bad || l.reads == 0 || l.writes == 0 {
		return limits{}, errReply
	}
	return l, nil
}

func (v *v3) lookup(ctx context.Context, dir []byte, name string) (node, error) {
	r, err := v.do(ctx, procLookup, appendOpaque(appendOpaque(nil, dir), name), bulk{})
	if err != nil {
		return node{}, err
	}
	n, known, err := parseLookup(r)
	if err != nil || known {
		return n, err
	}
	if r, err = v.do(ctx, procGetAttr, appendOpaque(nil, n.handle), bulk{}); err != nil {
		return node{}, err
	}
	if n.attributes = parseAttributes(r); r.bad {
		return node{}, errReply
	}
	return n, nil
}

func parseLookup(r *reader) (n node, known bool, err error) {
	n.handle = append([]byte(nil), r.opaque(maxHandle)...)
	n.attributes, known = parsePost(r)
	if r.bad || len(n.handle) == 0 {
		return node{}, false, errReply
	}
	return n, known, nil
}

func (v *v3) read(ctx context.Context, n node, b []byte, off int64) (int, error) {
	args := appendUint32(appendUint64(appendOpaque(nil, n.handle), uint64(off)), uint32(len(b)))
	r, err := v.do(ctx, procRead, args, bulk{into: b})
	if err != nil {
		return 0, err
	}
	return parseRead(r, b)
}

func parseRead(r *reader, b []byte) (int, error) {
	parsePost(r)
	count, _ := r.uint32(), r.uint32()
	data := r.opaque(len(b))
	if r.bad || int64(count) != int64(len(data)) {
		return 0, errReply
	}
	return copy(b, data), nil // the same memory, unless it is less
}

func (v *v3) write(ctx context.Context, n node, b []byte, off int64) (int, verifier, error) {
	const unstable = 0
	args := appendUint32(appendUint64(appendOpaque(nil, n.handle), uint64(off)), uint32(len(b)), unstable)
	r, err := v.do(ctx, procWrite, args, bulk{send: b})
	if err != nil {
		return 0, 0, err
	}
	return parseWrite(r, len(b))
}

func parseWrite(r *reader, asked int) (int, verifier, error) {
	skipWeak(r)
	return parseWritten(r, asked)
}

// parseWritten reads the result of a write in both versions.
func parseWritten(r *reader, asked int) (int, verifier, error) {
	count, _, v := r.uint32(), r.uint32(), r.uint64()
	if r.bad || int64(count) > int64(asked) {
		return 0, 0, errReply
	}
	return int(count), verifier(v), nil
}

func (v *v3) commit(ctx context.Context, n node) (verifier, error) {
	args := appendUint32(appendUint64(appendOpaque(nil, n.handle), 0), 0) // the whole file
	r, err := v.do(ctx, procCommit, args, bulk{})
	if err != nil {
		return 0, err
	}
	skipWeak(r)
	return parseBoot(r)
}

func parseBoot(r *reader) (verifier, error) {
	boot := r.uint64()
	if r.bad {
		return 0, errReply
	}
	return verifier(boot), nil
}

// open returns n: version 3 has no open files.
func (v *v3) open(_ context.Context, n node) (node, error) { return n, nil }

func (v *v3) shut(context.Context, node) error { return nil }

func (v *v3) create(ctx context.Context, dir []byte, name string) (node, error) {
	const guarded, mode = 1, 0o644
	args := appendUint32(appendOpaque(appendOpaque(nil, dir), name), guarded, 1, mode, 0, 0, 0, 0, 0)
	r, err := v.do(ctx, procCreate, args, bulk{})
	if err != nil {
		return node{}, err
	}
	if r.uint32() != 0 {
		handle := append([]byte(nil), r.opaque(maxHandle)...)
		if !r.bad && len(handle) > 0 {
			return node{handle: handle}, nil
		}
	}
	return v.lookup(ctx, dir, name)
}

func (v *v3) remove(ctx context.Context, dir []byte, name string) error {
	_, err := v.do(ctx, procRemove, appendOpaque(appendOpaque(nil, dir), name), bulk{})
	return err
}

func (v *v3) rename(ctx context.Context, dir []byte, from, to string) error {
	args := appendOpaque(appendOpaque(nil, dir), from)
	_, err := v.do(ctx, procRename, appendOpaque(appendOpaque(args, dir), to), bulk{})
	return err
}
