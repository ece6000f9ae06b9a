//go:build unix

package agent

import (
	"io/fs"
	"syscall"
)

// deviceOf returns the id of the file system that holds the file.
func deviceOf(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Dev)
	}
	return 0
}
