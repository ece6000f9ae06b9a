package servers

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
)

// Rsync returns an rsync daemon with the module data, for the user bob with a
// random password. more has further lines of its configuration.
func Rsync(dir, port, more string) (Server, error) {
	password := "a pass:" + rand.Text()
	s := &setup{dir: dir}
	program, files, secrets := s.program("rsync"), s.folder("data", "files"), s.write("secrets", "bob:"+password+"\n")
	text := fmt.Sprintf("port = %s\naddress = %s\nuse chroot = no\nreverse lookup = no\npid file = %s/pid\nlog file = /dev/stderr\n", port, Host, dir)
	if os.Geteuid() == 0 { // run as the folder's owner; otherwise it runs as nobody
		text += "uid = 0\ngid = 0\n"
	}
	text += fmt.Sprintf("[data]\npath = %s\nread only = no\nauth users = bob\nsecrets file = %s\n", filepath.Dir(files), secrets)
	conf := s.write("rsyncd.conf", text+more)
	return s.guarded("bob", password, port, files, "data/files", program, "--daemon", "--no-detach", "--config="+conf)
}
