//go:build unix

package smb

import (
	"os"
	"path/filepath"
	"testing"

	"thru/internal/transfer/servers"
	"thru/internal/transfer/transfertest"
)

// samba starts a smbd in a temporary folder, with one share "data". options
// are further lines of its [global] section.
func samba(t testing.TB, options ...string) transfertest.Server {
	t.Helper()
	return sambaBelow(t, "/tmp", options...)
}

func sambaBelow(t testing.TB, place string, options ...string) transfertest.Server {
	t.Helper()
	transfertest.Program(t, "smbd")
	transfertest.Program(t, "pdbedit")
	dir, err := os.MkdirTemp(place, "thru-smb-") // a socket's name has 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ready, err := servers.Samba(dir, transfertest.FreePort(t), options...)
	if err != nil {
		t.Fatal(err)
	}
	s := transfertest.Server{Config: ready.Config, Folder: ready.Folder, Dir: ready.Dir}
	before := transfertest.MakeFolders(t, filepath.Dir(ready.Folder))
	if before != nil {
		s.Full, s.ReadOnly = "data/full/x", "data/ro/x"
	}
	words := append(before, ready.Argv...)
	transfertest.Start(t, ready.Address(), words[0], words[1:]...)
	return s
}
