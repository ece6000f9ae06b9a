package sftp

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/pkg/sftp"

	"thru/internal/transfer"
)

// TestJudge: statuses of real servers.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		err     error
		writing bool
		want    error
	}{
		{fs.ErrNotExist, false, transfer.ErrMissing},
		{fs.ErrPermission, false, transfer.ErrDenied},
		{fs.ErrPermission, true, transfer.ErrReadOnly},
		{&sftp.StatusError{Code: statusNoSpace}, true, transfer.ErrFull},
		{&sftp.StatusError{Code: statusQuota}, true, transfer.ErrFull},
		{&sftp.StatusError{Code: statusReadOnly}, true, transfer.ErrReadOnly},
		{&sftp.StatusError{Code: statusExists}, true, transfer.ErrExists},
	} {
		if err := judge(c.err, c.writing); !errors.Is(err, c.want) || !errors.Is(err, c.err) {
			t.Errorf("%v: %v, want %v", c.err, err, c.want)
		}
	}
	if judge(nil, true) != nil {
		t.Error("no error became one")
	}
}

func TestPlace(t *testing.T) {
	for name, want := range map[string]string{"tmp/x": "/tmp/x", "~/x": "x", "~x": "/~x", "a/~/x": "/a/~/x"} {
		if got := place(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("SSH-2.0-OpenSSH_9.2p1 Debian")
	f.Add("\x1b[2J\xff\n")
	f.Fuzz(func(t *testing.T, said string) {
		if got := printable(said); len(got) > 300 || strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Errorf("%q", got)
		}
	})
}

// lying is a file of a server that reports an impossible size.
type lying struct{ fs.FileInfo }

func (lying) Mode() fs.FileMode { return 0 }
func (lying) Size() int64       { return -1 }

func TestNegativeSize(t *testing.T) {
	if regular(lying{}) == nil {
		t.Error("a file of -1 bytes is taken")
	}
}
