//go:build unix

package smb

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// zeros reads endless zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// BenchmarkPut and BenchmarkGet measure the client alone, up to the rate of a
// server on this machine: no time goes to making or storing the data.
func BenchmarkPut(b *testing.B) {
	const size = 256 << 20
	server := sambaBelow(b, "/dev/shm")
	server.Config.Block, _ = strconv.Atoi(os.Getenv("BLK"))
	s, err := New(server.Config).Open(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.SetBytes(size)
	for b.Loop() {
		if err := s.Put(b.Context(), server.Dir+"/put", zeros{}, size, true); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	const size = 256 << 20
	server := sambaBelow(b, "/dev/shm")
	if err := os.WriteFile(filepath.Join(server.Folder, "get"), make([]byte, size), 0o644); err != nil {
		b.Fatal(err)
	}
	server.Config.Block, _ = strconv.Atoi(os.Getenv("BLK"))
	s, err := New(server.Config).Open(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.SetBytes(size)
	for b.Loop() {
		if _, err := s.Get(b.Context(), server.Dir+"/get", io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
