package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"thru/internal/fault"
)

// writable finds out before a long measurement whether a file that a flag names
// can be written.
func writable(flag, path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return unwritten(flag, fmt.Errorf("%s is a folder", path))
	}
	if isDevice(path) {
		return nil
	}
	f, err := temporaryBeside(path, 0o644)
	if at := (*os.PathError)(nil); errors.As(err, &at) {
		err = fmt.Errorf("%s: %w", path, at.Err)
	}
	if err != nil {
		return unwritten(flag, err)
	}
	f.Close()
	return os.Remove(f.Name())
}

// temporaryBeside makes a file of a name of its own where another one is to be: it is
// nobody's, and no link is followed.
func temporaryBeside(path string, mode os.FileMode) (*os.File, error) {
	return os.OpenFile(fmt.Sprintf("%s.%s%s", path, rand.Text()[:8], part), os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
}

// unwritten is the error of a file that a flag names.
func unwritten(flag string, err error) error {
	return fault.Failf(flag+" wants a file in a folder that can be written to", "cli: writing the file of %s: %w", flag, err)
}

// part is the ending of a file that is not whole yet.
const part = ".part"

// replaceFile writes a file beside its place and renames it, so that no half
// one is ever found there.
func replaceFile(flag, path string, content []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // the file is replaced, not the link to it
	}
	if isDevice(path) {
		if err := writeInto(path, content); err != nil {
			return unwritten(flag, err)
		}
		return nil
	}
	f, err := temporaryBeside(path, 0o644)
	if err != nil {
		return unwritten(flag, err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return unwritten(flag, err)
	}
	return nil
}

// isDevice tells of a device, a pipe or the like: it is written to, and nobody's to replace.
func isDevice(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// writeInto writes to what is there and stays.
func writeInto(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}
