// Package tree reads files of /proc and /sys below a root, which tests
// replace by a recorded tree. It changes nothing.
package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Tree is the root of the files: "/" on the machine itself. File names have
// no leading slash; errors name a file as on the machine.
type Tree struct{ Root string }

// OnlyRoot is the reason where a user may not read a file.
const OnlyRoot = "only root may read it"

// maxFile limits the size of one file in bytes: /proc/stat of a machine with
// thousands of interrupts has some hundred KB.
const maxFile = 16 << 20

// Read returns a whole file.
func (t Tree) Read(name string) ([]byte, error) { return t.Head(name, maxFile) }

// Head returns the first bytes of a file, for files that grow with the
// machine.
func (t Tree) Head(name string, most int64) ([]byte, error) {
	file, err := os.Open(filepath.Join(t.Root, name))
	if err != nil {
		return nil, Explain(name, err)
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return nil, Explain(name, err)
	}
	return b, nil
}

// Text returns a one-line file without the surrounding space.
func (t Tree) Text(name string) (string, error) {
	b, err := t.Read(name)
	return strings.TrimSpace(string(b)), err
}

// Optional returns the text of a file, or "" where it cannot be read.
func (t Tree) Optional(name string) string {
	s, err := t.Text(name)
	if err != nil {
		return ""
	}
	return s
}

// Number returns the decimal number in a file.
func (t Tree) Number(name string) (int, error) {
	n, err := t.Number64(name)
	return int(n), err
}

// Number64 returns the decimal number in a file as int64.
func (t Tree) Number64(name string) (int64, error) {
	s, err := t.Text(name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/%s contains %.40q, not a number", name, s)
	}
	return n, nil
}

// Fields returns the lines "Name: value" of a file.
func (t Tree) Fields(name string) (map[string]string, error) { return Parsed(t.Read, name, Fields) }

// Names lists a folder, sorted.
func (t Tree) Names(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(t.Root, dir))
	if err != nil {
		return nil, Explain(dir, err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list, nil
}

// Numbered lists the numbers N of all names "prefixN" in a folder, in order.
func (t Tree) Numbered(dir, prefix string) ([]int, error) {
	names, err := t.Names(dir)
	var all []int
	for _, name := range names {
		number, ok := strings.CutPrefix(name, prefix)
		if n, err := strconv.Atoi(number); ok && err == nil && n >= 0 {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all, err
}

// Exists reports whether a file or folder exists.
func (t Tree) Exists(name string) bool {
	_, err := os.Stat(filepath.Join(t.Root, name))
	return err == nil
}

// Link returns the target of a symbolic link as written; "" where there is
// none.
func (t Tree) Link(name string) string {
	to, err := os.Readlink(filepath.Join(t.Root, name))
	if err != nil {
		return ""
	}
	return to
}

// Target follows the links in a name that exists below the root, and returns
// the resulting name; the name itself where they lead out of the root.
func (t Tree) Target(name string) string {
	root, err := filepath.EvalSymlinks(t.Root)
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

// Explain names a file in an error without the root.
func Explain(name string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	if errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0 {
		return fmt.Errorf("/%s: %s: %w", name, OnlyRoot, err)
	}
	return fmt.Errorf("/%s: %w", name, err)
}

// Parsed passes the text of a file to a parser; errors name the file.
func Parsed[T any](read func(string) ([]byte, error), name string, parse func(string) (T, error)) (T, error) {
	b, err := read(name)
	if err != nil {
		var none T
		return none, err
	}
	v, err := parse(string(b))
	if err != nil {
		return v, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}
