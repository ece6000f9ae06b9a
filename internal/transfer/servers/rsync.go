//go:build unix

package servers

import (
	"fmt"
	"os"
	"path/filepath"

	"thru/internal/transfer"
)

// Rsync is a rsync daemon with the modules data, for the user bob, and open, for
// everyone to read.
func Rsync(dir, port string) (Server, error) {
	const password = "a pass:word"
	program, err := Program("rsync")
	if err != nil {
		return Server{}, err
	}
	files, err := folder(dir, "data", "files")
	if err != nil {
		return Server{}, err
	}
	secrets, err := write(dir, "secrets", "bob:"+password+"\n")
	if err != nil {
		return Server{}, err
	}
	data := filepath.Dir(files)
	text := fmt.Sprintf("port = %s\naddress = %s\nuse chroot = no\npid file = %s/pid\nlog file = /dev/stderr\n"+
		"[data]\npath = %s\nread only = no\nauth users = bob\nsecrets file = %s\n[open]\npath = %s\n", port, Host, dir, data, secrets, data)
	if os.Geteuid() == 0 {
		text += "uid = 0\ngid = 0\n[data]\nuid = 0\ngid = 0\n"
	}
	conf, err := write(dir, "rsyncd.conf", text)
	if err != nil {
		return Server{}, err
	}
	s := Server{
		Argv:   []string{program, "--daemon", "--no-detach", "--config=" + conf},
		Config: transfer.Config{Host: Host, Port: port, Path: "data/files/x"},
		Folder: files, Dir: "data/files",
	}
	return s.with("bob", password), nil
}
