//go:build !unix || solaris

package stage

import "os"

// Lock locks nothing on this system: what a killed run has left stays.
func Lock(*os.File) (held bool, err error) { return false, nil }

// mine is not known on this system.
func mine(os.FileInfo) bool { return false }
