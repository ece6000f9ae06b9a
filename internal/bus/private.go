package bus

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"thru/internal/fault"
)

// maxPrivate bounds what is read of a private file, in bytes.
const maxPrivate = 1 << 20

// makePrivateDir makes a folder that only its owner can enter; it refuses one that
// others can write to, since they could replace the files in it.
func makePrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("bus: making the folder %s: %w", dir, err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("bus: reading the mode of the folder %s: %w", dir, err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return fault.Failf("run: chmod 700 "+dir, "bus: the folder %s can be changed by others (mode %04o)", dir, info.Mode().Perm())
	}
	return nil
}

// ReadKey reads a file of keys or certificates that the user names, up to a limit.
func ReadKey(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxPrivate))
}

// readPrivate reads a file that holds a secret and refuses one that others can read.
// Windows has no mode bits; there the folder's ACL protects it.
func readPrivate(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("bus: reading %s: %w", path, err)
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("bus: reading %s: not a regular file", path)
	case info.Size() > maxPrivate:
		return nil, fmt.Errorf("bus: reading %s: the file is too large (%d bytes)", path, info.Size())
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, fault.Failf("run: chmod 600 "+path, "bus: %s can be read by others (mode %04o)", path, info.Mode().Perm())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("bus: reading %s: %w", path, err)
	}
	return b, nil
}

// WritePrivate writes a file of mode 0600 so that a crash leaves the old or the new
// one whole. Without replace, an existing file stays and the error is fs.ErrExist.
func WritePrivate(path string, data []byte, replace bool) error {
	temp, err := writeTemp(filepath.Dir(path), data)
	if err != nil {
		return fmt.Errorf("bus: writing %s: %w", path, err)
	}
	defer os.Remove(temp)
	if err := place(temp, path, replace); err != nil {
		return fmt.Errorf("bus: writing %s: %w", path, err)
	}
	if d, err := os.Open(filepath.Dir(path)); err == nil {
		d.Sync() // makes the name durable; not every system can sync a folder
		d.Close()
	}
	return nil
}

// HalfWritten is the prefix of the name of an incomplete file.
const HalfWritten = ".new-"

func writeTemp(dir string, data []byte) (string, error) {
	f, err := os.CreateTemp(dir, HalfWritten+"*") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// place gives the temporary file its name. A hard link fails where the name is taken,
// so of two processes that create a file at once one wins.
func place(temp, path string, replace bool) error {
	if replace {
		return os.Rename(temp, path)
	}
	err := os.Link(temp, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := os.Lstat(path); err == nil { // for file systems without hard links
		return fs.ErrExist
	}
	return os.Rename(temp, path)
}
