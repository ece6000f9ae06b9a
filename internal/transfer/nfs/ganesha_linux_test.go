package nfs

import (
	"context"
	"errors"
	"fmt"
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
func ganesha(t *testing.T, versions ...string) transfertest.Server {
	t.Helper()
	lab.Require(t, lab.Root(), lab.Namespaces(), lab.Program("ganesha.nfsd"), lab.Program("rpcbind"), lab.Program("rpcinfo"))
	dir := t.TempDir()
	ready, err := servers.Ganesha(dir, versions, "full", "ro")
	if err != nil {
		t.Fatal(err)
	}
	before := transfertest.MakeFolders(t, dir)
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

// await returns when the server mounts its folder, or supports 4.0 only.
func await(t *testing.T, cfg transfer.Config) {
	t.Helper()
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var s transfer.Session
		if s, err = New(cfg).Open(t.Context()); err == nil {
			s.Close()
		}
		if err == nil || hasCode(err, codeMinor) {
			return
		}
	}
	t.Fatal(err)
}

// TestContractGanesha: both versions pass the whole contract, and 4.1 is used
// where a server offers only that.
func TestContractGanesha(t *testing.T) {
	for name, c := range map[string]struct {
		versions []string
		client   func(transfer.Config) transfer.Client
	}{
		"3 of both":   {[]string{"3", "4.0", "4.1"}, New},
		"4.1 of both": {[]string{"3", "4.0", "4.1"}, NewFour},
		"4.1 alone":   {[]string{"4.1"}, New},
	} {
		t.Run(name, func(t *testing.T) {
			start := func(t *testing.T) transfertest.Server { return ganesha(t, c.versions...) }
			transfertest.Run(t, transfertest.Suite{Start: start, New: c.client, Open: true, Large: 16 << 20})
		})
	}
}

// TestGanesha verifies what a session reports against the server's
// configuration.
func TestGanesha(t *testing.T) {
	server := ganesha(t, "3", "4.1")
	for _, c := range []struct {
		client func(transfer.Config) transfer.Client
		want   []string
	}{
		{New, []string{"thru's own NFSv3 client", "NFS 3 over TCP"}},
		{NewFour, []string{"thru's own NFSv4.1 client", "NFS 4.1 over TCP"}},
	} {
		info := opened(t, c.client, server.Config).Info()
		text := fmt.Sprintf("%+v", info)
		for _, want := range append(c.want, "as user 0, group 0 (AUTH_SYS), from a port below 1024", "/"+server.Dir+" mounted") {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in:\n%s", want, text)
			}
		}
		calls := 0
		for _, line := range info.Details {
			fmt.Sscanf(line, "%d calls of 1048576 bytes in flight", &calls)
		}
		if calls < 4 || calls > 16 { // by the round trip
			t.Errorf("%d calls in flight:\n%s", calls, text)
		}
	}
	server.Config.Path = "nowhere/x"
	unopened(t, New, server.Config, transfer.ErrLogin) // it answers "access denied" for what it does not export
	unopened(t, NewFour, server.Config, transfer.ErrMissing)
}

// unopened fails where a session opens, or its error has no hint.
func unopened(t *testing.T, client func(transfer.Config) transfer.Client, cfg transfer.Config, want error) {
	t.Helper()
	s, err := client(cfg).Open(t.Context())
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, want) || !strings.Contains(fault.Hint(err), "insecure") {
		t.Errorf("%v, hint %q", err, fault.Hint(err))
	}
}

// TestGaneshaVersions: a server without the requested version is
// distinguished from one that is no NFS server, with a hint.
func TestGaneshaVersions(t *testing.T) {
	for name, c := range map[string]struct {
		versions []string
		client   func(transfer.Config) transfer.Client
		err      string // empty: the session says "NFS 3"
		hint     string
	}{
		"3, by nfs":    {[]string{"3"}, New, "", ""},
		"3, by nfs4":   {[]string{"3"}, NewFour, "no such program or version", "use nfs:// for NFS 3"},
		"4.0, by nfs":  {[]string{"4.0"}, New, "neither 4.1 nor NFS 3", "supports only these"},
		"4.0, by nfs4": {[]string{"4.0"}, NewFour, "but not 4.1", "vers4.1=y"},
	} {
		t.Run(name, func(t *testing.T) {
			server := ganesha(t, c.versions...)
			s, err := c.client(server.Config).Open(t.Context())
			if err == nil {
				defer s.Close()
				if said := s.Info().Details[0]; c.err != "" || said != "NFS 3 over TCP" {
					t.Errorf("a session: %s", said)
				}
				return
			}
			if c.err == "" || !strings.Contains(err.Error(), c.err) || !strings.Contains(fault.Hint(err), c.hint) {
				t.Errorf("%v; %s", err, fault.Hint(err))
			}
		})
	}
}

// TestGaneshaHighPort: a server that requires a port below 1024 is reported
// so by any version.
func TestGaneshaHighPort(t *testing.T) {
	server := ganesha(t, "3", "4.1")
	low := server.Config.Dial
	server.Config.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return low(high{ctx}, network, addr)
	}
	unopened(t, New, server.Config, transfer.ErrLogin)
	unopened(t, NewFour, server.Config, transfer.ErrMissing) // it shows nothing of such an export
}

// high is a context without the request for a low port.
type high struct{ context.Context }

// Value returns nil.
func (high) Value(any) any { return nil }
