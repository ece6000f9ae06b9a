package service

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/windows/svc"
)

// Attach connects this process to the service manager of Windows, if that started it: a stop becomes a signal. It returns
// the file for the output, nil if this is no service, and a function that reports the end to the manager.
func Attach(role string, signals chan<- os.Signal) (log *os.File, ended func(int)) {
	none := func(int) {}
	if is, err := svc.IsWindowsService(); err != nil || !is {
		return nil, none
	}
	h := handler{signals: signals, code: make(chan int), over: make(chan struct{})}
	go func() {
		defer close(h.over)
		_ = svc.Run("", h) // without the manager there is nobody to report to, and the process runs on
	}()
	// Without the file the service runs silently.
	path := filepath.Join(os.Getenv("ProgramData"), Unit{Role: role}.Name(), "service.log")
	if os.MkdirAll(filepath.Dir(path), 0o700) == nil {
		log, _ = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	}
	return log, h.end
}

// handler is a service as its manager sees it.
type handler struct {
	signals chan<- os.Signal
	code    chan int
	over    chan struct{}
}

// end reports the exit code, and waits until the manager has it.
func (h handler) end(code int) {
	select {
	case h.code <- code:
		<-h.over
	case <-h.over:
	}
}

// Execute implements svc.Handler.
func (h handler) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	const accepted = svc.AcceptStop | svc.AcceptShutdown
	status <- svc.Status{State: svc.Running, Accepts: accepted}
	for {
		select {
		case code := <-h.code:
			return code != 0, uint32(code)
		case r := <-requests:
			switch r.Cmd {
			case svc.Interrogate:
				status <- r.CurrentStatus
			case svc.Stop, svc.Shutdown:
				status <- svc.Status{State: svc.StopPending}
				select {
				case h.signals <- os.Interrupt:
				default:
				}
			}
		}
	}
}
