package kvm

import (
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

// tree is where the files of the host lie: "/", or a recorded one.
type tree struct{ root string }

// maxFile bounds one file in bytes.
const maxFile = 1 << 20

// read returns a file.
func (t tree) read(name string) ([]byte, error) {
	f, err := os.Open(filepath.Join(t.root, name))
	if err != nil {
		return nil, t.explain(name, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, t.explain(name, err)
	}
	return b, nil
}

// text returns a file of one line without the space around it; "" where it
// cannot be read.
func (t tree) text(name string) string {
	b, err := t.read(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number returns a file of one number.
func (t tree) number(name string) (int64, bool) {
	n, err := strconv.ParseInt(t.text(name), 10, 64)
	return n, err == nil
}

// names lists a folder, sorted.
func (t tree) names(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(t.root, dir))
	if err != nil {
		return nil, t.explain(dir, err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list, nil
}

// numbers lists the entries of a folder that are numbers, in their order.
func (t tree) numbers(dir string) ([]int, error) {
	names, err := t.names(dir)
	var list []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n >= 0 {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list, err
}

// link is where a symbolic link leads, as it says; "" where there is none.
func (t tree) link(name string) string {
	to, err := os.Readlink(filepath.Join(t.root, name))
	if err != nil {
		return ""
	}
	return to
}

func (t tree) exists(name string) bool {
	_, err := os.Stat(filepath.Join(t.root, name))
	return err == nil
}

// explain names the file without the root, which is no business of a reader.
func (t tree) explain(name string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("/%s: only root may read it: %w", name, err)
	}
	return fmt.Errorf("/%s: %w", name, err)
}

// proc is a file of a process.
func proc(pid int, file ...string) string {
	return path.Join("proc", strconv.Itoa(pid), path.Join(file...))
}

// task is a file of a thread.
func task(pid, tid int, file string) string { return proc(pid, "task", strconv.Itoa(tid), file) }

// lines reads a file of "Key: value" lines.
func (t tree) lines(name string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(t.text(name)) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			all[key] = strings.TrimSpace(value)
		}
	}
	return all
}
