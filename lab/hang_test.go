//go:build unix

package lab_test

import (
	"syscall"
	"testing"
	"time"

	"thru/lab"
)

// TestWorkerHangs stops the process that moves the data at the server.
func TestWorkerHangs(t *testing.T) {
	t.Parallel()
	p := lab.NewPair(t, lab.Options{Rate: slow})
	server := serve(t, p.B, "--no-auth")
	before := look(p.B)
	client := start(t, p.A, t.TempDir(), "", "test", "--json", "-t", "30", "--one-way", p.Data.B4.String())
	underWay(t, p, client, slow)
	for _, pid := range p.B.Pids() {
		if pid != server.cmd.Process.Pid {
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		}
	}
	if code := client.wait(t, lossLimit+2*time.Second); code != 1 {
		t.Errorf("exit %d, want 1", code)
	}
	if doc := client.document(t); doc.Error == nil || doc.Error.Hint == "" {
		t.Errorf("error %+v", doc.Error)
	}
	lab.Eventually(t, lossLimit, "the server has no worker", func() bool { return len(p.B.Pids()) == before.pids })
}
