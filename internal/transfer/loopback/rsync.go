package loopback

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
)

// serveRsync is the system's rsync as a daemon (rsyncd.conf(5)), with one module,
// for one user, who has a password by chance.
func serveRsync(ctx context.Context) (*Server, error) {
	p, err := newProgram("rsync")
	if err != nil {
		return nil, err
	}
	s := p.server()
	s.user, s.password = share, rand.Text()
	secrets, err := p.write("secrets", s.user+":"+s.password+"\n")
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	text := fmt.Sprintf("port = %s\naddress = 127.0.0.1\nuse chroot = no\nreverse lookup = no\nlog file = /dev/stderr\n"+
		"[%s]\npath = %s\nread only = no\nhosts allow = 127.0.0.1\nauth users = %s\nsecrets file = %s\n", p.port, share, p.data(), s.user, secrets)
	if os.Geteuid() == 0 { // who owns the folder; else it becomes nobody
		text += "uid = 0\ngid = 0\n"
	}
	conf, err := p.write("rsyncd.conf", text)
	if err == nil {
		err = p.start(ctx, "--daemon", "--no-detach", "--config="+conf)
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return s, nil
}
