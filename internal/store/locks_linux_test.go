package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"thru/internal/store"
)

// Opening a store a second time releases no lock that this process holds by the first
// one: it shows other processes that there is a reader.
func TestLocksStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	s := open(t, path)
	put(t, s, document(0), "")
	again, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // releases the locks too: no check may follow
	// SQLite's shared lock (os.h, SHARED_FIRST), tested by a descriptor that shares no locks with the process.
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: 0x40000000 + 2, Len: 510}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &l); err != nil || l.Type != unix.F_RDLCK {
		t.Errorf("lock of type %d, %v; want one for reading (%d)", l.Type, err, unix.F_RDLCK)
	}
}
