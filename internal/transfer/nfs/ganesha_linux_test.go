package nfs

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"thru/internal/fault"
	"thru/internal/transfer"
	"thru/internal/transfer/servers"
	"thru/internal/transfer/transfertest"
	"thru/lab"
)

// ganesha is nfs-ganesha with a port mapper in a network namespace, since both
// have well-known ports, exporting a folder of files and two of its own.
func ganesha(t *testing.T) transfertest.Server {
	t.Helper()
	lab.Require(t, lab.Root(), lab.Namespaces(), lab.Program("ganesha.nfsd"), lab.Program("rpcbind"), lab.Program("rpcinfo"))
	dir := t.TempDir()
	ready, err := servers.Ganesha(dir, "full", "ro")
	if err != nil {
		t.Fatal(err)
	}
	before := transfertest.Apart(t, dir)
	host := lab.New(t).Host("server")
	words := append(before[1:], ready.Argv...)
	argv := host.Command(t.Context(), before[0], words...).Args
	transfertest.Serve(t, argv[0], argv[1:]...)
	dial := func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		host.Inside(func() error { conn, err = transfer.Dial(ctx, net.Dialer{}, network, addr); return nil })
		return conn, err
	}
	ready.Config.Dial = dial
	root := strings.TrimPrefix(dir, "/")
	server := transfertest.Server{
		Config: ready.Config, Folder: ready.Folder, Dir: ready.Dir, Full: root + "/full/x", ReadOnly: root + "/ro/x",
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
