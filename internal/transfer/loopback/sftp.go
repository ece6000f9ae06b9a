package loopback

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"thru/internal/transfer"
)

// largestRequest is the limit of OpenSSH's server too (SFTP_MAX_MSG_LENGTH).
const largestRequest = 255 << 10

// serveSFTP is a server of x/crypto/ssh and pkg/sftp, with the cipher of the
// real one. It admits everybody: it holds no data.
func serveSFTP(o Options) (*Server, error) {
	_, secret, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	key, err := ssh.NewSignerFromKey(secret)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.Ciphers, config.MACs = ciphersOf(o.Agreed)
	config.AddHostKey(key)
	files := newShelf(o)
	d, err := openDoor(func(d *door, conn net.Conn) { answerSSH(d, conn, config, files) })
	if err != nil {
		return nil, err
	}
	s, err := d.server()
	if err != nil {
		return nil, err
	}
	s.user, s.pin = "thru", transfer.Fingerprint(key.PublicKey().Marshal())
	return s, nil
}

// ciphersOf parses "cipher up NAME with MAC" in the details of a session; nil
// is the library's default.
func ciphersOf(agreed []string) (ciphers, macs []string) {
	for _, detail := range agreed {
		words := strings.Fields(detail)
		if len(words) < 3 || words[0] != "cipher" {
			continue
		}
		ciphers = append(ciphers, words[2])
		if len(words) == 5 {
			macs = append(macs, words[4])
		}
	}
	return slices.Compact(ciphers), slices.Compact(macs)
}

func answerSSH(d *door, conn net.Conn, config *ssh.ServerConfig, files *shelf) {
	secure, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return // the client says why
	}
	defer secure.Close()
	d.inside.Go(func() { ssh.DiscardRequests(requests) })
	for c := range channels {
		if c.ChannelType() != "session" {
			_ = c.Reject(ssh.UnknownChannelType, "files alone")
			continue
		}
		channel, requests, err := c.Accept()
		if err != nil {
			return
		}
		d.inside.Go(func() { answerChannel(d, channel, requests, files) })
	}
}

// answerChannel starts the SFTP subsystem, once, and refuses everything else.
func answerChannel(d *door, channel ssh.Channel, requests <-chan *ssh.Request, files *shelf) {
	begun := false
	for r := range requests {
		var asked struct{ Name string }
		ok := r.Type == "subsystem" && ssh.Unmarshal(r.Payload, &asked) == nil && asked.Name == "sftp" && !begun
		if ok {
			begun = true
			s := memoryFiles{files}
			server := sftp.NewRequestServer(channel, sftp.Handlers{FileGet: s, FilePut: s, FileCmd: s, FileList: s},
				sftp.WithRSAllocator(), sftp.WithRSMaxTxPacket(largestRequest))
			d.inside.Go(func() {
				_ = server.Serve() // it ends with the client
				channel.Close()
			})
		}
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
	}
}

// memoryFiles are the handlers of pkg/sftp.
type memoryFiles struct{ files *shelf }

// Fileread opens a file to be read.
func (m memoryFiles) Fileread(r *sftp.Request) (io.ReaderAt, error) {
	size, there := m.files.Size(r.Filepath)
	if !there {
		return nil, fs.ErrNotExist
	}
	return source{m.files, size}, nil
}

// source is an open file.
type source struct {
	files *shelf
	size  int64
}

// ReadAt fills b by Fill, or leaves it as it is.
func (s source) ReadAt(b []byte, offset int64) (int, error) {
	if offset < 0 || offset >= s.size {
		return 0, io.EOF
	}
	b = b[:min(int64(len(b)), s.size-offset)]
	s.files.Fill(b, offset)
	return len(b), nil
}

// Filewrite opens a file to be written.
func (m memoryFiles) Filewrite(r *sftp.Request) (io.WriterAt, error) {
	if _, there := m.files.Size(r.Filepath); there && r.Pflags().Excl {
		return nil, fs.ErrExist
	}
	m.files.Grow(r.Filepath, 0)
	return target{m.files, r.Filepath}, nil
}

// target is an open file.
type target struct {
	files *shelf
	name  string
}

// WriteAt only counts.
func (t target) WriteAt(b []byte, offset int64) (int, error) {
	t.files.Grow(t.name, offset+int64(len(b)))
	return len(b), nil
}

// Filecmd renames and removes.
func (m memoryFiles) Filecmd(r *sftp.Request) error {
	switch r.Method {
	case "Rename":
		if _, there := m.files.Size(r.Target); there {
			return fs.ErrExist
		}
		return m.done(m.files.Rename(r.Filepath, r.Target))
	case "Remove":
		return m.done(m.files.Remove(r.Filepath))
	case "Setstat":
		return nil
	}
	return sftp.ErrSSHFxOpUnsupported
}

// PosixRename replaces an existing file.
func (m memoryFiles) PosixRename(r *sftp.Request) error {
	return m.done(m.files.Rename(r.Filepath, r.Target))
}

func (memoryFiles) done(ok bool) error {
	if !ok {
		return fs.ErrNotExist
	}
	return nil
}

// Filelist returns the facts of one file.
func (m memoryFiles) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	size, there := m.files.Size(r.Filepath)
	switch {
	case r.Method != "Stat":
		return nil, sftp.ErrSSHFxOpUnsupported
	case !there:
		return nil, fs.ErrNotExist
	}
	return facts{path.Base(r.Filepath), size}, nil
}

// facts holds the facts of a file, as the list of one.
type facts struct {
	name string
	size int64
}

// ListAt returns the one file.
func (f facts) ListAt(into []os.FileInfo, offset int64) (int, error) {
	if offset > 0 || len(into) == 0 {
		return 0, io.EOF
	}
	into[0] = f
	return 1, nil
}

// Name returns the name without folders.
func (f facts) Name() string { return f.name }

// Size returns the size in bytes.
func (f facts) Size() int64 { return f.size }

// Mode returns that of a file.
func (f facts) Mode() fs.FileMode { return 0o644 }

// ModTime returns the zero time.
func (f facts) ModTime() time.Time { return time.Time{} }

// IsDir returns false: there are no folders.
func (f facts) IsDir() bool { return false }

// Sys returns nil.
func (f facts) Sys() any { return nil }
