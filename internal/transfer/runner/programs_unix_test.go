//go:build unix

package runner

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"thru/internal/transfer"
)

// worker is a program whose child process uses CPU time.
type worker struct {
	program
	used time.Duration
}

func (w *worker) Open(context.Context) (transfer.Session, error) {
	return labour{errand{visit{&w.shelf}}, w}, nil
}

type labour struct {
	errand
	w *worker
}

func (l labour) Fetch(ctx context.Context, path, local string, progress func(int64)) (int64, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", "(i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done); :")
	if err := cmd.Run(); err != nil {
		return 0, err
	}
	l.w.used += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return l.errand.Fetch(ctx, path, local, progress)
}

// TestProgramCPU: the CPU time of a program and its children is added to this
// process's, even where the bytes pass through here.
func TestProgramCPU(t *testing.T) {
	w := &worker{program: program{shelf{files: map[string][]byte{"f": make([]byte, 1<<20)}}}}
	job := download(w, nil, func(int, int) (Sink, error) { return Nowhere(), nil })
	out, err := Run(t.Context(), job)
	if err != nil || w.used <= 0 {
		t.Fatal(w.used, err)
	}
	if out.Run.HereProgram != "program" {
		t.Errorf("the program is %q", out.Run.HereProgram)
	}
	span := out.Run.HereHost
	if span == nil || span.Worker == nil {
		t.Skip("this system does not tell what this process uses")
	}
	if got := time.Duration(span.Worker.UserNs + span.Worker.SystemNs); got < w.used {
		t.Errorf("%v counted, the program alone took %v", got, w.used)
	}
	job = download(&shelf{files: w.files}, nil, job.Sink)
	if out, err = Run(t.Context(), job); err != nil || out.Run.HereProgram != "" {
		t.Errorf("without a program: %q, %v", out.Run.HereProgram, err)
	}
}
