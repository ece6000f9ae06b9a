package vm

import (
	"runtime"
	"syscall"
)

// emulator is QEMU's program.
const emulator = "qemu-system-x86_64"

// run starts QEMU such that the kernel kills it when this process ends for any reason. The kernel watches the
// thread that started it (PR_SET_PDEATHSIG, prctl(2)), so that thread does nothing else until QEMU has ended.
func (v *VM) run() error {
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := v.cmd.Start()
		started <- err
		if err == nil {
			_ = v.cmd.Wait() // stderr and the console say why it ended
			close(v.ended)
		}
	}()
	return <-started
}
