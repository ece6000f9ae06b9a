package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/signal"
	"syscall"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/rogpeppe/go-internal/testscript"
)

// natsServer is the program natsd CONFIG: thru's embedded NATS server as an external one with an ordinary
// configuration.
func natsServer() {
	options, err := natsserver.ProcessConfigFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	options.NoLog, options.NoSigs = true, true
	server, err := natsserver.NewServer(options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server.Start()
	if server.ReadyForConnections(10 * time.Second) {
		fmt.Println("ready")
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM)
	<-ended
	server.Shutdown()
	server.WaitForShutdown()
	os.Exit(0)
}

// certificates NAME: writes ca.pem, and server.pem and server.key for that name.
func certificates(ts *testscript.TestScript, neg bool, args []string) {
	ca := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	caKey := sign(ts, ca, nil, nil, "ca.pem")
	server := &x509.Certificate{DNSNames: args[:1], KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	key, err := x509.MarshalPKCS8PrivateKey(sign(ts, server, ca, caKey, "server.pem"))
	ts.Check(err)
	writePEM(ts, "server.key", "PRIVATE KEY", key)
}

// sign creates a key and its certificate; without a parent the certificate is self-signed.
func sign(ts *testscript.TestScript, c, parent *x509.Certificate, by *ecdsa.PrivateKey, file string) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "thru test " + file}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), by)
	ts.Check(err)
	writePEM(ts, file, "CERTIFICATE", der)
	return key
}

func writePEM(ts *testscript.TestScript, file, kind string, der []byte) {
	ts.Check(os.WriteFile(ts.MkAbs(file), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}
