package servers

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
)

// Samba returns a smbd with one share "data", for the present user with a
// random password. options has further lines of its [global] section. dir
// needs a short name: that of a socket has 107 bytes at most.
func Samba(dir, port string, options ...string) (Server, error) {
	password := "a pass; " + rand.Text()
	s := &setup{dir: dir}
	smbd, pdbedit, files := s.program("smbd"), s.program("pdbedit"), s.folder("data", "files")
	me, err := user.Current()
	s.fail("asking who runs this", err)
	if s.err != nil {
		return Server{}, s.err
	}
	conf := s.write("smb.conf", sambaGlobal(dir, port)+strings.Join(options, "\n")+"\n[data]\npath = "+filepath.Dir(files)+"\nread only = no\n")
	add := exec.Command(pdbedit, "-s", conf, "-a", "-t", "-u", me.Username)
	add.Stdin = strings.NewReader(password + "\n" + password + "\n")
	if out, err := add.CombinedOutput(); err != nil {
		s.fail("adding a user by pdbedit", fmt.Errorf("%w: %.200q", err, strings.TrimSpace(string(out))))
	}
	return s.guarded(me.Username, password, port, files, "data/files", smbd, "-F", "--no-process-group", "-s", conf, "--debug-stdout", "-l", dir)
}

// sambaGlobal keeps all files of Samba in dir.
func sambaGlobal(dir, port string) string {
	text := "[global]\nworkgroup = LAB\nnetbios name = THRUTEST\nserver role = standalone server\nmap to guest = Never\n" +
		"interfaces = 127.0.0.1/8\nbind interfaces only = yes\ndisable netbios = yes\nload printers = no\ndisable spoolss = yes\n" +
		"printcap name = /dev/null\nmax log size = 0\nlog file = " + dir + "/log\nsmb ports = " + port + "\n" +
		"passdb backend = smbpasswd:" + dir + "/smbpasswd\n"
	for _, name := range []string{"private dir", "state directory", "cache directory", "lock directory", "pid directory", "ncalrpc dir"} {
		place := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		_ = os.Mkdir(place, 0o755) // Samba reports a missing one
		text += fmt.Sprintf("%s = %s\n", name, place)
	}
	return text
}
