package agent

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"thru/internal/bus"
	"thru/internal/fault"
)

// DefaultFileBytes is the default of the largest file that a remote client may
// write here.
const DefaultFileBytes = 16 << 30

// Files says where clients with the file privilege may measure disks and move
// files.
type Files struct {
	Folders  []string // absolute; access is limited to these and their subfolders
	MaxBytes int64    // of a written file; 0: DefaultFileBytes
}

// most returns the largest file that may be written, in bytes.
func (f Files) most() int64 {
	if f.MaxBytes > 0 {
		return f.MaxBytes
	}
	return DefaultFileBytes
}

// mayFiles returns an error for a remote client without the file privilege.
func mayFiles(ctx context.Context) error {
	if bus.Allows(ctx, bus.PrivilegeFiles) {
		return nil
	}
	return fault.Because(bus.ReasonDenied, fault.Failf(bus.AskFor(bus.PrivilegeFiles), "agent: this client may measure the network here, but not measure disks or move files"))
}

// folder opens the folder that a client names. A remote client cannot leave the
// folders that the operator configured: not by "..", and not by a symbolic link
// (os.Root).
func (a *Agent) folder(doing, path string, own bool) (*os.Root, error) {
	if own {
		return openFolder(doing, path, func(p string) (*os.Root, error) { return rootOf(p, os.Stat, os.OpenRoot) })
	}
	if !filepath.IsAbs(path) || slices.Contains(strings.Split(filepath.ToSlash(path), "/"), "..") || strings.ContainsRune(path, 0) {
		return nil, fault.Usagef("give the absolute path of the folder there, such as /srv", "agent: %s: %.200q is not an absolute path without ..", doing, path)
	}
	for _, dir := range a.conf.Files.Folders {
		rel, err := filepath.Rel(dir, filepath.Clean(path))
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		return openFolder(doing, path, func(string) (*os.Root, error) {
			root, err := os.OpenRoot(dir)
			if err != nil || rel == "." {
				return root, err
			}
			defer root.Close()
			return rootOf(rel, root.Stat, root.OpenRoot)
		})
	}
	where := strings.Join(a.conf.Files.Folders, ", ")
	if where == "" {
		return nil, fault.Because(bus.ReasonDenied, fault.Failf("ask its operator to allow a folder: thru serve --allow files --files DIR", "agent: %s: this end point allows no folder", doing))
	}
	return nil, fault.Because(bus.ReasonDenied, fault.Failf("use a folder below "+where+"; its operator can allow more with --files DIR", "agent: %s: %.200q is not below a folder that this end point allows", doing, path))
}

// rootOf opens a folder only: opening a pipe would block until it has a writer.
func rootOf(name string, stat func(string) (fs.FileInfo, error), open func(string) (*os.Root, error)) (*os.Root, error) {
	info, err := stat(name)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, err
	}
	return open(name)
}

// openFolder opens a folder, and explains the error.
func openFolder(doing, path string, open func(string) (*os.Root, error)) (*os.Root, error) {
	root, err := open(path)
	if err == nil {
		return root, nil
	}
	var hint string
	var reason bus.Reason
	switch {
	case errors.Is(err, fs.ErrNotExist):
		hint, reason = "name a folder that exists", bus.ReasonMissing
	case errors.Is(err, fs.ErrPermission):
		hint, reason = "name a folder that the user of thru there may write to", bus.ReasonDenied
	case strings.Contains(err.Error(), "not a directory"): // os.Root has no error value for it
		return nil, fault.Because(bus.ReasonMissing, fault.Usagef("name the folder that it is in: "+filepath.Dir(path), "agent: %s: %.200s is not a folder", doing, path))
	case isEscape(err):
		hint, reason = "use a path without this symbolic link: it leads out of the folders that this end point allows", bus.ReasonDenied
	}
	return nil, fault.Because(reason, fault.Usagef(hint, "agent: %s: %.200s: %w", doing, path, bare(err)))
}

// isEscape reports whether a link leads out of a folder: os.Root has no error value for it.
func isEscape(err error) bool { return strings.Contains(err.Error(), "escapes") }

// bare strips the file name from an error whose message has it already.
func bare(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}
