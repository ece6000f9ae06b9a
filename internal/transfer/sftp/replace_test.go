package sftp

import (
	"io/fs"
	"net"
	"strings"
	"testing"

	"github.com/pkg/sftp"
)

// names is a server's files that a rename never replaces, and of which only
// the temporary ones may be renamed.
type names struct {
	there  map[string]bool
	locked bool // every rename to a file's name fails
}

// Filecmd renames and removes as in version 3 of the protocol.
func (n names) Filecmd(r *sftp.Request) error {
	switch {
	case !n.there[r.Filepath]:
		return fs.ErrNotExist
	case r.Method == "Remove":
	case n.there[r.Target], n.locked && !strings.Contains(r.Target, ".thru-") && strings.Contains(r.Filepath, "new"):
		return fs.ErrPermission
	default:
		n.there[r.Target] = true
	}
	delete(n.there, r.Filepath)
	return nil
}

// Filelist returns no sizes.
func (names) Filelist(*sftp.Request) (sftp.ListerAt, error) { return nil, sftp.ErrSSHFxOpUnsupported }

// TestReplaces: a server without OpenSSH's rename. The old file is removed
// only when the new one has its name.
func TestReplaces(t *testing.T) {
	if err := sftp.SetSFTPExtensions("hardlink@openssh.com"); err != nil { // of the servers of this process
		t.Fatal(err)
	}
	defer sftp.SetSFTPExtensions("hardlink@openssh.com", "posix-rename@openssh.com", "statvfs@openssh.com")
	for _, locked := range []bool{false, true} {
		near, far := net.Pipe()
		files := names{map[string]bool{"/file": true, "/.thru-new.part": true}, locked}
		server := sftp.NewRequestServer(far, sftp.Handlers{FileCmd: files, FileList: files})
		ended := make(chan struct{})
		go func() { defer close(ended); _ = server.Serve() }()
		client, err := sftp.NewClientPipe(near, near)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := client.HasExtension("posix-rename@openssh.com"); ok {
			t.Error("the server has OpenSSH's rename")
		}
		err = (&session{sftp: client}).finish("/.thru-new.part", "/file", 1, true)
		if !files.there["/file"] || (err != nil) != locked || files.there["/.thru-new.part"] != locked || len(files.there) != 1+map[bool]int{true: 1}[locked] {
			t.Errorf("locked %v: %v, %v", locked, files.there, err)
		}
		client.Close()
		server.Close()
		<-ended
	}
}
