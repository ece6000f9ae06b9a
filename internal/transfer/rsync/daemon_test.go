//go:build unix

package rsync

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"thru/internal/transfer"
	"thru/internal/transfer/transfertest"
)

// password is that of the daemon's only user.
const password = "a pass:word"

// daemon is a rsync daemon of its own, with the modules data, for the user bob,
// and open, for everyone to read.
func daemon(t *testing.T) transfertest.Server {
	t.Helper()
	program := transfertest.Program(t, "rsync")
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(filepath.Join(data, "files"), 0o777); err != nil {
		t.Fatal(err)
	}
	before := transfertest.Apart(t, data)
	port, secrets, conf := transfertest.FreePort(t), filepath.Join(dir, "secrets"), filepath.Join(dir, "rsyncd.conf")
	text := fmt.Sprintf("port = %s\naddress = 127.0.0.1\nuse chroot = no\npid file = %s/pid\nlog file = /dev/stderr\n"+
		"[data]\npath = %s\nread only = no\nauth users = bob\nsecrets file = %s\n[open]\npath = %s\n", port, dir, data, secrets, data)
	if os.Geteuid() == 0 {
		text += "uid = 0\ngid = 0\n[data]\nuid = 0\ngid = 0\n"
	}
	for file, content := range map[string]string{conf: text, secrets: "bob:" + password + "\n"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	words := append(before, program, "--daemon", "--no-detach", "--config="+conf)
	transfertest.Start(t, net.JoinHostPort("127.0.0.1", port), words[0], words[1:]...)
	s := transfertest.Server{
		Config: transfer.Config{
			Host: "127.0.0.1", Port: port, Path: "data/files/x", User: "bob",
			Password: func() (string, error) { return password, nil },
		},
		Folder: filepath.Join(data, "files"), Dir: "data/files",
	}
	if before != nil {
		s.Full, s.ReadOnly = "data/full/x", "data/ro/x"
	}
	return s
}
