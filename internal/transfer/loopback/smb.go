package loopback

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strings"
)

// serveSMB is the system's smbd (smb.conf(5)), with one share, for the user of this
// process, who has a password by chance. It signs and encrypts as the real server does.
func serveSMB(ctx context.Context, o Options) (*Server, error) {
	pdbedit, err := find("pdbedit")
	if err != nil {
		return nil, err
	}
	p, err := newProgram("smbd")
	if err != nil {
		return nil, err
	}
	s := p.server()
	if err := configureSMB(ctx, p, s, pdbedit, o); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return s, nil
}

func configureSMB(ctx context.Context, p *program, s *Server, pdbedit string, o Options) error {
	me, err := user.Current()
	if err != nil {
		return err
	}
	s.user, s.password = me.Username, rand.Text()
	conf, err := p.write("smb.conf", p.smbConf(o))
	if err != nil {
		return err
	}
	add := exec.CommandContext(ctx, pdbedit, "-s", conf, "-a", "-t", "-u", s.user)
	add.Stdin = strings.NewReader(s.password + "\n" + s.password + "\n")
	if out, err := add.CombinedOutput(); err != nil {
		return fmt.Errorf("making its user: %w (%.200q)", err, strings.TrimSpace(string(out)))
	}
	return p.start(ctx, "-F", "--no-process-group", "-s", conf, "--debug-stdout", "-l", p.folder.Path)
}

// smbConf keeps all that Samba writes in the program's folder.
func (p *program) smbConf(o Options) string {
	text := "[global]\nserver role = standalone server\nmap to guest = Never\ninterfaces = 127.0.0.1/8\nbind interfaces only = yes\n" +
		"disable netbios = yes\nload printers = no\ndisable spoolss = yes\nprintcap name = /dev/null\nmax log size = 0\n" +
		"log file = " + p.folder.Path + "/log\nsmb ports = " + p.port + "\npassdb backend = smbpasswd:" + p.folder.Path + "/smbpasswd\n"
	for _, name := range []string{"private dir", "state directory", "cache directory", "lock directory", "pid directory", "ncalrpc dir"} {
		dir := p.folder.File(strings.ReplaceAll(name, " ", "-"))
		_ = os.Mkdir(dir, 0o755) // one that is missing, Samba names
		text += name + " = " + dir + "\n"
	}
	for _, detail := range o.Agreed {
		switch {
		case strings.HasPrefix(detail, "signed"):
			text += "server signing = mandatory\n"
		case strings.HasPrefix(detail, "encrypted"):
			text += "server smb encrypt = required\n"
		}
	}
	return text + "[" + share + "]\npath = " + p.data() + "\nread only = no\n"
}
