package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"thru/internal/cli/console"
	"thru/internal/fault"
	"thru/internal/stat"
)

// source is a file that was named, or stdin. It is opened once, since a pipe
// can be read only once, and what its beginning tells is kept.
type source struct {
	io.Reader
	name  string
	size  int64    // 0: not known
	file  *os.File // nil: stdin, which stays open
	begin []byte
}

// enough is how many bytes tell what a file is: some text may stand before the
// first brace of what iperf3 wrote.
const enough = 64 << 10

// open opens the files that were named, in order; stdin is "-".
func (e *env) open(ctx context.Context, paths []string) (all []*source, err error) {
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
		s, err := console.Until(ctx, path, func() (*source, error) { return e.openOne(ctx, path) })
		if err != nil {
			closeSources(all)
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// pipeWait is how long a named pipe may have nobody who writes to it.
const pipeWait = 700 * time.Millisecond

// openFile opens a file to read, and a named pipe that somebody writes to.
func openFile(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return os.Open(path)
	}
	ctx, cancel := context.WithTimeout(context.Background(), pipeWait)
	defer cancel()
	f, err := console.Until(ctx, path, func() (*os.File, error) { return os.Open(path) })
	if f == nil && ctx.Err() != nil {
		return nil, errors.New("nobody writes to this pipe")
	}
	return f, err
}

// openOne may wait for what a pipe brings.
func (e *env) openOne(ctx context.Context, path string) (*source, error) {
	s := &source{name: path}
	in := e.In
	switch {
	case e.isStored(path):
		text, err := e.library(stat.Link{}).text(ctx, path)
		if err != nil {
			return nil, err
		}
		in, s.size = bytes.NewReader(text), int64(len(text))
	case path != "-":
		f, err := openFile(path)
		if err != nil {
			return nil, notOpened(path, err)
		}
		s.file, in = f, f
	}
	size, err := fileSize(in, path)
	if err != nil {
		closeSources([]*source{s})
		return nil, err
	}
	s.size = max(s.size, size)
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
		closeSources([]*source{s})
		return nil, err
	}
	return s, nil
}

// Compressions that are not read, by how such a file begins.
var unreadPacked = []struct{ begin, name string }{
	{"\xfd7zXZ", "xz"}, {"BZh", "bzip2"}, {"\x04\x22\x4d\x18", "lz4"},
}

// fileSize is the size of a regular file, 0 of anything else. It refuses a device that
// never ends; a terminal and a pipe are read.
func fileSize(in io.Reader, name string) (int64, error) {
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
	case mode&os.ModeDevice != 0 && !console.IsTerminal(f) && !os.SameFile(info, null):
		return 0, fault.Usagef("name a file, or - for stdin", "%s is a device, not a file", name)
	}
	return 0, nil
}

// readable refuses by its beginning what cannot be a result or a capture.
func (s *source) readable() error {
	for _, p := range unreadPacked {
		if bytes.HasPrefix(s.begin, []byte(p.begin)) {
			return fault.Usagef(fmt.Sprintf("unpack it first: %s -d; gzip and zstd are read as they are", p.name), "%s is compressed with %s, which is not read", s.name, p.name)
		}
	}
	if len(s.begin) == enough && !s.isCapture() && !isPage(s.begin) && bytes.IndexByte(s.begin, '{') < 0 {
		return fault.Usagef("give what thru or iperf3 has written as JSON, a page of thru, or a capture", "%s is no result: its first %d KiB have no JSON", cmp.Or(strings.TrimPrefix(s.name, "-"), "the input"), enough>>10)
	}
	return nil
}

// isCapture tells captures from results by their beginning, or by their name.
func (s *source) isCapture() bool {
	isPacked := bytes.HasPrefix(s.begin, []byte("\x1f\x8b")) || bytes.HasPrefix(s.begin, []byte("\x28\xb5\x2f\xfd")) // gzip, zstd
	return isCaptureName(s.name) || isCapture(s.begin) || isPacked
}

// notOpened says which file it was: the path is said in front.
func notOpened(path string, err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return fault.Usagef("name a file, or - for stdin", "%s: %w", fault.Named(path), err)
}

func closeSources(all []*source) {
	for _, s := range all {
		if s.file != nil {
			s.file.Close()
		}
	}
}
