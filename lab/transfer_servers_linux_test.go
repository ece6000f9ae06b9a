package lab_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"thru/lab"
)

// place is where a file server runs.
type place struct {
	host   *lab.Host
	addr   string
	folder string   // of its files; everyone may write there
	limits []string // control groups that the server joins
	more   string   // a line of its configuration
}

// files is a real server with the arguments and environment that a client of thru needs.
type files struct {
	url  string // of the folder, with a slash at the end
	args []string
	env  []string
}

// servers are the real servers, by the scheme of their URLs.
func servers() map[string]func(*testing.T, place) files {
	return map[string]func(*testing.T, place) files{
		"http": nginxAt, "ftp": vsftpdAt, "sftp": sshdAt, "smb": smbdAt, "nfs": ganeshaAt, "nfs4": ganeshaFourAt, "rsync": rsyncAt,
	}
}

// groupsFirst makes a command join control groups before it starts, since `ip netns exec` hides them.
func groupsFirst(cmd *exec.Cmd, groups []string) {
	for _, g := range groups {
		cmd.Args = append([]string{"sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, g}, cmd.Args...)
		cmd.Path = "/bin/sh"
	}
}

// run starts a server, waits until it listens, and kills all its processes when the test ends.
func (p place) run(t *testing.T, port string, words ...string) *output {
	t.Helper()
	cmd, said := p.host.Command(context.Background(), words[0], words[1:]...), &output{}
	groupsFirst(cmd, p.limits)
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s: %s", words[0], shorten(said.String()))
		}
	})
	lab.Eventually(t, 20*time.Second, words[0]+" listens", func() bool {
		return strings.Contains(strings.Join(p.host.Sockets(), "\n"), ":"+port+" ")
	})
	return said
}

// agent starts thru at the server's host, where it may measure the disk of the server's folder, and joins it
// at a client's host. It returns the client's home folder, in which the end point is named "server".
func (p place) agent(t *testing.T, client *lab.Host) (home string) {
	t.Helper()
	said := p.run(t, "5200", "env", "HOME="+t.TempDir(), "XDG_STATE_HOME=", "XDG_CONFIG_HOME=", lab.Binary(t), "serve", "--allow", "files", "--files", p.folder)
	secrets := regexp.MustCompile(`thru1\.[\w-]+`)
	lab.Eventually(t, 10*time.Second, "thru serve is ready", func() bool { return strings.Contains(said.String(), "ready") })
	all := secrets.FindAllString(said.String(), -1)
	if len(all) != 2 {
		t.Fatalf("thru serve --allow files printed %d join strings", len(all))
	}
	home = t.TempDir()
	if code := start(t, client, home, all[1], "join", "server").wait(t, 20*time.Second); code != 0 {
		t.Fatalf("thru join ended with exit %d", code)
	}
	return home
}

// config writes a configuration file.
func config(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// nginxAt: more is a line of the server block, or options of listen.
func nginxAt(t *testing.T, p place) files {
	lab.Require(t, lab.Program("nginx"))
	dir, listen := t.TempDir(), ""
	if strings.HasPrefix(p.more, "rcvbuf") || strings.HasPrefix(p.more, "sndbuf") {
		listen, p.more = p.more, ""
	}
	conf := config(t, dir, "conf", fmt.Sprintf(`user root; daemon off; master_process off; pid %[1]s/pid; error_log stderr crit;
events {}
http { access_log off; client_max_body_size 0; client_body_temp_path %[2]s/.body;
 server { listen %[3]s:8080 %[4]s; root %[2]s; %[5]s location / { dav_methods PUT DELETE; } } }`, dir, p.folder, p.addr, listen, p.more))
	p.run(t, "8080", "nginx", "-c", conf, "-e", "stderr")
	return files{url: "http://" + p.addr + ":8080/"}
}

// vsftpdAt allows anonymous writes below a folder of another owner.
func vsftpdAt(t *testing.T, p place) files {
	lab.Require(t, lab.Program("vsftpd"))
	conf := config(t, t.TempDir(), "conf", fmt.Sprintf(`listen=YES
listen_address=%s
background=NO
run_as_launching_user=YES
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
%s
`, p.addr, filepath.Dir(p.folder), p.more))
	p.run(t, "21", "vsftpd", conf)
	return files{url: "ftp://" + p.addr + "/" + filepath.Base(p.folder) + "/"}
}

// sshdAt lets root log in with a key.
func sshdAt(t *testing.T, p place) files {
	const program, server = "/usr/sbin/sshd", "/usr/lib/openssh/sftp-server"
	lab.Require(t, lab.Program("ssh-keygen"), lab.Program(program), lab.Program(server))
	dir := t.TempDir()
	for _, key := range []string{"host", "user"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // home of its unprivileged process
		t.Fatal(err)
	}
	conf := config(t, dir, "conf", fmt.Sprintf("ListenAddress %s\nHostKey %s/host\nAuthorizedKeysFile %[2]s/user.pub\nPidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nSubsystem sftp %s\n%s\n", p.addr, dir, server, p.more))
	p.run(t, "22", program, "-D", "-e", "-f", conf)
	return files{url: "sftp://root@" + p.addr + p.folder + "/", args: []string{"--insecure", "-i", filepath.Join(dir, "user")}, env: []string{"SSH_AUTH_SOCK="}}
}

// labPassword is the password of all servers that need one.
const labPassword = "a pass; word"

// smbdAt has one share, for the user of the test.
func smbdAt(t *testing.T, p place) files {
	lab.Require(t, lab.Program("smbd"), lab.Program("pdbedit"))
	dir, err := os.MkdirTemp("/tmp", "thru-smb-") // a socket's name has 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	text := "[global]\nworkgroup = LAB\nnetbios name = THRULAB\nserver role = standalone server\nmap to guest = Never\n" +
		"interfaces = " + p.addr + "/24\nbind interfaces only = yes\ndisable netbios = yes\nload printers = no\ndisable spoolss = yes\n" +
		"printcap name = /dev/null\nmax log size = 0\nlog file = " + dir + "/log\npassdb backend = smbpasswd:" + dir + "/smbpasswd\n"
	for _, name := range []string{"private dir", "state directory", "cache directory", "lock directory", "pid directory", "ncalrpc dir"} {
		folder := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		text += name + " = " + folder + "\n"
	}
	conf := config(t, dir, "conf", text+p.more+"\n[data]\npath = "+p.folder+"\nread only = no\n")
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	add := exec.Command("pdbedit", "-s", conf, "-a", "-t", "-u", me.Username)
	add.Stdin = strings.NewReader(labPassword + "\n" + labPassword + "\n")
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("pdbedit: %v\n%s", err, out)
	}
	p.run(t, "445", "smbd", "-F", "--no-process-group", "-s", conf, "--debug-stdout", "-l", dir)
	return files{url: "smb://" + me.Username + "@" + p.addr + "/data/", env: []string{"THRU_PASSWORD=" + labPassword}}
}

// ganeshaAt exports the folder by NFS 3, and runs a port mapper.
func ganeshaAt(t *testing.T, p place) files { return p.ganesha(t, "3", "20048") }

// ganeshaFourAt exports it by NFS 4 only; the URL does not name the version.
func ganeshaFourAt(t *testing.T, p place) files { return p.ganesha(t, "4", "2049") }

func (p place) ganesha(t *testing.T, protocols, port string) files {
	t.Helper()
	lab.Require(t, lab.Program("ganesha.nfsd"), lab.Program("rpcbind"), lab.Program("rpcinfo"))
	dir := t.TempDir()
	conf := config(t, dir, "conf", fmt.Sprintf("NFS_CORE_PARAM { Protocols = %[1]s; NFS_Port = 2049; MNT_Port = 20048; Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; }\n"+
		"NFSV4 { RecoveryRoot = %[2]q; Graceless = true; }\nLOG { Default_Log_Level = WARN; }\n"+
		"EXPORT { Export_Id = 1; Path = %[3]q; Pseudo = %[3]q; Access_Type = RW; Squash = none; SecType = sys; Protocols = %[1]s; Transports = TCP; FSAL { Name = VFS; } %[4]s }\n",
		protocols, filepath.Join(dir, "recovery"), p.folder, p.more))
	const script = `mount -t tmpfs none /run; rpcbind -f & until rpcinfo -p 127.0.0.1 >/dev/null 2>&1; do sleep 0.05; done; exec ganesha.nfsd -F -L STDERR -f "$1" -p /run/ganesha.pid`
	p.run(t, port, "unshare", "-m", "sh", "-c", script, "sh", conf)
	return files{url: "nfs://" + p.addr + p.folder + "/"}
}

// rsyncAt is a daemon with one public module.
func rsyncAt(t *testing.T, p place) files {
	lab.Require(t, lab.Program("rsync"))
	dir := t.TempDir()
	conf := config(t, dir, "conf", fmt.Sprintf("address = %s\nuse chroot = no\nuid = 0\ngid = 0\npid file = %s/pid\nlog file = /dev/stderr\n%s\n[data]\npath = %s\nread only = no\n", p.addr, dir, p.more, p.folder))
	p.run(t, "873", "rsync", "--daemon", "--no-detach", "--config="+conf)
	return files{url: "rsync://" + p.addr + "/data/"}
}
