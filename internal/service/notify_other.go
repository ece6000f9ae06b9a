//go:build !linux

package service

import (
	"net"
	"os"
	"time"
)

// Notify does nothing: systemd is a program of Linux.
func Notify(...string) error { return nil }

func reloading() []string { return nil }

func watchdog() time.Duration { return 0 }

// Listeners returns none: systemd is a program of Linux.
func Listeners() ([]net.Listener, error) { return nil, nil }

// Journal returns false: journald is a program of Linux.
func Journal(*os.File) bool { return false }
