//go:build !unix

package agent

// isNoFolder tells of a path that is something else.
func isNoFolder(error) bool { return false }
