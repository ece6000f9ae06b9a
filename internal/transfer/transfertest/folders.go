package transfertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// MakeFolders creates the folders full and ro in dir, and returns the words
// before a command that give it its own file systems there: one of a
// mebibyte, and a read-only one. Other processes do not see them. They are
// nil without root.
func MakeFolders(t testing.TB, dir string) []string {
	t.Helper()
	for _, name := range []string{"full", "ro"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	unshare, err := exec.LookPath("unshare")
	if os.Geteuid() != 0 || err != nil {
		return nil
	}
	script := strings.NewReplacer("DIR", "'"+dir+"'").Replace(
		`mount -t tmpfs -o size=1m,mode=777 none DIR/full && mount -t tmpfs -o ro none DIR/ro && exec "$@"`)
	return []string{unshare, "-m", "sh", "-c", script, "sh"}
}
