//go:build unix

package smb

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"thru/internal/transfer"
	"thru/internal/transfer/transfertest"
)

// password is that of the server's only user.
const password = "a pass; word"

// samba is a smbd of its own, in a temporary folder, with one share "data".
// options are further lines of its [global] section.
func samba(t *testing.T, options ...string) transfertest.Server {
	t.Helper()
	smbd, pdbedit := transfertest.Program(t, "smbd"), transfertest.Program(t, "pdbedit")
	dir, err := os.MkdirTemp("/tmp", "thru-smb-") // a socket's name has 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(filepath.Join(data, "files"), 0o777); err != nil {
		t.Fatal(err)
	}
	before := transfertest.Apart(t, data)
	port, conf := transfertest.FreePort(t), filepath.Join(dir, "smb.conf")
	text := configuration(dir, port) + strings.Join(options, "\n") + "\n[data]\npath = " + data + "\nread only = no\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	add := exec.Command(pdbedit, "-s", conf, "-a", "-t", "-u", me.Username)
	add.Stdin = strings.NewReader(password + "\n" + password + "\n")
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("pdbedit: %v\n%s", err, out)
	}
	words := append(before, smbd, "-F", "--no-process-group", "-s", conf, "--debug-stdout", "-l", dir)
	transfertest.Start(t, net.JoinHostPort("127.0.0.1", port), words[0], words[1:]...)
	s := transfertest.Server{
		Config: transfer.Config{
			Host: "127.0.0.1", Port: port, Path: "data/files/x", User: me.Username,
			Password: func() (string, error) { return password, nil },
		},
		Folder: filepath.Join(data, "files"), Dir: "data/files",
	}
	if before != nil {
		s.Full, s.ReadOnly = "data/full/x", "data/ro/x"
	}
	return s
}

// configuration keeps all that Samba writes in dir.
func configuration(dir, port string) string {
	text := "[global]\nworkgroup = LAB\nnetbios name = THRUTEST\nserver role = standalone server\nmap to guest = Never\n" +
		"interfaces = 127.0.0.1/8\nbind interfaces only = yes\ndisable netbios = yes\nload printers = no\ndisable spoolss = yes\n" +
		"printcap name = /dev/null\nmax log size = 0\nlog file = " + dir + "/log\nsmb ports = " + port + "\n" +
		"passdb backend = smbpasswd:" + dir + "/smbpasswd\n"
	for _, name := range []string{"private dir", "state directory", "cache directory", "lock directory", "pid directory", "ncalrpc dir"} {
		folder := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		_ = os.Mkdir(folder, 0o755) // one that is missing, Samba names
		text += fmt.Sprintf("%s = %s\n", name, folder)
	}
	return text
}
