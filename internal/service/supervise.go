package service

import (
	"context"
	"os"
	"time"
)

// Supervised is a running service.
type Supervised struct {
	Status string           // one line for the service manager
	HangUp <-chan os.Signal // asks for a reload
	Alive  func()           // returns if the service can still answer
	Reload func()
}

// Supervise reports to the service manager that the service is ready, answers its watchdog, and reloads on demand. It
// returns when the context ends.
func Supervise(ctx context.Context, s Supervised) {
	// A failed message has no other receiver: systemd itself then reports a start or a sign of life that did not come.
	_ = Notify("READY=1", "STATUS="+s.Status)
	var sign <-chan time.Time
	if every := watchdog(); every > 0 {
		tick := time.NewTicker(every / 2)
		defer tick.Stop()
		sign = tick.C
	}
	for {
		select {
		case <-ctx.Done():
			_ = Notify("STOPPING=1")
			return
		case <-s.HangUp:
			_ = Notify(reloading()...)
			s.Reload()
			_ = Notify("READY=1")
		case <-sign:
			s.Alive() // a deadlock keeps it here, and systemd restarts the service
			_ = Notify("WATCHDOG=1")
		}
	}
}
