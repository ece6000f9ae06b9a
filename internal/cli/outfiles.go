package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"thru/internal/fault"
)

// writable checks before a long measurement that the file of a flag can be written.
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
	if err != nil {
		return unwritten(flag, aboutFile(path, err))
	}
	f.Close()
	return os.Remove(f.Name())
}

// temporaryBeside creates a file with a random name next to path. It opens no existing file and follows no
// link.
func temporaryBeside(path string, mode os.FileMode) (*os.File, error) {
	return os.OpenFile(fmt.Sprintf("%s.%s%s", path, rand.Text()[:8], part), os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
}

// aboutFile names the file that was asked for in an error of its temporary file.
func aboutFile(path string, err error) error {
	if at := (*os.PathError)(nil); errors.As(err, &at) {
		return fmt.Errorf("%s: %w", path, at.Err)
	}
	return err
}

// unwritten returns the error of a file that a flag names.
func unwritten(flag string, err error) error {
	hint := flag + " needs a file in a writable folder"
	if errors.Is(err, syscall.ENOSPC) {
		hint = "free space there, or name a file elsewhere"
	}
	return fault.Failf(hint, "cli: writing the file of %s: %w", flag, err)
}

// part is the suffix of an incomplete file.
const part = ".part"

// replaceFile writes a temporary file next to path and renames it, so that no reader finds half a file.
func replaceFile(flag, path string, content []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // replace the file, not the link to it
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
		return unwritten(flag, aboutFile(path, err))
	}
	return nil
}

// isDevice reports whether path is a device, a pipe or the like, which is written to, not replaced.
func isDevice(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// writeInto writes to an existing file without replacing it.
func writeInto(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}
