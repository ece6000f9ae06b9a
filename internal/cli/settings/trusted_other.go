//go:build !unix

package settings

import "io/fs"

// trusted accepts any file: there are no mode bits, and the folder's access list protects it.
func trusted(string, fs.FileInfo) error { return nil }
