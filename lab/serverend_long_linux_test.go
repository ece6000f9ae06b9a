//go:build long

package lab_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
	"thru/lab/wire"
)

// webServers serves a folder at some ports, each with its own options for the sockets that it accepts (nginx,
// listen).
func webServers(t *testing.T, h *lab.Host, addr, folder string, options map[int]string) {
	t.Helper()
	lab.Require(t, lab.Program("nginx"))
	conf, servers := filepath.Join(t.TempDir(), "nginx.conf"), ""
	for port, option := range options {
		servers += fmt.Sprintf(" server { listen %s:%d %s; root %s; location / { dav_methods PUT DELETE; } location /slow/ { alias %[4]s/; limit_rate 3m; } }\n", addr, port, option, folder)
	}
	text := fmt.Sprintf(`user root; daemon off; master_process off; pid %[1]s.pid; error_log stderr crit;
events {}
http { access_log off; client_max_body_size 0; client_body_temp_path %[1]s.body;
%[2]s}`, conf, servers)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := h.Command(t.Context(), "nginx", "-c", conf, "-e", "stderr")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

// TestServerEnd: the socket statistics of the server's kernel name what limits the connections. KEEP=DIR
// keeps the documents.
func TestServerEnd(t *testing.T) {
	const fast = 200_000_000
	direction := wire.Impairment{Rate: fast, Delay: 10 * time.Millisecond, Queue: fast / 8 / 20}
	p := lab.NewWired(t, lab.WiredOptions{AtoB: direction, BtoA: direction})
	folder, data := t.TempDir(), make([]byte, 40<<20)
	rand.NewChaCha8([32]byte{}).Read(data)
	for name, size := range map[string]int{"f": len(data), "g": 6 << 20} {
		if err := os.WriteFile(filepath.Join(folder, name), data[:size], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	addr := p.Data.B4.String()
	webServers(t, p.B, addr, folder, map[int]string{8080: "", 8081: "sndbuf=64k", 8082: "rcvbuf=64k"})
	up := []string{"--upload", "--no-read-back"}
	for _, tt := range []struct {
		name, url, size string
		args            []string
		lossy           bool // data from the server is lost
		causes          []string
		at              string // place
	}{
		{"small-send-buffer", ":8081/f", "", nil, false, []string{"send-buffer"}, measure.AtSender},
		{"small-receive-buffer", ":8082/up", "8M", up, false, []string{"receive-window"}, measure.AtReceiver},
		{"slow-server", ":8080/slow/f", "", nil, false, []string{"app-limited", "round-trips"}, measure.AtSender},
		{"loss", ":8080/g", "", nil, true, []string{"loss"}, measure.AtPath},
	} {
		t.Run(tt.name, func(t *testing.T) {
			back := direction
			if tt.lossy {
				back.Loss, back.Seed = 0.01, 7
			}
			p.Wire.Set(wire.BtoA, back)
			// Each case has a server of its own, since start kills a program after a minute.
			serve(t, p.B, "--no-auth")
			args := []string{"transfer", "http://" + addr + tt.url, "--json", "--no-disk", "--end-point", addr, "-t", "2"}
			if tt.size != "" {
				args = append(args, "--size", tt.size)
			}
			c := start(t, p.A, t.TempDir(), "", append(args, tt.args...)...)
			if code := c.wait(t, time.Minute); code != 0 {
				t.Fatalf("exit %d", code)
			}
			doc := c.document(t)
			if dir := os.Getenv("KEEP"); dir != "" {
				os.WriteFile(filepath.Join(dir, tt.name+".json"), []byte(c.stdout.String()), 0o644)
			}
			run := doc.Transfer.Runs[0]
			if len(run.There) == 0 || run.There[0].Timeline == nil || run.ThereCPU == nil || run.ThereCPU.WorkerCores == nil || len(run.Programs) == 0 || run.Programs[0] != "nginx" {
				t.Errorf("there: %+v, %+v, %v; missing %v", run.There, run.ThereCPU, run.Programs, doc.Missing)
			}
			f := doc.Findings[0]
			t.Logf("%s: %s by %s (%s)", doc.Transfer.Binds, doc.Transfer.Why, f.Cause, f.Confidence)
			found := false
			for _, want := range tt.causes {
				found = found || f.Cause == want
			}
			if !found || f.Where.Place != tt.at && f.Cause != "round-trips" {
				t.Errorf("%s at %+v, want %v at %s", f.Cause, f.Where, tt.causes, tt.at)
			}
		})
	}
}
