package kvm

import (
	"path"
	"strconv"

	"thru/internal/host/tree"
)

// files is the host's file tree: below "/", or a recorded tree.
type files struct{ tree.Tree }

// proc returns the name of a file of a process.
func proc(pid int, file ...string) string {
	return path.Join("proc", strconv.Itoa(pid), path.Join(file...))
}

// task returns the name of a file of a thread.
func task(pid, tid int, file string) string { return proc(pid, "task", strconv.Itoa(tid), file) }

// fields reads a file of "Key: value" lines; nil where it cannot be read.
func (t files) fields(name string) map[string]string {
	all, _ := t.Fields(name)
	return all
}
