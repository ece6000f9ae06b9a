package own_test

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

	"go.uber.org/goleak"

	"thru/internal/agent"
	"thru/internal/bus"
	"thru/internal/engine"
	"thru/internal/host"
	"thru/internal/transfer"
	"thru/internal/transfer/own"
	"thru/internal/transfer/transfertest"
)

// serveFolder makes this program an agent that allows transfers below a
// folder.
const serveFolder = "THRU_TEST_SERVE_FOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveFolder); dir != "" {
		if err := serve(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// serve serves until it is killed. Its join string is in the file join in the
// parent folder.
func serve(dir string) error {
	s, _, err := bus.Listen(context.Background(), bus.ServerConfig{Addrs: []string{"127.0.0.1:0"}, Allow: bus.Privileges()})
	if err != nil {
		return err
	}
	a := agent.New(agent.Config{
		Name: "there", Version: "v1", Host: host.New(), Limits: agent.DefaultLimits(),
		Listen: engine.Listen{Addrs: []string{"127.0.0.1"}}, Files: agent.Files{Folders: []string{dir}},
	})
	if _, err := bus.Serve(s, a); err != nil {
		return err
	}
	join := filepath.Join(filepath.Dir(dir), "join")
	if err := os.WriteFile(join+".new", []byte(s.JoinFor(bus.PrivilegeFiles, nil).String()), 0o600); err != nil {
		return err
	}
	if err := os.Rename(join+".new", join); err != nil {
		return err
	}
	select {}
}

// start runs such an agent, and connects to it.
func start(t *testing.T) (transfertest.Server, *own.End) {
	t.Helper()
	base := t.TempDir()
	dir, apart := filepath.Join(base, "data"), filepath.Join(base, "data", "sub")
	files := filepath.Join(dir, "files")
	if err := os.MkdirAll(files, 0o700); err != nil {
		t.Fatal(err)
	}
	words := transfertest.MakeFolders(t, apart)
	t.Setenv(serveFolder, dir)
	words = append(words, os.Args[0])
	transfertest.Serve(t, words[0], words[1:]...)
	var text []byte
	for end := time.Now().Add(30 * time.Second); len(text) == 0; time.Sleep(10 * time.Millisecond) {
		if text, _ = os.ReadFile(filepath.Join(base, "join")); time.Now().After(end) {
			t.Fatal("the agent does not come")
		}
	}
	j, err := bus.ParseJoin(string(text))
	if err != nil {
		t.Fatal(err)
	}
	c, err := bus.Dial(t.Context(), bus.DialConfig{Addrs: j.Control, Secret: j.Secret, Pin: j.Pin})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	hello, err := c.Hello(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(j.Control[0])
	server := transfertest.Server{Config: transfer.Config{Host: host, Port: port}, Folder: files, Dir: strings.Trim(files, "/")}
	if len(words) > 1 {
		server.ReadOnly, server.Full = strings.Trim(apart, "/")+"/ro/f", strings.Trim(apart, "/")+"/full/f"
	}
	return server, own.NewEnd(c, hello, []string{host})
}

// gone is a client of an unreachable agent.
type gone struct{ addr string }

// Open fails.
func (g gone) Open(ctx context.Context) (transfer.Session, error) {
	c, err := bus.Dial(ctx, bus.DialConfig{Addrs: []string{g.addr}})
	if err == nil {
		c.Close()
		err = errors.New("somebody answers")
	}
	return nil, err
}

// TestContract runs the contract against an agent in another process.
func TestContract(t *testing.T) {
	server, end := start(t)
	transfertest.Run(t, transfertest.Suite{
		Open:  true,
		Start: func(*testing.T) transfertest.Server { return server },
		New: func(cfg transfer.Config) transfer.Client {
			if cfg.Port != server.Config.Port {
				return gone{net.JoinHostPort(cfg.Host, cfg.Port)}
			}
			return end.Client(cfg)
		},
	})
}
