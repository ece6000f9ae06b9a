//go:build !unix

package agent

import "io/fs"

// deviceOf takes all files for those of one file system.
func deviceOf(fs.FileInfo) uint64 { return 0 }
