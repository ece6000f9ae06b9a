//go:build unix

package native

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"thru/internal/engine/enginetest"
)

// The test binary is its own worker, as the program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == WorkerVerb {
		if err := Worker(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestContract(t *testing.T) {
	p, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, path := range paths() {
		t.Run(path.name, func(t *testing.T) {
			enginetest.Run(t, enginetest.Suite{Engine: Engine{Program: p}, IO: path.name, Gone: gone})
		})
	}
}
