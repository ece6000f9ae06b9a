package transfer

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"

	"thru/internal/fault"
)

// Fingerprint returns the fingerprint of a certificate (DER) or an SSH host
// key (wire format).
func Fingerprint(raw []byte) string {
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Pinned reports whether pin is raw's SHA-256: in hexadecimal, with or
// without colons, or in base64 as OpenSSH writes it, with or without
// "sha256:" before it.
func Pinned(pin string, raw []byte) bool {
	sum := sha256.Sum256(raw)
	if len(pin) > 7 && strings.EqualFold(pin[:7], "sha256:") {
		pin = pin[7:]
	}
	if got, err := hex.DecodeString(strings.ReplaceAll(pin, ":", "")); err == nil {
		return string(got) == string(sum[:])
	}
	got, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(pin, "="))
	return err == nil && string(got) == string(sum[:])
}

// TLS returns the TLS configuration for cfg: it accepts the certificate of
// the pin, or without a pin those that the system or cfg.Roots trusts. A
// refusal is ErrUnknown with the fingerprint.
func (c Config) TLS() *tls.Config {
	return &tls.Config{
		ServerName: c.Host, MinVersion: tls.VersionTLS12,
		ClientSessionCache: tls.NewLRUClientSessionCache(8),
		// The library's own verification would not report the fingerprint:
		// verify replaces it.
		InsecureSkipVerify: true,
		VerifyConnection:   c.verify,
	}
}

// verify checks the certificates of a handshake, also of a resumed one.
func (c Config) verify(s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("transfer: the server shows no certificate")
	}
	leaf := s.PeerCertificates[0]
	if c.Pin != "" {
		if Pinned(c.Pin, leaf.Raw) {
			return nil
		}
		return fault.Failf("if this is the server's own, accept it with --pin "+Fingerprint(leaf.Raw), "transfer: %w: it is %s, not the pinned one", ErrUnknown, Fingerprint(leaf.Raw))
	}
	if c.Insecure {
		return nil
	}
	between := x509.NewCertPool()
	for _, cert := range s.PeerCertificates[1:] {
		between.AddCert(cert)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{DNSName: c.Host, Roots: c.Roots, Intermediates: between}); err != nil {
		return fault.Failf("if this is the server's own, accept it with --pin "+Fingerprint(leaf.Raw), "transfer: %w: it is %s: %w", ErrUnknown, Fingerprint(leaf.Raw), err)
	}
	return nil
}

// Describe returns the negotiated parameters of a TLS connection.
func Describe(s tls.ConnectionState) string {
	text := tls.VersionName(s.Version) + " " + tls.CipherSuiteName(s.CipherSuite)
	if s.DidResume {
		text += ", session resumed"
	}
	return text
}
