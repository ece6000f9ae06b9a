package bus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"thru/internal/fault"
	"thru/internal/sock"
)

// NATSConfig says how to reach an external NATS server or cluster. The connection is
// always by TLS, with certificates of the system's or the named authorities.
type NATSConfig struct {
	URL   string // nats://HOST:PORT, several with commas; tls:// is the same
	CA    string // file of PEM certificates; empty: the authorities of the system
	Nkey  string // file with the seed of an nkey, or
	Creds string // a credentials file (JWT and key)
}

// login reads the key, and returns the options to log in with it.
func (c NATSConfig) login() (identity, []nats.Option, error) {
	switch {
	case c.Nkey != "" && c.Creds != "":
		return identity{}, nil, fault.Usagef("give one of the two", "bus: both an nkey and a credentials file are given")
	case c.Nkey != "":
		id, err := readSeed(c.Nkey)
		return id, []nats.Option{nats.Nkey(id.pub, id.sign)}, err
	case c.Creds != "":
		id, b, err := readCreds(c.Creds)
		return id, []nats.Option{nats.UserCredentialBytes(b)}, err
	}
	return identity{}, nil, fault.Usagef("give --nkey FILE or --creds FILE", "bus: no key is given for the NATS server")
}

// servers checks the URL and returns its parts.
func (c NATSConfig) servers() ([]string, error) {
	var all []string
	for part := range strings.SplitSeq(c.URL, ",") {
		part = strings.TrimSpace(part)
		if !strings.Contains(part, "://") {
			part = "nats://" + part
		}
		u, err := url.Parse(part)
		if err != nil || u.Hostname() == "" || u.Scheme != "nats" && u.Scheme != "tls" || u.Path != "" {
			return nil, fault.Usagef("give nats://HOST:4222, several separated by commas", "bus: %q is not the URL of a NATS server", part)
		}
		if u.User != nil {
			return nil, fault.Usagef("give --nkey FILE or --creds FILE instead", "bus: the URL of the NATS server holds a password, which other users of this host can see")
		}
		if u.Port() == "" {
			u.Host = net.JoinHostPort(u.Hostname(), "4222")
		}
		all = append(all, u.String())
	}
	return all, nil
}

// tls verifies the server's name and authority.
func (c NATSConfig) tls() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA == "" {
		return conf, nil
	}
	b, err := ReadKey(c.CA)
	if err != nil {
		return nil, fault.Usagef("give the PEM file of the CA that signed the server's certificate", "bus: reading the certificates of %s: %w", c.CA, err)
	}
	conf.RootCAs = x509.NewCertPool()
	if !conf.RootCAs.AppendCertsFromPEM(b) {
		return nil, fault.Usagef("give the PEM file of the CA that signed the server's certificate", "bus: %s holds no certificate", c.CA)
	}
	return conf, nil
}

// natsDialer connects with our socket options, so that a device can be set.
type natsDialer struct {
	ctx    context.Context // ends a running attempt
	dialer net.Dialer
	seen   *lastError
}

// Dial implements nats.CustomDialer.
func (d natsDialer) Dial(network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(d.ctx, dialTime)
	defer cancel()
	conn, err := d.dialer.DialContext(ctx, network, address)
	if err != nil {
		err = natsDialError(address, err)
		d.seen.Store(&err)
	}
	return conn, err
}

// natsDialError explains why a NATS server cannot be reached.
func natsDialError(address string, err error) error {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return lookupError(address, err)
	case sock.Is(err, syscall.ECONNREFUSED):
		return fault.Failf("check that the NATS server runs there; its default port is 4222", "bus: connecting to NATS at %s: %w", address, ErrRefused)
	case timedOut(err):
		return fault.Failf("check the address, the firewalls, and whether the host is up", "bus: connecting to NATS at %s: %w within %v", address, ErrTimeout, dialTime)
	}
	return fault.Failf("check the address, and the route to it", "bus: connecting to NATS at %s: %w: %w", address, ErrUnreachable, sock.Cause(err))
}

// explain translates an error of the NATS library for the user of thru.
func (c NATSConfig) explain(key string, err error) error {
	var hinted *fault.Error
	var name x509.HostnameError
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &hinted):
		return err
	case errors.As(err, &name):
		return fault.Failf("use the name in its certificate, or add this name to the certificate (subject alternative name)",
			"bus: the certificate of the NATS server at %s is for another name: %w: %w", c.URL, ErrCertificate, name)
	case errors.As(err, &unknown):
		return fault.Failf("give the certificate file of its CA: --tls-ca FILE", "bus: no CA that this host trusts signed the certificate of the NATS server at %s: %w", c.URL, ErrCertificate)
	case errors.As(err, &invalid):
		return fault.Failf("renew it at the server; check the clock of this host", "bus: the certificate of the NATS server at %s: %w: %w", c.URL, ErrCertificate, invalid)
	case errors.Is(err, nats.ErrSecureConnWanted):
		return fault.Failf("give the server a certificate (tls {} in its configuration): thru connects by TLS only", "bus: the NATS server at %s has no TLS: %w", c.URL, ErrCertificate)
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrAccountAuthExpired):
		return fault.Failf("add the key to the users in the server's configuration (`thru help fleet` has the block)",
			"bus: the NATS server at %s rejects the key %s: %w: %w", c.URL, key, ErrSecret, err)
	case errors.Is(err, nats.ErrPermissionViolation):
		return fault.Failf("give the key the permissions that `thru help fleet` lists", "bus: the NATS server at %s denies permissions that thru needs: %w: %w", c.URL, ErrSecret, err)
	case errors.Is(err, nats.ErrNkeysNotSupported):
		return fault.Failf("add the block that `thru control --nats-config` prints to the server's configuration: without it, the server admits anyone",
			"bus: the NATS server at %s requires no key: %w", c.URL, err)
	case errors.Is(err, nats.ErrTimeout), timedOut(err):
		return fault.Failf("check the server (overloaded) and the path (packet loss)", "bus: logging in to NATS at %s: %w within %v", c.URL, ErrTimeout, dialTime)
	}
	return fault.Failf("check that a NATS server with TLS listens on that port", "bus: connecting to NATS at %s: %w", c.URL, err)
}

// NATSUsers returns the part of a NATS server's configuration that admits these keys:
// each agent can answer only as itself, each operator ask only as itself. It can be
// pasted as it is.
func NATSUsers(agents, operators, controllers []string) string {
	var b strings.Builder
	b.WriteString("authorization {\n  users = [\n")
	for _, kind := range []struct {
		name string
		keys []string
		may  func(string) allowed
	}{{"agent", agents, agentMay}, {"operator", operators, operatorShares}, {"controller", controllers, controllerShares}} {
		for _, key := range kind.keys {
			may := kind.may(key)
			fmt.Fprintf(&b, "    # %s\n    { nkey: %s, permissions: {\n", kind.name, key)
			fmt.Fprintf(&b, "      publish: [%s]\n      subscribe: [%s]\n    } }\n", quoted(may.publish), quoted(may.subscribe))
		}
	}
	b.WriteString("  ]\n}\n")
	return b.String()
}

// quoted lists subjects, in lines of some 120 characters.
func quoted(list []string) string {
	var b strings.Builder
	line := 0
	for i, subject := range list {
		switch {
		case i == 0:
		case line+len(subject) > 120:
			b.WriteString(",\n        ")
			line = 0
		default:
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", subject)
		line += len(subject) + 4
	}
	return b.String()
}

// reconnectDelay returns the wait before the next round of attempts: short at first,
// so that sessions survive a short outage, then up to 4 s, with a random part of one
// half so that a fleet does not reconnect all at once.
func reconnectDelay(attempts int) time.Duration {
	most := min(250*time.Millisecond<<min(attempts, 4), 4*time.Second)
	return most/2 + spread(most/2)
}
