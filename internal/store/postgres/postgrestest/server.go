// Package postgrestest starts a PostgreSQL server for a test: of the programs that the system has, in a folder of its own, as an unprivileged user.
package postgrestest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Password is that of the users that tests make.
const Password = "geheim:/@ 7"

// limit bounds each step.
const limit = 2 * time.Minute

// Server is a running server. Its superuser is postgres, by the Unix socket and without a password; by TCP it asks for one.
type Server struct {
	Dir  string // with the socket, and the certificate server.crt
	Port int
	made atomic.Int64
	user []string // a prefix that runs a command as the server's user
	bin  string
	stop io.Closer
	over chan error
}

// Start starts a server, which ends with the test. Where none is installed it skips the test, or fails it with THRU_REQUIRE_LAB=1.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{bin: programs()}
	if s.bin == "" {
		if os.Getenv("THRU_REQUIRE_LAB") == "1" {
			t.Fatal("no PostgreSQL server is installed (Debian: postgresql)")
		}
		t.Skip("no PostgreSQL server is installed (Debian: postgresql)")
	}
	dir, err := os.MkdirTemp("/tmp", "thru-pg-") // the path of a socket has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s.Dir = dir
	if os.Getuid() == 0 {
		s.user = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	s.run(t, "initdb", "-D", s.data(), "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "-N", "--auth-local=trust", "--auth-host=scram-sha-256")
	s.certify(t)
	s.Port = freePort(t)
	s.Run(t)
	t.Cleanup(func() { s.Stop(t) })
	return s
}

// programs returns the folder of the server's programs: the newest of Debian's, or that of the PATH.
func programs() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil && len(found) == 0 {
		found = []string{path}
	}
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[len(found)-1])
}

func (s *Server) data() string { return filepath.Join(s.Dir, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	line := append(slices.Clone(s.user), filepath.Join(s.bin, name))
	line = append(line, args...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = s.Dir
	return cmd
}

func (s *Server) run(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := s.command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// Run starts the server again after Stop. It ends with this process, however that ends: a shell waits for its end of a pipe.
func (s *Server) Run(t testing.TB) {
	t.Helper()
	args := []string{"-D", s.data(), "-F", "-k", s.Dir, "-p", strconv.Itoa(s.Port), "-c", "listen_addresses=127.0.0.1", "-c", "ssl=on",
		"-c", "ssl_cert_file=" + filepath.Join(s.Dir, "server.crt"), "-c", "ssl_key_file=" + filepath.Join(s.Dir, "server.key"), "-c", "max_connections=40"}
	server := s.command("postgres", args...)
	cmd := exec.Command("sh", append([]string{"-c", `"$@" </dev/null & p=$!; read x; kill -INT $p; wait $p`, "sh"}, server.Args...)...)
	cmd.Dir = s.Dir
	log, err := os.Create(filepath.Join(s.Dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if s.stop, err = cmd.StdinPipe(); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	s.over = make(chan error, 1)
	go func() { s.over <- cmd.Wait() }()
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		c, err := pgconn.Connect(context.Background(), s.URL("postgres"))
		if err == nil {
			_ = c.Close(context.Background())
			return
		}
		select {
		case <-s.over:
			s.stop = nil
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("the server has ended: %s", text)
		default:
			if time.Now().After(end) {
				t.Fatal(err)
			}
		}
	}
}

// Stop stops the server at once, as a crash of the machine that it runs on does for its clients.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if s.stop == nil {
		return
	}
	s.stop.Close()
	s.stop = nil
	select {
	case <-s.over:
	case <-time.After(limit):
		t.Error("the server does not end")
	}
}

// URL returns the URL of a database, for the superuser by the Unix socket.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@/%s?host=%s&port=%d", database, s.Dir, s.Port)
}

// TCP returns the URL of a database by TCP, without a password.
func (s *Server) TCP(user, database, more string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?%s", user, s.Port, database, more)
}

// Database makes an empty database and returns its name.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("db%d", s.made.Add(1))
	s.Exec(t, "postgres", "CREATE DATABASE "+name)
	return name
}

// Exec runs statements as the superuser, and returns the rows of the last one, with tabs between columns.
func (s *Server) Exec(t testing.TB, database, statements string) (lines []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c, err := pgconn.Connect(ctx, s.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	all, err := c.Exec(ctx, statements).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", statements, err)
	}
	for _, row := range all[len(all)-1].Rows {
		lines = append(lines, string(bytes.Join(row, []byte("\t"))))
	}
	return lines
}

// certify makes a certificate for localhost and 127.0.0.1 that signs itself.
func (s *Server) certify(t testing.TB) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"server.crt": {Type: "CERTIFICATE", Bytes: cert}, "server.key": {Type: "PRIVATE KEY", Bytes: private}} {
		path := filepath.Join(s.Dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if len(s.user) > 0 && strings.HasSuffix(name, ".key") {
			if err := os.Chown(path, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chmod(filepath.Join(s.Dir, "server.crt"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
