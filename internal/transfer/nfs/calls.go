package nfs

import (
	"context"
	"errors"
	"fmt"
	"sync"

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

// errReply says that a reply does not hold what it must.
var errReply = errors.New("a reply that is too short, or holds what it must not")

// status is why a server did not do it (nfsstat3).
type status uint32

// statusNames are those that a person may see.
var statusNames = map[status]string{
	1: "NFS3ERR_PERM", 2: "NFS3ERR_NOENT", 5: "NFS3ERR_IO", 13: "NFS3ERR_ACCES", 17: "NFS3ERR_EXIST", 18: "NFS3ERR_XDEV",
	20: "NFS3ERR_NOTDIR", 21: "NFS3ERR_ISDIR", 22: "NFS3ERR_INVAL", 27: "NFS3ERR_FBIG", 28: "NFS3ERR_NOSPC", 30: "NFS3ERR_ROFS",
	63: "NFS3ERR_NAMETOOLONG", 69: "NFS3ERR_DQUOT", 70: "NFS3ERR_STALE", 10001: "NFS3ERR_BADHANDLE", 10006: "NFS3ERR_SERVERFAULT",
	10008: "NFS3ERR_JUKEBOX",
}

// Error is its name in the standard.
func (s status) Error() string {
	if name := statusNames[s]; name != "" {
		return name
	}
	return fmt.Sprintf("nfsstat3 %d", uint32(s))
}

// meaning is the error that callers know; denied is what no access means here.
func (s status) meaning(denied error) error {
	switch s {
	case 1, 13:
		return denied
	case 2, 20, 70:
		return transfer.ErrMissing
	case 17, 21:
		return transfer.ErrExists
	case 28, 69:
		return transfer.ErrFull
	case 30:
		return transfer.ErrReadOnly
	case 63:
		return transfer.ErrName
	}
	return nil
}

// refined joins an error with the one that callers know.
func refined(err, denied error) error {
	var known error
	if s := status(0); errors.As(err, &s) {
		known = s.meaning(denied)
	} else if errors.Is(err, errBroken) {
		known = transfer.ErrShort
	}
	if known == nil {
		return err
	}
	return fmt.Errorf("%w (%w)", known, err)
}

// do calls a procedure of NFS and reads the status.
func (s *session) do(ctx context.Context, p procedure, args, data []byte) (*reader, error) {
	r, err := s.rpc.call(ctx, p, args, data)
	if err != nil {
		return nil, err
	}
	if code := status(r.uint32()); code != 0 && !r.bad {
		return nil, fmt.Errorf("%s: %w", p.name, code)
	}
	return r, nil
}

// attributes are what a file's attributes tell that matters here (fattr3).
type attributes struct {
	kind uint32 // 1 regular, 2 folder, 5 symbolic link
	size uint64
}

func parseAttributes(r *reader) attributes {
	const afterSize = 56
	a := attributes{kind: r.uint32()}
	r.bytes(16) // mode, links, user, group
	a.size = r.uint64()
	r.bytes(afterSize)
	return a
}

// parsePost reads attributes that a server may leave out.
func parsePost(r *reader) (attributes, bool) {
	if r.uint32() == 0 {
		return attributes{}, false
	}
	return parseAttributes(r), !r.bad
}

// skipWeak skips what a file was before a change and is after it (wcc_data).
func skipWeak(r *reader) {
	if r.uint32() != 0 {
		r.bytes(24)
	}
	parsePost(r)
}

// limits are the largest reads and writes of a server.
type limits struct{ reads, writes uint32 }

func (s *session) fsinfo(ctx context.Context, handle []byte) (limits, error) {
	r, err := s.do(ctx, procFSInfo, appendOpaque(nil, handle), nil)
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

// node is a file or a folder.
type node struct {
	handle []byte
	attributes
}

func (s *session) lookup(ctx context.Context, dir []byte, name string) (node, error) {
	r, err := s.do(ctx, procLookup, appendOpaque(appendOpaque(nil, dir), name), nil)
	if err != nil {
		return node{}, err
	}
	n, known, err := parseLookup(r)
	if err != nil || known {
		return n, err
	}
	if r, err = s.do(ctx, procGetAttr, appendOpaque(nil, n.handle), nil); err != nil {
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

// read reads into b, and returns how many bytes there were.
func (s *session) read(ctx context.Context, handle, b []byte, off int64) (int, error) {
	args := appendUint32(appendUint64(appendOpaque(nil, handle), uint64(off)), uint32(len(b)))
	r, err := s.do(ctx, procRead, args, nil)
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
	return copy(b, data), nil
}

// verifier is a server's boot: another one means that it may have forgotten what
// was written and not committed.
type verifier uint64

// errRebooted says that what was written is not sure to be there.
var errRebooted = errors.New("the server was started anew meanwhile, and may have lost what was written")

// boots holds the server to its first verifier.
type boots struct {
	mu    sync.Mutex
	known bool
	first verifier
}

func (b *boots) same(v verifier) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.known {
		b.first, b.known = v, true
	}
	if v != b.first {
		return errRebooted
	}
	return nil
}

// write writes b, which the server may keep in memory until commit.
func (s *session) write(ctx context.Context, handle, b []byte, off int64) (int, verifier, error) {
	const unstable = 0
	args := appendUint32(appendUint64(appendOpaque(nil, handle), uint64(off)), uint32(len(b)), unstable)
	r, err := s.do(ctx, procWrite, args, b)
	if err != nil {
		return 0, 0, err
	}
	return parseWrite(r, len(b))
}

func parseWrite(r *reader, asked int) (int, verifier, error) {
	skipWeak(r)
	count, _, v := r.uint32(), r.uint32(), r.uint64()
	if r.bad || int64(count) > int64(asked) {
		return 0, 0, errReply
	}
	return int(count), verifier(v), nil
}

// commit has the server write all to its disk.
func (s *session) commit(ctx context.Context, handle []byte) (verifier, error) {
	args := appendUint32(appendUint64(appendOpaque(nil, handle), 0), 0) // from the begin, all of it
	r, err := s.do(ctx, procCommit, args, nil)
	if err != nil {
		return 0, err
	}
	skipWeak(r)
	v := r.uint64()
	if r.bad {
		return 0, errReply
	}
	return verifier(v), nil
}

// create makes a file that is not there yet.
func (s *session) create(ctx context.Context, dir []byte, name string) ([]byte, error) {
	const guarded, mode = 1, 0o644
	args := appendUint32(appendOpaque(appendOpaque(nil, dir), name), guarded, 1, mode, 0, 0, 0, 0, 0)
	r, err := s.do(ctx, procCreate, args, nil)
	if err != nil {
		return nil, err
	}
	if r.uint32() != 0 {
		handle := append([]byte(nil), r.opaque(maxHandle)...)
		if !r.bad && len(handle) > 0 {
			return handle, nil
		}
	}
	n, err := s.lookup(ctx, dir, name)
	return n.handle, err
}

func (s *session) remove(ctx context.Context, dir []byte, name string) error {
	_, err := s.do(ctx, procRemove, appendOpaque(appendOpaque(nil, dir), name), nil)
	return err
}

// rename gives a file another name in the same folder, whatever had it before.
func (s *session) rename(ctx context.Context, dir []byte, from, to string) error {
	args := appendOpaque(appendOpaque(nil, dir), from)
	_, err := s.do(ctx, procRename, appendOpaque(appendOpaque(args, dir), to), nil)
	return err
}
