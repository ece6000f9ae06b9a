package servers

import (
	"fmt"
	"path/filepath"
)

// vsftpdConf lets anonymous users write, which needs no privilege: other
// users would need PAM.
const vsftpdConf = `listen=YES
listen_address=%s
listen_port=%s
background=NO
run_as_launching_user=YES
one_process_model=%s
seccomp_sandbox=NO
anonymous_enable=YES
local_enable=NO
anon_root=%s
no_anon_password=YES
write_enable=YES
anon_upload_enable=YES
anon_other_write_enable=YES
anon_world_readable_only=NO
anon_umask=022
xferlog_enable=NO
ftpd_banner=thru's judge (vsFTPd)
`

// Vsftpd returns a vsftpd for anonymous users. more has further lines of its
// configuration.
func Vsftpd(dir, port, more string) (Server, error) {
	s := &setup{dir: dir}
	program, files := s.program("vsftpd"), s.folder("root", "box")
	oneProcess := "YES"
	if more != "" {
		oneProcess = "NO"
	}
	conf := s.write("vsftpd.conf", fmt.Sprintf(vsftpdConf, Host, port, oneProcess, filepath.Dir(files))+more)
	return s.server(port, files, "box", program, conf)
}

// VsftpdTLS returns the lines for TLS, with session reuse for data
// connections.
func VsftpdTLS(cert, key string) string {
	return fmt.Sprintf("ssl_enable=YES\nallow_anon_ssl=YES\nforce_anon_data_ssl=YES\nforce_anon_logins_ssl=YES\n"+
		"require_ssl_reuse=YES\nssl_tlsv1=YES\nssl_ciphers=HIGH\nrsa_cert_file=%s\nrsa_private_key_file=%s\n", cert, key)
}
