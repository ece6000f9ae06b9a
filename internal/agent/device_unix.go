//go:build unix

package agent

import (
	"io/fs"
	"syscall"
)

// deviceOf tells file systems apart by the file that lies on them.
func deviceOf(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Dev)
	}
	return 0
}
