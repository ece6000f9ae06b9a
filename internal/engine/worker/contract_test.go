package worker

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"thru/internal/measure"
)

// The test binary is its own worker, like the program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Verb {
		if err := Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestContract(t *testing.T) {
	p, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	for _, kind := range []struct {
		name string
		ios  []string
		run  func(suite, *testing.T)
	}{
		{"tcp", []string{measure.IOCopy, measure.IOSendfile, measure.IOLean, measure.IOPortable}, suite.runTCP},
		{"udp", []string{measure.IOGSO, measure.IOBatch, measure.IOPortable}, suite.runUDP},
		{"requests", []string{measure.IOCopy, measure.IOPortable}, suite.runRequests},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			for _, io := range kind.ios {
				t.Run(io, func(t *testing.T) {
					kind.run(suite{Engine: Engine{Program: p}, IO: here(t, io), Gone: gone}, t)
				})
			}
		})
	}
}

// here skips a path that only Linux has on other systems.
func here(t *testing.T, io string) string {
	if runtime.GOOS != "linux" && io != measure.IOPortable {
		t.Skip("a path of Linux")
	}
	return io
}
