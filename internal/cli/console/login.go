package console

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/plan"
)

// Login returns the login for an iperf3 server, with the names of its flags; nil if no user is named.
func (c *Console) Login(l plan.Login) (*bus.Login, error) {
	switch {
	case l.User == "" && l.PublicKey == "":
		return nil, nil
	case l.User == "" || l.PublicKey == "":
		return nil, fault.Usagef("give both --username NAME and --rsa-public-key-path FILE", "the login is incomplete")
	}
	key, err := bus.ReadKey(l.PublicKey)
	if err != nil {
		return nil, fault.Usagef("give --rsa-public-key-path the server's public key, a PEM file", "reading the key: %w", err)
	}
	password, err := c.iperfPassword()
	if err != nil {
		return nil, err
	}
	return &bus.Login{User: l.User, Password: password, PublicKey: key, PKCS1: l.PKCS1}, nil
}

// passwordVariable is the environment variable that iperf3 reads.
const passwordVariable = "IPERF3_PASSWORD"

// mostPassword limits a password, in bytes.
const mostPassword = 1024

// iperfPassword reads the password from the environment, from the terminal without echo, or from the first
// line of stdin. It never takes it from the command line, which other users can read.
func (c *Console) iperfPassword() (string, error) {
	if p, ok := os.LookupEnv(passwordVariable); ok {
		return p, nil
	}
	if f, ok := c.In.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(c.Err, "password: ")
		b, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(c.Err)
		if err != nil {
			return "", fmt.Errorf("console: reading the password: %w", err)
		}
		return string(b), nil
	}
	b, err := io.ReadAll(io.LimitReader(c.In, mostPassword))
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("console: reading the password: %w", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", fault.Usagef("set "+passwordVariable+", or pass it on stdin", "no password is given for the user")
	}
	return line, nil
}
