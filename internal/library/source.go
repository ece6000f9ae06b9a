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
)

// Source is a file that was named, or stdin. It is opened once, since a pipe
// can be read only once, and what its beginning tells is kept.
type Source struct {
	io.Reader
	Name  string
	Size  int64    // 0: not known
	file  *os.File // nil: stdin, which stays open
	begin []byte
}

// enough is how many bytes tell what a file is: some text may stand before the
// first brace of what iperf3 wrote.
const enough = 64 << 10

// Open opens the files that were named, in order; stdin is "-".
func (r *Reader) Open(ctx context.Context, paths []string) (all []*Source, err error) {
	stdin := 0
	for _, path := range paths {
		if path == "-" {
			stdin++
		}
	}
	if stdin > 1 {
		return nil, fault.Usagef("name - once", "stdin (-) is named %d times, and it can be read once", stdin)
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

// pipeWait is how long a named pipe may have nobody who writes to it.
const pipeWait = 700 * time.Millisecond

// OpenFile opens a file to read, and a named pipe that somebody writes to.
func OpenFile(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return os.Open(path)
	}
	ctx, cancel := context.WithTimeout(context.Background(), pipeWait)
	defer cancel()
	f, err := fault.Until(ctx, path, func() (*os.File, error) { return os.Open(path) })
	if f == nil && ctx.Err() != nil {
		return nil, errors.New("nobody writes to this pipe")
	}
	return f, err
}

// openOne may wait for what a pipe brings.
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

// Compressions that are not read, by how such a file begins.
var unreadPacked = []struct{ begin, name string }{
	{"\xfd7zXZ", "xz"}, {"BZh", "bzip2"}, {"\x04\x22\x4d\x18", "lz4"},
}

// FileSize is the size of a regular file, 0 of anything else. It refuses a device that
// never ends; a terminal and a pipe are read.
func FileSize(in io.Reader, name string) (int64, error) {
	f, isFile := in.(*os.File)
	if !isFile {
		return 0, nil
	}
	info, err := f.Stat()
	if err != nil {
		return 0, nil // reading says what is wrong
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

// readable refuses by its beginning what cannot be a result or a capture.
func (s *Source) readable() error {
	for _, p := range unreadPacked {
		if bytes.HasPrefix(s.begin, []byte(p.begin)) {
			return fault.Usagef(fmt.Sprintf("unpack it first: %s -d; gzip and zstd are read as they are", p.name), "%s is compressed with %s, which is not read", s.Name, p.name)
		}
	}
	if len(s.begin) == enough && !s.IsCapture() && !isPage(s.begin) && bytes.IndexByte(s.begin, '{') < 0 {
		return fault.Usagef("give what thru or iperf3 has written as JSON, a page of thru, or a capture", "%s is no result: its first %d KiB have no JSON", cmp.Or(strings.TrimPrefix(s.Name, "-"), "the input"), enough>>10)
	}
	return nil
}

// IsCapture tells captures from results by their beginning, or by their name.
func (s *Source) IsCapture() bool {
	isPacked := bytes.HasPrefix(s.begin, []byte("\x1f\x8b")) || bytes.HasPrefix(s.begin, []byte("\x28\xb5\x2f\xfd")) // gzip, zstd
	return IsCaptureName(s.Name) || isCapture(s.begin) || isPacked
}

// notOpened says which file it was: the path is said in front.
func notOpened(path string, err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return fault.Usagef("name a file, or - for stdin", "%s: %w", fault.Named(path), err)
}

// CloseSources closes all that were opened.
func CloseSources(all []*Source) {
	for _, s := range all {
		if s.file != nil {
			s.file.Close()
		}
	}
}

// Names of captures; a compressed one has a suffix more.
var captureSuffixes = []string{".pcap", ".pcapng", ".cap"}

// IsCaptureName tells by the name whether packets are in a file.
func IsCaptureName(path string) bool {
	name := strings.ToLower(path)
	for _, packed := range []string{".gz", ".zst", ".xz", ".bz2", ".lz4"} {
		name = strings.TrimSuffix(name, packed)
	}
	return slices.Contains(captureSuffixes, filepath.Ext(name))
}
