//go:build !unix

package loopback

import "os/exec"

// own: the program is killed, its children see the end of their connections.
func own(*exec.Cmd) {}

// end kills it.
func end(cmd *exec.Cmd) { _ = cmd.Process.Kill() } // it may have ended
