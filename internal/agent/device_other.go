//go:build !unix

package agent

import "io/fs"

// deviceOf treats all files as on one file system.
func deviceOf(fs.FileInfo) uint64 { return 0 }
