//go:build unix

package servers

import (
	"fmt"
	"os"

	"thru/internal/transfer"
)

// nginxConf is a server of files with WebDAV's PUT and DELETE, for one user.
const nginxConf = `
%[5]s
daemon off; master_process off; pid %[1]s/pid; error_log stderr crit;
events {}
http {
	access_log off; client_max_body_size 0;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	server {
		listen %[6]s:%[2]s %[3]s;
		root %[1]s/files;
		auth_basic thru; auth_basic_user_file %[1]s/users;
		location / { dav_methods PUT DELETE; }
		location /fixed/ { }
		%[4]s
	}
}
`

// Nginx is a nginx for the user me, with TLS where cert is not empty. more are
// further lines of its server.
func Nginx(dir, port, cert, key, more string) (Server, error) {
	program, err := Program("nginx")
	if err != nil {
		return Server{}, err
	}
	files, err := folder(dir, "files", "box")
	if err != nil {
		return Server{}, err
	}
	if _, err := folder(dir, "files", "fixed"); err != nil {
		return Server{}, err
	}
	if _, err := write(dir, "users", "me:{PLAIN}right\n"); err != nil {
		return Server{}, err
	}
	tls, user := "", ""
	if cert != "" {
		tls = fmt.Sprintf("ssl; ssl_certificate %s; ssl_certificate_key %s", cert, key)
	}
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	conf, err := write(dir, "nginx.conf", fmt.Sprintf(nginxConf, dir, port, tls, more, user, Host))
	if err != nil {
		return Server{}, err
	}
	s := Server{
		Argv:   []string{program, "-p", dir, "-c", conf, "-e", "stderr"},
		Config: transfer.Config{Host: Host, Port: port, Path: "box/x"},
		Folder: files, Dir: "box",
	}
	return s.with("me", "right"), nil
}
