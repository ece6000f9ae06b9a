package service

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// firstPassed is the first file descriptor that systemd passes: sd_listen_fds(3).
const firstPassed = 3

// Notify sends states to systemd, as sd_notify(3) does. It does nothing if systemd did not ask for them.
func Notify(states ...string) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err == nil {
		_, err = conn.Write([]byte(strings.Join(states, "\n")))
		conn.Close()
	}
	if err != nil {
		return fmt.Errorf("service: notifying systemd: %w", err)
	}
	return nil
}

// reloading is the state before a reload. Type=notify-reload wants the time.
func reloading() []string {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return []string{"RELOADING=1"}
	}
	return []string{"RELOADING=1", fmt.Sprintf("MONOTONIC_USEC=%d", now.Nano()/1000)}
}

// watchdog returns the interval of signs of life that systemd asks for; 0: none.
func watchdog() time.Duration {
	usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if pid := os.Getenv("WATCHDOG_PID"); err != nil || usec <= 0 || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	return time.Duration(usec) * time.Microsecond
}

// Listeners takes the listening TCP sockets that systemd passes to this process; none without socket activation. A
// second call returns none.
func Listeners() (all []net.Listener, err error) {
	count, nerr := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	if nerr != nil || os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	os.Unsetenv("LISTEN_PID")
	for fd := firstPassed; fd < firstPassed+count; fd++ {
		unix.CloseOnExec(fd)
		f := os.NewFile(uintptr(fd), "LISTEN_FD")
		l, lerr := net.FileListener(f)
		f.Close()
		if lerr != nil {
			for _, l := range all {
				l.Close()
			}
			return nil, fmt.Errorf("service: taking the socket that systemd passed: %w", lerr)
		}
		all = append(all, l)
	}
	return all, nil
}

// Journal reports whether journald reads what is written to a file: systemd.exec(5), JOURNAL_STREAM.
func Journal(f *os.File) bool {
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return false
	}
	return os.Getenv("JOURNAL_STREAM") == fmt.Sprintf("%d:%d", s.Dev, s.Ino)
}
