//go:build unix

package iperf3

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// detachedVariable marks the process in the background.
const detachedVariable = "THRU_IPERF3_DETACHED"

// detach starts this command again in its own session without a terminal; its output goes to --logfile, or
// nowhere.
func detach() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("iperf3: finding this program: %w", err)
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), detachedVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("iperf3: going on in the background: %w", err)
	}
	return cmd.Process.Release()
}
