package sftp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"thru/internal/fault"
	"thru/internal/transfer"
)

// agentVariable names the socket of the user's agent (ssh-agent(1)).
const agentVariable = "SSH_AUTH_SOCK"

// login provides the user's keys and password, each when the server asks for
// it.
type login struct {
	cfg transfer.Config
	ctx context.Context

	agent    net.Conn
	password *string
	err      error // why a key or the password is missing
}

// methods lists the methods in the order of OpenSSH's client: a key, then
// questions, then the password.
func (l *login) methods() []ssh.AuthMethod {
	methods := []ssh.AuthMethod{ssh.PublicKeysCallback(l.signers)}
	if l.cfg.Password != nil {
		methods = append(methods, ssh.PasswordCallback(l.ask), ssh.KeyboardInteractive(l.answer))
	}
	return methods
}

// signers returns the key of the file, and those of the agent.
func (l *login) signers() ([]ssh.Signer, error) {
	var signers []ssh.Signer
	if l.cfg.Key != "" {
		signer, err := keyFile(l.cfg.Key)
		if err != nil {
			l.err = err
			return nil, err
		}
		signers = append(signers, signer)
	}
	path := os.Getenv(agentVariable)
	if path == "" {
		return signers, nil
	}
	conn, err := (&net.Dialer{}).DialContext(l.ctx, "unix", path)
	if err != nil {
		return signers, nil // an agent that is gone has no keys
	}
	l.agent = conn
	theirs, err := agent.NewClient(conn).Signers()
	if err != nil {
		return signers, nil
	}
	return append(signers, theirs...), nil
}

// keyFile reads a private key.
func keyFile(path string) (ssh.Signer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("sftp: reading the key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		return nil, fault.Failf("unlock it for the agent: ssh-add "+path, "sftp: reading the key %s: it has a passphrase", path)
	}
	if err != nil {
		return nil, fmt.Errorf("sftp: reading the key %s: %w", path, err)
	}
	return signer, nil
}

// ask returns the password, which it asks for once.
func (l *login) ask() (string, error) {
	if l.password != nil {
		return *l.password, nil
	}
	if l.err != nil {
		return "", l.err
	}
	password, err := l.cfg.Password()
	if err != nil {
		l.err = fmt.Errorf("sftp: asking for the password: %w", err)
		return "", l.err
	}
	l.password = &password
	return password, nil
}

// answer gives the password to a single hidden question, which is how PAM
// asks for it.
func (l *login) answer(_, _ string, questions []string, shown []bool) ([]string, error) {
	if len(questions) == 0 {
		return nil, nil
	}
	if len(questions) != 1 || shown[0] {
		return nil, fmt.Errorf("sftp: logging in: the server asks %d questions, but thru can answer only a password", len(questions))
	}
	password, err := l.ask()
	return []string{password}, err
}

// refusals returns the library's texts for a refused login, since it has no
// type for that. 51 is SSH_MSG_USERAUTH_FAILURE (RFC 4252, section 6).
func refusals() []string {
	return []string{"unable to authenticate", "too many authentication failures", "unexpected message type 51"}
}

// explain returns why a login failed.
func (l *login) explain(err error) error {
	words := strings.ToLower(err.Error())
	switch {
	case l.err != nil:
		return l.err
	case errors.Is(err, transfer.ErrUnknown):
		return fmt.Errorf("sftp: knowing the server: %w", err)
	case slices.ContainsFunc(refusals(), func(r string) bool { return strings.Contains(words, r) }):
		return fault.Failf("check user, password and keys", "sftp: logging in: %w (%w)", transfer.ErrLogin, err)
	}
	return fmt.Errorf("sftp: logging in: %w", err)
}

// close closes the connection to the agent.
func (l *login) close() {
	if l.agent != nil {
		l.agent.Close()
	}
}
