package mover

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Loopback is a server of HTTP in this process that files are moved to and from
// without any network: what its client reaches there is the client's ceiling.
type Loopback struct {
	Host, Port string
	Pin        string // SHA-256 of its certificate; empty without TLS
	server     *http.Server
	listener   net.Listener
}

// ServeHTTP begins to serve on a free port of loopback: GET /N gives N bytes of
// the stream, PUT takes anything.
func ServeHTTP(s Stream, encrypted bool) (*Loopback, error) {
	l := &Loopback{server: &http.Server{Handler: ceiling(s), ReadHeaderTimeout: 10 * time.Second}}
	var err error
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("mover: serving loopback: %w", err)
	}
	if l.Host, l.Port, err = net.SplitHostPort(l.listener.Addr().String()); err != nil {
		return nil, fmt.Errorf("mover: serving loopback: %w", err)
	}
	serve := func() error { return l.server.Serve(l.listener) }
	if encrypted {
		cert, err := selfSigned()
		if err != nil {
			l.listener.Close()
			return nil, err
		}
		sum := sha256.Sum256(cert.Certificate[0])
		l.Pin = hex.EncodeToString(sum[:])
		l.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
		serve = func() error { return l.server.ServeTLS(l.listener, "", "") }
	}
	go serve()
	return l, nil
}

// Close ends it with its connections.
func (l *Loopback) Close() error { return l.server.Close() }

func ceiling(s Stream) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodPut:
			io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusCreated)
		case http.MethodGet, http.MethodHead:
			n, err := strconv.ParseInt(strings.TrimPrefix(r.URL.Path, "/"), 10, 48)
			if err != nil {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
			if r.Method == http.MethodGet {
				io.CopyBuffer(struct{ io.Writer }{w}, s.Reader(0, n), make([]byte, 256<<10))
			}
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})
}

// selfSigned is a certificate that lives as long as a measurement.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("mover: making a key: %w", err)
	}
	about := x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, &about, &about, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("mover: making a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
