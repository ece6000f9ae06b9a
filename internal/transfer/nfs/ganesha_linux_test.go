package nfs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thru/internal/fault"
	"thru/internal/transfer"
	"thru/internal/transfer/transfertest"
	"thru/lab"
)

// ganesha is nfs-ganesha with a port mapper in a network namespace, since both
// have well-known ports, exporting a folder of files and two of its own.
func ganesha(t *testing.T) transfertest.Server {
	t.Helper()
	lab.Require(t, lab.Root(), lab.Namespaces(), lab.Program("ganesha.nfsd"), lab.Program("rpcbind"), lab.Program("rpcinfo"))
	dir := t.TempDir()
	folder := filepath.Join(dir, "files")
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	before := transfertest.Apart(t, dir)
	host := lab.New(t).Host("server")
	text := fmt.Sprintf("NFS_CORE_PARAM { Protocols = 3; NFS_Port = 2049; MNT_Port = 20048; Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; }\n"+
		"NFSV4 { RecoveryRoot = %q; Graceless = true; }\nLOG { Default_Log_Level = WARN; }\n", filepath.Join(dir, "recovery"))
	for i, name := range []string{"files", "full", "ro"} {
		text += fmt.Sprintf("EXPORT { Export_Id = %d; Path = %q; Pseudo = \"/%s\"; Access_Type = RW; Squash = none; SecType = sys; Protocols = 3; "+
			"Transports = TCP; PrivilegedPort = true; FSAL { Name = VFS; } }\n", i+1, filepath.Join(dir, name), name)
	}
	conf := filepath.Join(dir, "ganesha.conf")
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	script := `mount -t tmpfs none /run; rpcbind -f & until rpcinfo -p 127.0.0.1 >/dev/null 2>&1; do sleep 0.05; done; exec ganesha.nfsd -F -L STDERR -f "$1" -p /run/ganesha.pid`
	words := append(before[1:], "sh", "-c", script, "sh", conf)
	argv := host.Command(t.Context(), before[0], words...).Args
	transfertest.Serve(t, argv[0], argv[1:]...)
	dial := func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		host.Inside(func() error { conn, err = transfer.Dial(ctx, net.Dialer{}, network, addr); return nil })
		return conn, err
	}
	path := strings.TrimPrefix(folder, "/")
	root := strings.TrimPrefix(dir, "/")
	server := transfertest.Server{
		Config: transfer.Config{Host: "127.0.0.1", Path: path + "/x", Dial: dial},
		Folder: folder, Dir: path, Full: root + "/full/x", ReadOnly: root + "/ro/x",
	}
	await(t, server.Config)
	return server
}

// await returns when the server lets its folder be mounted.
func await(t *testing.T, cfg transfer.Config) {
	t.Helper()
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var s transfer.Session
		if s, err = New(cfg).Open(t.Context()); err == nil {
			s.Close()
			return
		}
	}
	t.Fatal(err)
}

func TestContractGanesha(t *testing.T) {
	transfertest.Run(t, transfertest.Suite{Start: ganesha, New: New, Open: true, Large: 16 << 20})
}

// TestGanesha holds what is said of a session to what the server was told.
func TestGanesha(t *testing.T) {
	server := ganesha(t)
	text := strings.Join(opened(t, server.Config).Info().Details, "\n")
	for _, want := range []string{"as user 0, group 0 (AUTH_SYS), from a port below 1024", "16 calls of 1048576 bytes in flight"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	server.Config.Path = "nowhere/x"
	s, err := New(server.Config).Open(t.Context())
	if err == nil {
		s.Close()
	}
	// For what it does not export it says that access is denied, not that nothing is there.
	if !errors.Is(err, transfer.ErrLogin) || fault.Hint(err) == "" {
		t.Errorf("%v, hint %q", err, fault.Hint(err))
	}
}
