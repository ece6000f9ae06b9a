package library

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/report"
)

// oldHalfWritten is the prefix of incomplete files of earlier versions.
const oldHalfWritten = ".part"

// resultEnding is the suffix of results in a folder; only files with it are removed.
const resultEnding = ".thru.json"

// MostResults is how many results a folder keeps; the oldest are removed.
const MostResults = 1000

// KeepResult writes a document into a folder under a name that sorts by time.
func KeepResult(dir string, doc *measure.Document) (path string, err error) {
	if dir == "" {
		return "", nil
	}
	var b bytes.Buffer
	if err = report.JSON(&b, doc); err == nil {
		path, err = put(dir, doc.StartedAt.UTC().Format("20060102T150405.000000000Z"), b.Bytes(), math.MaxInt64)
	}
	if err != nil {
		return "", fault.Failf("name another folder with --results", "library: keeping the result: %w", err)
	}
	return path, nil
}

// put writes a result into a folder, whole and on the disk, after making room for it.
func put(dir, name string, text []byte, mostBytes int64) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if err := makeRoom(dir, int64(len(text)), mostBytes); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name+resultEnding)
	return path, bus.WritePrivate(path, text, true)
}

// makeRoom removes the oldest results of a folder, and incomplete files of a crash,
// until one more fits.
func makeRoom(dir string, more, mostBytes int64) error {
	entries, err := os.ReadDir(dir) // sorted by name, and so by time
	if err != nil {
		return err
	}
	sizes, all, count := map[string]int64{}, more, 1
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil:
		case isLeft(e.Name()) && time.Since(info.ModTime()) > time.Hour: // its writer has ended
			os.Remove(filepath.Join(dir, e.Name()))
		case strings.HasSuffix(e.Name(), resultEnding):
			sizes[e.Name()] = info.Size()
			all += info.Size()
			count++
		}
	}
	for _, e := range entries {
		size, ours := sizes[e.Name()]
		if !ours || count <= MostResults && all <= mostBytes {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		count--
		all -= size
	}
	return nil
}

// isLeft reports whether a name is that of an incomplete file.
func isLeft(name string) bool {
	return strings.HasPrefix(name, bus.HalfWritten) || strings.HasPrefix(name, oldHalfWritten)
}

// safeName makes a file name for any system from untrusted text.
func safeName(text string) string {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
	b := []byte(text)
	for i, c := range b {
		if !slices.Contains([]byte(allowed), c) {
			b[i] = '_'
		}
	}
	name := strings.Trim(string(b), ".")
	return cmp.Or(name[:min(len(name), 128)], "_")
}
