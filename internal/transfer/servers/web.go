package servers

import (
	"fmt"
	"os"
)

// nginxConf configures a file server with WebDAV's PUT and DELETE, for one
// user.
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

// Nginx returns an nginx for the user me, with TLS where cert is not empty.
// more has further lines of its server section.
func Nginx(dir, port, cert, key, more string) (Server, error) {
	s := &setup{dir: dir}
	program, files := s.program("nginx"), s.folder("files", "box")
	s.folder("files", "fixed")
	s.write("users", "me:{PLAIN}right\n")
	tls, user := "", ""
	if cert != "" {
		tls = fmt.Sprintf("ssl; ssl_certificate %s; ssl_certificate_key %s", cert, key)
	}
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	conf := s.write("nginx.conf", fmt.Sprintf(nginxConf, dir, port, tls, more, user, Host))
	return s.guarded("me", "right", port, files, "box", program, "-p", dir, "-c", conf, "-e", "stderr")
}
