package main

import (
	"archive/tar"
	"archive/zip"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// entry is a file of an archive.
type entry struct {
	name, source string
	mode         int64
}

// entries lists what an archive for a system contains.
func (r *release) entries(s system) ([]entry, error) {
	top := "thru-" + r.version + "/"
	found := []entry{
		{top + s.program(), s.binary, 0o755},
		{top + "third-party-licenses.txt.gz", filepath.Join(r.stage, "usr/share/doc/thru/third-party-licenses.txt.gz"), 0o644},
	}
	for _, name := range []string{"README.md", "CHANGELOG.md", "LICENSE"} {
		found = append(found, entry{top + name, filepath.Join(r.root, name), 0o644})
	}
	folders := map[string]string{r.share: ""}
	if s.is("linux") {
		folders[filepath.Join(r.root, "packaging", "systemd")] = "systemd/"
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		names, err := filesIn(folder)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			found = append(found, entry{top + folders[folder] + name, filepath.Join(folder, name), 0o644})
		}
	}
	slices.SortFunc(found, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return found, nil
}

// writeArchive writes the archive that a system can unpack without other programs.
func (r *release) writeArchive(s system) error {
	entries, err := r.entries(s)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("thru-%s-%s-%s", r.version, s.os, s.arch)
	if s.is("windows") {
		return r.create(name+".zip", func(w io.Writer) error { return r.writeZip(w, entries) })
	}
	return r.create(name+".tar.gz", func(w io.Writer) error {
		z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}
		return errors.Join(r.writeTar(z, entries), z.Close())
	})
}

// writeTar writes files of root with the time of the release.
func (r *release) writeTar(w io.Writer, entries []entry) error {
	t := tar.NewWriter(w)
	for _, e := range entries {
		text, err := os.ReadFile(e.source)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(text)), ModTime: r.at, Typeflag: tar.TypeReg, Uname: "root", Gname: "root"}
		if err := t.WriteHeader(header); err != nil {
			return err
		}
		if _, err := t.Write(text); err != nil {
			return err
		}
	}
	return t.Close()
}

// writeZip writes files with the time of the release.
func (r *release) writeZip(w io.Writer, entries []entry) error {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	for _, e := range entries {
		text, err := os.ReadFile(e.source)
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: r.at}
		header.SetMode(os.FileMode(e.mode))
		f, err := z.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := f.Write(text); err != nil {
			return err
		}
	}
	return z.Close()
}
