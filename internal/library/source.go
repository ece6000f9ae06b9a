package library

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"thru/internal/fault"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Source is an opened file, or stdin. It is opened once, since a pipe can be read only
// once, and its beginning is kept.
type Source struct {
	io.Reader
	Name  string
	Size  int64    // 0: unknown
	file  *os.File // nil: stdin, which stays open
	begin []byte
}

// enough is how many bytes identify the type of a file: text may precede the first
// brace of iperf3's output.
const enough = 64 << 10

// Open opens the files in order; "-" is stdin.
func (r *Reader) Open(ctx context.Context, paths []string) (all []*Source, err error) {
	if stdin := unit.CountFunc(paths, func(path string) bool { return path == "-" }); stdin > 1 {
		return nil, fault.Usagef("name - once", "stdin (-) is given %d times, but can be read only once", stdin)
	}
	for _, path := range paths {
		s, err := fault.Until(ctx, path, func() (*Source, error) { return r.openOne(ctx, path) })
		if err != nil {
			CloseSources(all)
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// pipeWait is how long to wait for a writer of a named pipe.
const pipeWait = 700 * time.Millisecond

// OpenFile opens a file to read, or a named pipe that has a writer.
func OpenFile(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return os.Open(path)
	}
	ctx, cancel := context.WithTimeout(context.Background(), pipeWait)
	defer cancel()
	f, err := fault.Until(ctx, path, func() (*os.File, error) { return os.Open(path) })
	if f == nil && ctx.Err() != nil {
		return nil, errors.New("no process writes to this pipe")
	}
	return f, err
}

// openOne opens one file; it may wait for the first data of a pipe.
func (r *Reader) openOne(ctx context.Context, path string) (*Source, error) {
	s := &Source{Name: path}
	in := r.In
	switch {
	case r.IsStored(path):
		text, err := r.Shelf(stat.Link{}).text(ctx, path)
		if err != nil {
			return nil, err
		}
		in, s.Size = bytes.NewReader(text), int64(len(text))
	case path != "-":
		f, err := OpenFile(path)
		if err != nil {
			return nil, notOpened(path, err)
		}
		s.file, in = f, f
	}
	size, err := FileSize(in, path)
	if err != nil {
		CloseSources([]*Source{s})
		return nil, err
	}
	s.Size = max(s.Size, size)
	buffered := bufio.NewReaderSize(in, enough)
	begin, err := buffered.Peek(enough)
	s.Reader, s.begin = buffered, slices.Clone(begin)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		err = notOpened(path, err)
	case len(begin) == 0 && path == "-":
		err = fault.Usagef("pipe a result or a capture to it", "-: no input")
	default:
		err = s.readable()
	}
	if err != nil {
		CloseSources([]*Source{s})
		return nil, err
	}
	return s, nil
}

// Unsupported compression formats, by their first bytes.
var unreadPacked = []struct{ begin, name string }{
	{"\xfd7zXZ", "xz"}, {"BZh", "bzip2"}, {"\x04\x22\x4d\x18", "lz4"},
}

// FileSize returns the size of a regular file in bytes, 0 for anything else. It returns
// an error for a device without end; a terminal and a pipe are allowed.
func FileSize(in io.Reader, name string) (int64, error) {
	f, isFile := in.(*os.File)
	if !isFile {
		return 0, nil
	}
	info, err := f.Stat()
	if err != nil {
		return 0, nil // reading returns the error
	}
	null, _ := os.Stat(os.DevNull) // which is empty, not endless
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return info.Size(), nil
	case mode&os.ModeDevice != 0 && !term.IsTerminal(int(f.Fd())) && !os.SameFile(info, null):
		return 0, fault.Usagef("name a file, or - for stdin", "%s is a device, not a file", name)
	}
	return 0, nil
}

// readable returns an error for a file whose beginning cannot be a result or a capture.
func (s *Source) readable() error {
	for _, p := range unreadPacked {
		if bytes.HasPrefix(s.begin, []byte(p.begin)) {
			return fault.Usagef(fmt.Sprintf("unpack it first: %s -d; thru reads gzip and zstd directly", p.name), "%s is compressed with %s, which thru cannot read", s.Name, p.name)
		}
	}
	if len(s.begin) == enough && !s.IsCapture() && !isPage(s.begin) && bytes.IndexByte(s.begin, '{') < 0 {
		return fault.Usagef("give JSON of thru or iperf3, an HTML page of thru, or a capture", "%s is not a result: its first %d KiB contain no JSON", cmp.Or(strings.TrimPrefix(s.Name, "-"), "the input"), enough>>10)
	}
	return nil
}

// IsCapture distinguishes captures from results by their beginning or their name.
func (s *Source) IsCapture() bool {
	isPacked := bytes.HasPrefix(s.begin, []byte("\x1f\x8b")) || bytes.HasPrefix(s.begin, []byte("\x28\xb5\x2f\xfd")) // gzip, zstd
	return IsCaptureName(s.Name) || isCapture(s.begin) || isPacked
}

// notOpened adds the path to the error of opening a file.
func notOpened(path string, err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return fault.Usagef("name a file, or - for stdin", "%s: %w", fault.Named(path), err)
}

// CloseSources closes all opened files.
func CloseSources(all []*Source) {
	for _, s := range all {
		if s.file != nil {
			s.file.Close()
		}
	}
}

// File name suffixes of captures; a compressed one has another suffix after it.
var captureSuffixes = []string{".pcap", ".pcapng", ".cap"}

// IsCaptureName reports whether a file name is that of a capture.
func IsCaptureName(path string) bool {
	name := strings.ToLower(path)
	for _, packed := range []string{".gz", ".zst", ".xz", ".bz2", ".lz4"} {
		name = strings.TrimSuffix(name, packed)
	}
	return slices.Contains(captureSuffixes, filepath.Ext(name))
}
