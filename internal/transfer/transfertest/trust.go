package transfertest

import (
	"crypto/x509"
	"strings"
	"testing"

	"thru/internal/fault"
	"thru/internal/transfer"
)

// Trust verifies what a client of TLS or SSH accepts from a server with
// certificate or key raw: one trusted by cfg, one with the right pin in any
// spelling, or any where that is requested; nothing else, and then the error
// has the fingerprint.
func Trust(t *testing.T, cfg transfer.Config, raw []byte, client func(transfer.Config) transfer.Client) {
	print := transfer.Fingerprint(raw)
	stranger := cfg
	stranger.Roots, stranger.KnownHosts = x509.NewCertPool(), "/nowhere/known_hosts"
	with := func(cfg transfer.Config, set func(*transfer.Config)) transfer.Config { set(&cfg); return cfg }
	for name, c := range map[string]struct {
		cfg transfer.Config
		ok  bool
	}{
		"known":           {cfg, true},
		"unknown":         {stranger, false},
		"pinned":          {with(stranger, func(c *transfer.Config) { c.Pin = print }), true},
		"pinned in hex":   {with(stranger, func(c *transfer.Config) { c.Pin = strings.ToUpper(print[len("sha256:"):]) }), true},
		"another pinned":  {with(cfg, func(c *transfer.Config) { c.Pin = transfer.Fingerprint([]byte("another")) }), false},
		"pin over any":    {with(cfg, func(c *transfer.Config) { c.Pin, c.Insecure = "sha256:00", true }), false},
		"any is accepted": {with(stranger, func(c *transfer.Config) { c.Insecure = true }), true},
	} {
		s, err := client(c.cfg).Open(within(t))
		switch {
		case err == nil && !c.ok:
			t.Errorf("%s: accepted", name)
		case err == nil && s.Info().Fingerprint != print:
			t.Errorf("%s: fingerprint %q, want %q", name, s.Info().Fingerprint, print)
		case err != nil && c.ok:
			t.Errorf("%s: %v", name, err)
		case err != nil:
			is(t, name, err, transfer.ErrUnknown)
			if !strings.Contains(err.Error()+fault.Hint(err), print) {
				t.Errorf("%s: %v does not say the fingerprint", name, err)
			}
		}
		if err == nil {
			s.Close()
		}
	}
}
