//go:build !unix

package transfer

// inUse returns false: any port number is free.
func inUse(error) bool { return false }
