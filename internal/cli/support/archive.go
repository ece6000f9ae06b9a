package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"time"
)

// Part is a file of the archive.
type Part struct {
	Name    string  `json:"name"`
	Text    []byte  `json:"-"`
	Bytes   int     `json:"size_bytes"`
	Removed Removed `json:"removed"`
}

// Archive returns the parts as a .tar.gz file, below one folder.
func Archive(folder string, parts []Part, now time.Time) ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	var all []error
	for _, p := range parts {
		err := w.WriteHeader(&tar.Header{Name: folder + "/" + p.Name, Mode: 0o644, Size: int64(len(p.Text)), ModTime: now, Format: tar.FormatPAX})
		_, werr := w.Write(p.Text)
		all = append(all, err, werr)
	}
	if err := errors.Join(append(all, w.Close(), zip.Close())...); err != nil {
		return nil, fmt.Errorf("support: packing the parts: %w", err)
	}
	return out.Bytes(), nil
}
