package loopback

import (
	"crypto/tls"
	"strings"

	"thru/internal/transfer"
	"thru/internal/transfer/servers"
)

// secure returns TLS with a certificate for the duration of a measurement,
// and its fingerprint. The cipher is that of the real server.
func secure(o Options) (config *tls.Config, pin string, err error) {
	cert, err := servers.SelfSigned()
	if err != nil {
		return nil, "", err
	}
	config = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, DynamicRecordSizingDisabled: true}
	if suite, ok := suiteOf(o.Agreed); ok {
		config.CipherSuites, config.MaxVersion = []uint16{suite}, tls.VersionTLS12
	}
	return config, transfer.Fingerprint(cert.Certificate[0]), nil
}

// usual is the cipher that two ends of crypto/tls negotiate by default, where
// the CPU has AES instructions.
const usual = "AES_128_GCM_SHA256"

// suiteOf returns the suite with the cipher of the latest negotiated
// connection; false where that is the usual one. It is a suite of TLS 1.2:
// those of 1.3 cannot be selected (tls.Config.CipherSuites), and their
// records cost the same.
func suiteOf(agreed []string) (uint16, bool) {
	cipher := ""
	for _, detail := range agreed {
		for word := range strings.FieldsSeq(detail) {
			if name, ok := strings.CutPrefix(strings.TrimSuffix(word, ","), "TLS_"); ok {
				_, after, two := strings.Cut(name, "_WITH_")
				if cipher = name; two {
					cipher = after
				}
			}
		}
	}
	for _, s := range tls.CipherSuites() {
		if cipher != usual && s.Name == "TLS_ECDHE_ECDSA_WITH_"+cipher {
			return s.ID, true
		}
	}
	return 0, false
}
