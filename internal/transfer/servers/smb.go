//go:build unix

package servers

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"

	"thru/internal/transfer"
)

// Samba is a smbd with one share "data", for the user who runs this. options are
// further lines of its [global] section. dir has a short name: that of a socket has
// 107 bytes at most.
func Samba(dir, port string, options ...string) (Server, error) {
	const password = "a pass; word"
	smbd, err := Program("smbd")
	if err != nil {
		return Server{}, err
	}
	pdbedit, err := Program("pdbedit")
	if err != nil {
		return Server{}, err
	}
	files, err := folder(dir, "data", "files")
	if err != nil {
		return Server{}, err
	}
	text := sambaGlobal(dir, port) + strings.Join(options, "\n") + "\n[data]\npath = " + filepath.Dir(files) + "\nread only = no\n"
	conf, err := write(dir, "smb.conf", text)
	if err != nil {
		return Server{}, err
	}
	me, err := user.Current()
	if err != nil {
		return Server{}, fmt.Errorf("servers: asking who runs this: %w", err)
	}
	add := exec.Command(pdbedit, "-s", conf, "-a", "-t", "-u", me.Username)
	add.Stdin = strings.NewReader(password + "\n" + password + "\n")
	if out, err := add.CombinedOutput(); err != nil {
		return Server{}, fmt.Errorf("servers: adding a user by pdbedit: %w: %s", err, out)
	}
	s := Server{
		Argv:   []string{smbd, "-F", "--no-process-group", "-s", conf, "--debug-stdout", "-l", dir},
		Config: transfer.Config{Host: Host, Port: port, Path: "data/files/x"},
		Folder: files, Dir: "data/files",
	}
	return s.with(me.Username, password), nil
}

// sambaGlobal keeps all that Samba writes in dir.
func sambaGlobal(dir, port string) string {
	text := "[global]\nworkgroup = LAB\nnetbios name = THRUTEST\nserver role = standalone server\nmap to guest = Never\n" +
		"interfaces = 127.0.0.1/8\nbind interfaces only = yes\ndisable netbios = yes\nload printers = no\ndisable spoolss = yes\n" +
		"printcap name = /dev/null\nmax log size = 0\nlog file = " + dir + "/log\nsmb ports = " + port + "\n" +
		"passdb backend = smbpasswd:" + dir + "/smbpasswd\n"
	for _, name := range []string{"private dir", "state directory", "cache directory", "lock directory", "pid directory", "ncalrpc dir"} {
		place := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		_ = os.Mkdir(place, 0o755) // one that is missing, Samba names
		text += fmt.Sprintf("%s = %s\n", name, place)
	}
	return text
}
