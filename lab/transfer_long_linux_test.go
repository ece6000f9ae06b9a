//go:build long

package lab_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
)

// webServer serves a folder in a host, and returns what a URL of it begins with.
func webServer(t *testing.T, h *lab.Host, addr, folder string) string {
	t.Helper()
	lab.Require(t, lab.Program("nginx"))
	conf := filepath.Join(t.TempDir(), "nginx.conf")
	text := fmt.Sprintf(`user root; daemon off; master_process off; pid %[1]s.pid; error_log stderr crit;
events {}
http { access_log off; client_max_body_size 0; client_body_temp_path %[1]s.body;
 server { listen %[2]s:8080; root %[3]s; location / { dav_methods PUT DELETE; }
  location /slow/ { alias %[3]s/; limit_rate 3m; } } }`, conf, addr, folder)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := h.Command(t.Context(), "nginx", "-c", conf, "-e", "stderr")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return "http://" + addr + ":8080/"
}

// TestTransferBinds: a real server over a link of 100 Mb/s with an agent beside
// it. The network is named where it binds, and the server where it holds back.
func TestTransferBinds(t *testing.T) {
	p := lab.NewPair(t, lab.Options{Rate: 100e6})
	folder := t.TempDir()
	data := make([]byte, 40<<20)
	rand.NewChaCha8([32]byte{}).Read(data)
	if err := os.WriteFile(filepath.Join(folder, "f"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	addr := p.Data.B4.String()
	url := webServer(t, p.B, addr, folder)
	there := start(t, p.B, t.TempDir(), "", "serve", "--no-auth", "--state", t.TempDir())
	for range 100 {
		if strings.Contains(there.stdout.String()+there.stderr.String(), "ready") {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, tt := range []struct {
		name, binds string
		args        []string
	}{
		{"the link", measure.LayerNetwork, []string{url + "f"}},
		{"the server", measure.LayerMemory, []string{url + "slow/f"}},
		{"the link, of an upload", measure.LayerNetwork, []string{url + "up", "--upload", "--size", "40M", "--no-read-back"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := start(t, p.A, t.TempDir(), "", append([]string{"transfer", "--end-point", addr, "-t", "2", "--json", "--no-disk"}, tt.args...)...)
			if code := c.wait(t, 50*time.Second); code != 0 {
				t.Fatalf("exit %d", code)
			}
			doc := c.document(t)
			if doc.Transfer == nil || doc.Transfer.Binds != tt.binds {
				t.Errorf("%q binds, want %q: %+v", doc.Transfer.Binds, tt.binds, doc.Transfer.Layers)
			}
		})
	}
}
