//go:build unix

package transfertest

import (
	"bytes"
	"crypto/x509"
	"os/exec"
	"sync"
	"testing"
	"time"

	"thru/internal/transfer"
	"thru/internal/transfer/servers"
)

// Start starts a server in its own session, and kills all its processes when
// the test ends. Its output is shown where the test has failed.
func Start(t testing.TB, addr, program string, args ...string) {
	t.Helper()
	Serve(t, program, args...)
	Await(t, addr)
}

// Serve is Start for a server whose readiness only the caller can check.
func Serve(t testing.TB, program string, args ...string) {
	t.Helper()
	cmd, said := exec.Command(program, args...), &log{}
	cmd.Stdout, cmd.Stderr = said, said
	transfer.NewSession(cmd, 0)
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		transfer.End(cmd)
		cmd.Wait()
		if t.Failed() {
			text := said.text()
			t.Logf("%s said at last:\n%s", program, text[max(0, len(text)-2000):])
		}
	})
}

// log collects a server's output.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write keeps it.
func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *log) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Certificate creates files with a self-signed certificate for 127.0.0.1 and
// its key, and the pool that trusts it.
func Certificate(t testing.TB) (cert, key string, trusted *x509.CertPool, raw []byte) {
	t.Helper()
	cert, key, raw, err := servers.Certificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	trusted = x509.NewCertPool()
	trusted.AddCert(parsed)
	return cert, key, trusted, raw
}
