package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// FS is the tree of files in which a kernel shows itself. Root is "/" on the
// machine itself. Names are given without the leading slash.
type FS struct{ Root string }

// maxFile bounds one file in bytes: /proc/stat of a machine with thousands of
// interrupts has some hundred KB.
const maxFile = 16 << 20

// read returns a whole file. Errors name the file as it is called on the machine.
func (f FS) read(name string) ([]byte, error) { return f.head(name, maxFile) }

// head returns the first bytes of a file, of those that grow with the machine.
func (f FS) head(name string, most int64) ([]byte, error) {
	file, err := os.Open(filepath.Join(f.Root, name))
	if err != nil {
		return nil, f.explain(name, err)
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return nil, f.explain(name, err)
	}
	return b, nil
}

// text returns a file of one line without the space around it.
func (f FS) text(name string) (string, error) {
	b, err := f.read(name)
	return strings.TrimSpace(string(b)), err
}

// number returns a file of one decimal number.
func (f FS) number(name string) (int, error) {
	s, err := f.text(name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, fmt.Errorf("/%s holds %q, which is no number", name, s)
	}
	return n, nil
}

// number64 returns a file of one decimal number that may be large.
func (f FS) number64(name string) (int64, error) {
	s, err := f.text(name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/%s holds %.40q, which is no number", name, s)
	}
	return n, nil
}

// numbered lists the numbers N of all "prefixN" in a folder, in order.
func (f FS) numbered(dir, prefix string) ([]int, error) {
	names, err := f.names(dir)
	if err != nil {
		return nil, err
	}
	var all []int
	for _, name := range names {
		number, ok := strings.CutPrefix(name, prefix)
		if n, err := strconv.Atoi(number); ok && err == nil && n >= 0 {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all, nil
}

// names lists a folder, sorted.
func (f FS) names(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(f.Root, dir))
	if err != nil {
		return nil, f.explain(dir, err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list, nil
}

// exists tells whether a file or folder is there.
func (f FS) exists(name string) bool {
	_, err := os.Stat(filepath.Join(f.Root, name))
	return err == nil
}

// net reads a file of /proc/net as the calling thread's network namespace
// shows it. "self" is the main thread, which may live in another namespace
// than the calling one; "thread-self" exists since Linux 3.17 (proc(5)).
func (f FS) net(name string) ([]byte, error) {
	b, err := f.read(path.Join("proc/thread-self/net", name))
	if errors.Is(err, fs.ErrNotExist) {
		return f.read(path.Join("proc/self/net", name))
	}
	return b, err
}

// explain names the file without the root, which is no business of a reader.
func (f FS) explain(name string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	if errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0 {
		return fmt.Errorf("/%s: %s: %w", name, onlyRoot, err)
	}
	return fmt.Errorf("/%s: %w", name, err)
}

// parsed reads a file and hands it to a parser; errors name the file.
func parsed[T any](read func(string) ([]byte, error), name string, parse func(io.Reader) (T, error)) (T, error) {
	b, err := read(name)
	if err != nil {
		var none T
		return none, err
	}
	v, err := parse(bytes.NewReader(b))
	if err != nil {
		return v, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

// unlessAbsent returns nil where a file is not there, and else the error.
func unlessAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// target follows the links in a name that exists below the root, and gives the
// name that they lead to; the name itself where they lead out of it.
func (f FS) target(name string) string {
	root, err := filepath.EvalSymlinks(f.Root)
	if err != nil {
		return name
	}
	to, err := filepath.EvalSymlinks(filepath.Join(root, name))
	if err != nil {
		return name
	}
	inside, err := filepath.Rel(root, to)
	if err != nil || inside == ".." || strings.HasPrefix(inside, "../") {
		return name
	}
	return filepath.ToSlash(inside)
}
