package sftp

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"thru/internal/fault"
	"thru/internal/transfer"
)

// trust decides whether a server's key is the right one.
type trust struct {
	cfg         transfer.Config
	file        string              // file of host keys, for errors
	known       ssh.HostKeyCallback // by the file of host keys; nil: there is none
	fingerprint string              // of the received key
}

// trust reads the user's file of host keys, unless cfg decides otherwise.
func (s *session) trust(addr string) (*trust, error) {
	t := &trust{cfg: s.cfg, file: s.cfg.KnownHosts}
	if s.cfg.Pin != "" || s.cfg.Insecure {
		return t, nil
	}
	files := []string{t.file}
	if t.file == "" {
		t.file, files = "known_hosts", usualFiles()
	}
	files = slices.DeleteFunc(files, func(name string) bool {
		_, err := os.Stat(name)
		return errors.Is(err, fs.ErrNotExist)
	})
	if len(files) == 0 {
		return t, nil
	}
	known, err := knownhosts.New(files...)
	if err != nil {
		return nil, fault.Failf("correct the line, or name another file", "sftp: reading the host keys: %w", err)
	}
	t.known = known
	return t, nil
}

// usualFiles returns the files of OpenSSH's client: the user's, and the
// system's (ssh_config(5)).
func usualFiles() []string {
	files := []string{"/etc/ssh/ssh_known_hosts"}
	if home, err := os.UserHomeDir(); err == nil {
		files = append(files, filepath.Join(home, ".ssh", "known_hosts"))
	}
	return files
}

// check is ssh's callback with the server's key.
func (t *trust) check(hostname string, remote net.Addr, key ssh.PublicKey) error {
	t.fingerprint = transfer.Fingerprint(key.Marshal())
	said := fmt.Sprintf("%s key %s", key.Type(), ssh.FingerprintSHA256(key)) // in the form of ssh-keygen -l
	switch {
	case t.cfg.Pin != "" && transfer.Pinned(t.cfg.Pin, key.Marshal()):
		return nil
	case t.cfg.Pin != "":
		return fault.Failf("if this is the server's own, accept it with --pin "+t.fingerprint, "%w: it shows the %s, not the pinned one", transfer.ErrUnknown, said)
	case t.cfg.Insecure:
		return nil
	case t.known == nil:
		return fault.Failf("if this is the server's own, accept it with --pin "+t.fingerprint, "%w: it shows the %s", transfer.ErrUnknown, said)
	}
	err := t.known(hostname, remote, key)
	var wrong *knownhosts.KeyError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && len(wrong.Want) > 0:
		return fault.Failf("ask the server's owner, since somebody may be in between; then accept it with --pin "+t.fingerprint, "%w: it shows the %s, but %s has another", transfer.ErrUnknown, said, t.file)
	case errors.As(err, &wrong):
		return fault.Failf("if this is the server's own, accept it with --pin "+t.fingerprint, "%w: it shows the %s, which is not in %s", transfer.ErrUnknown, said, t.file)
	}
	return fmt.Errorf("%w: %w", transfer.ErrUnknown, err)
}

// algorithms returns those of the host's known keys, so that the server shows
// one of these; nil where none is known.
func (t *trust) algorithms(addr string) []string {
	if t.known == nil {
		return nil
	}
	var wrong *knownhosts.KeyError
	// The answer to an unknown key lists the keys that would have been right.
	if err := t.known(addr, &net.TCPAddr{}, nobody{}); !errors.As(err, &wrong) {
		return nil
	}
	var names []string
	for _, k := range wrong.Want {
		switch kind := k.Key.Type(); kind {
		case ssh.KeyAlgoRSA:
			names = append(names, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		default:
			names = append(names, kind)
		}
	}
	return names
}

// nobody is a key of no type.
type nobody struct{}

// Type returns no real type.
func (nobody) Type() string { return "none" }

// Marshal returns nothing.
func (nobody) Marshal() []byte { return nil }

// Verify refuses.
func (nobody) Verify([]byte, *ssh.Signature) error { return errors.New("sftp: this key cannot sign") }
