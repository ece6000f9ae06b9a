//go:build unix

package rsync

import (
	"path/filepath"
	"testing"

	"thru/internal/transfer/servers"
	"thru/internal/transfer/transfertest"
)

// daemon is a rsync daemon of its own, with the modules data, for the user bob,
// and open, for everyone to read.
func daemon(t *testing.T) transfertest.Server {
	t.Helper()
	transfertest.Program(t, "rsync")
	dir := t.TempDir()
	ready, err := servers.Rsync(dir, transfertest.FreePort(t), "[open]\npath = "+dir+"/data\n")
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
