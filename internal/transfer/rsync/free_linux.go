package rsync

import "golang.org/x/sys/unix"

// free is how many bytes a file system has left for this user.
func free(dir string) (int64, bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0, false
	}
	return int64(s.Bavail) * s.Bsize, true
}
