package cli

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"

	"thru/internal/bus"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/measure"
)

// foreignPort is the port of the program that answers at a foreign end point.
func foreignPort(scheme string) (port int, known bool) {
	switch scheme {
	case measure.IPerf3:
		return 5201, true
	case measure.IPerf2:
		return 5001, true
	}
	return 0, false
}

// engineOf is the engine that an end point's name asks for.
func engineOf(name string) (string, error) {
	scheme, _, ok := strings.Cut(name, "://")
	if !ok || scheme == sshScheme {
		return measure.Native, nil
	}
	if _, known := foreignPort(scheme); !known {
		if scheme == "iperf" {
			return "", fault.Usagef("iperf3://HOST where iperf3 answers, iperf2://HOST where iperf (2) does", "iperf:// does not say which of the two")
		}
		return "", fault.Usagef("an end point is a joined name, HOST[:PORT], ssh://[USER@]HOST[:PORT], iperf3://HOST[:PORT] or iperf2://HOST[:PORT]", "end points of the form %s:// are not known to this version", scheme)
	}
	return scheme, nil
}

// foreign is an end point without agent: an iperf3 or iperf2 server.
func (d dialer) foreign(name, scheme, at string) (*control.EndPoint, error) {
	port, _ := foreignPort(scheme)
	if d.Port != bus.DefaultPort && d.Port != 0 {
		if _, _, err := net.SplitHostPort(at); err == nil {
			return nil, fault.Usagef("name the port once", "-p %d does not go with %s", d.Port, name)
		}
		port = d.Port
	}
	addr, err := hostPort(strings.TrimSuffix(at, "/"), port)
	if err != nil {
		return nil, err
	}
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("cli: reading %s: %w", name, err)
	}
	if port, err = strconv.Atoi(text); err != nil {
		return nil, fmt.Errorf("cli: reading %s: %w", name, err)
	}
	if ip := net.ParseIP(host); ip != nil && d.Family != 0 && (ip.To4() != nil) != (d.Family == 4) {
		return nil, fault.Usagef("leave -4 or -6 out: the address says which IP it is", "%s is no IPv%d address", host, d.Family)
	}
	e := &control.EndPoint{Name: name, Addr: addr, Foreign: true, Port: port, DataHosts: []string{host}}
	if d.Login != nil {
		e.Login, err = d.Login()
	}
	return e, err
}

// loginFlags are iperf3's, for servers that ask who their client is.
type loginFlags struct {
	User      string `group:"iperf end points" name:"username" placeholder:"NAME" help:"User of an iperf3 server that asks for one; the password comes from IPERF3_PASSWORD or is asked for."`
	PublicKey string `group:"iperf end points" name:"rsa-public-key-path" type:"path" placeholder:"FILE" help:"That server's public RSA key."`
	PKCS1     bool   `group:"iperf end points" name:"use-pkcs1-padding" help:"The older padding, for servers before 3.17."`
}

// engineOf is the engine of an end point, which has to be iperf3's for a login there.
func (f loginFlags) engineOf(e *env, name string) (string, error) {
	engine, err := engineOf(name)
	if these := e.TypedOf("--username", "--rsa-public-key-path", "--use-pkcs1-padding"); err == nil && engine != measure.IPerf3 && len(these) > 0 {
		err = fault.Usagef("name a server of iperf3: iperf3://HOST", "%s not go with this end point", flagsDo(these))
	}
	return engine, err
}

// passwordVariable is the one that iperf3 reads.
const passwordVariable = "IPERF3_PASSWORD"

// login reads what the flags name; nil where no user is named.
func (f loginFlags) login(e *env) (*bus.Login, error) {
	switch {
	case f.User == "" && f.PublicKey == "":
		return nil, nil
	case f.User == "" || f.PublicKey == "":
		return nil, fault.Usagef("give both --username NAME and --rsa-public-key-path FILE", "half of a login is missing")
	}
	key, err := bus.ReadKey(f.PublicKey)
	if err != nil {
		return nil, fault.Usagef("--rsa-public-key-path wants the server's public key, a PEM file", "reading the key: %w", err)
	}
	password, err := readPassword(e)
	if err != nil {
		return nil, err
	}
	return &bus.Login{User: f.User, Password: password, PublicKey: key, PKCS1: f.PKCS1}, nil
}

// mostPassword bounds a password, in bytes.
const mostPassword = 1024

// readPassword takes it from the environment, from a person who sees no echo,
// or from the first line of stdin. It never comes from the command line, which
// other users can read.
func readPassword(e *env) (string, error) {
	if p, ok := os.LookupEnv(passwordVariable); ok {
		return p, nil
	}
	if f, ok := e.In.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(e.Err, "password: ")
		b, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(e.Err)
		if err != nil {
			return "", fmt.Errorf("cli: reading the password: %w", err)
		}
		return string(b), nil
	}
	b, err := io.ReadAll(io.LimitReader(e.In, mostPassword))
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("cli: reading the password: %w", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", fault.Usagef("set "+passwordVariable+", or pass it on stdin", "no password came for the user")
	}
	return line, nil
}
