package nfs

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"
)

// oneFile is a folder with a file of a million bytes.
type oneFile struct{}

func (oneFile) Size(name string) (int64, bool) { return 1_000_000, name == "file" }
func (oneFile) Grow(string, int64)             {}
func (oneFile) Rename(string, string) bool     { return true }
func (oneFile) Remove(string) bool             { return true }
func (oneFile) Fill([]byte, int64)             {}

// wire is a connection with all input ready.
type wire struct {
	io.Reader
	bytes.Buffer
}

// Read reads the input.
func (w *wire) Read(b []byte) (int, error) { return w.Reader.Read(b) }

// asked returns a record with a call.
func asked(program, number uint32, args []byte) []byte {
	m := appendUint32(nil, 0, 7, msgCall, rpcVersion, program, 3, number, authNone, 0, authNone, 0)
	m = append(m, args...)
	binary.BigEndian.PutUint32(m, lastPiece|uint32(len(m)-4))
	return m
}

// TestAnswer: calls that this package's client never makes are refused, each
// with its status.
func TestAnswer(t *testing.T) {
	file, root := appendOpaque(nil, "ffile"), appendOpaque(nil, rootHandle)
	long := string(bytes.Repeat([]byte("x"), 200))
	for name, c := range map[string]struct {
		program, number uint32
		args            []byte
		want            []uint32 // accept state, then status
	}{
		"attributes":         {nfsProgram, 1, file, []uint32{0, 0}},
		"of another":         {nfsProgram, 1, root, []uint32{0, statusStale}},
		"another program":    {1, 1, nil, []uint32{1}},
		"another call":       {nfsProgram, 16, file, []uint32{3}},
		"half of a read":     {nfsProgram, 6, file, []uint32{4}},
		"beyond the end":     {nfsProgram, 6, appendUint32(appendUint64(file, 1_000_001), 10), []uint32{0, statusStale}},
		"a wild offset":      {nfsProgram, 6, appendUint32(appendUint64(file, 1<<63), 10), []uint32{0, statusStale}},
		"a write far out":    {nfsProgram, 7, appendOpaque(appendUint32(appendUint64(file, 1<<63), 1, 0), "x"), []uint32{0, statusStale}},
		"another mount":      {mountProgram, 1, appendOpaque(nil, "/etc"), []uint32{0, statusMissing}},
		"a file that is":     {nfsProgram, 8, appendOpaque(root, "file"), []uint32{0, statusExists}},
		"a long name":        {nfsProgram, 8, appendOpaque(root, long), []uint32{0, statusLong}},
		"a long new name":    {nfsProgram, 14, appendOpaque(append(appendOpaque(root, "file"), root...), long), []uint32{0, statusLong}},
		"half of a removal":  {nfsProgram, 12, root, []uint32{4}},
		"half of a renaming": {nfsProgram, 14, appendOpaque(root, "file"), []uint32{4}},
	} {
		w := &wire{Reader: bytes.NewReader(asked(c.program, c.number, c.args))}
		if err := Answer(w, oneFile{}, false); err != io.EOF {
			t.Errorf("%s: %v", name, err)
		}
		r := &reader{b: w.Bytes()}
		r.bytes(24) // record, number, reply, accepted, verifier
		for _, want := range c.want {
			if got := r.uint32(); got != want || r.bad {
				t.Errorf("%s: %d, want %v", name, got, c.want)
			}
		}
	}
}

func FuzzAnswer(f *testing.F) {
	for number := range uint32(22) {
		f.Add(asked(nfsProgram, number, appendOpaque(appendOpaque(appendOpaque(nil, "ffile"), "name"), "other")), false)
	}
	f.Add(asked(nfsProgram, 6, appendUint32(appendUint64(appendOpaque(nil, "ffile"), 5), 1<<20)), false)
	f.Add(asked(mountProgram, 1, appendOpaque(nil, "/")), false)
	read := appendUint32(appendUint64(make([]byte, 16), 0), largest)
	reads := at([]byte("ffile"), "").then(opRead, read).then(opRead, read).then(opRead, read)
	f.Add(asked(nfsProgram, 1, append(appendUint32(nil, 0, 1, 4), reads.args...)), true)
	f.Fuzz(func(t *testing.T, b []byte, four bool) {
		if four && len(b) > 24 {
			binary.BigEndian.PutUint32(b[20:], fourVersion)
		}
		w := &wire{Reader: bytes.NewReader(b)}
		if err := Answer(w, oneFile{}, four); err == nil {
			t.Error("a connection that does not end")
		}
		for said := w.Bytes(); len(said) > 0; { // whole records, whatever came
			n := 4 + int(binary.BigEndian.Uint32(said)&^lastPiece)
			if n < 28 || n > len(said) || n > largest+8*overhead {
				t.Fatalf("a record of %d bytes, %d are left", n, len(said))
			}
			said = said[n:]
		}
	})
}
