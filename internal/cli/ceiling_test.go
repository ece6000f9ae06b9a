package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"thru/internal/cli/console"
	"thru/internal/measure"
	"thru/internal/transfer"
	"thru/internal/transfer/loopback"
)

// lone is the carrier of a command line, as if it had logged in.
func lone(t *testing.T, c *transferCmd, library bool) *carrier {
	t.Helper()
	c.Many, c.Wait = max(c.Many, 1), 30*time.Second
	m, err := c.carrier(&env{Console: &console.Console{}})
	if err != nil {
		t.Fatal(err)
	}
	m.info = transfer.Info{Library: library, Block: m.config.Block}
	return m
}

// TestCeiling: the client is measured alone, with as many clients as the transfer
// has, and what it loads is compared where the transfer compares it.
func TestCeiling(t *testing.T) {
	for name, c := range map[string]struct {
		cmd  transferCmd
		want string
	}{
		"one":     {transferCmd{URL: "http://192.0.2.1/f"}, "the same client against a server in this process, over loopback: "},
		"two up":  {transferCmd{URL: "ftp://192.0.2.1/f", Upload: true, Many: 2}, "2 of the same clients at once against"},
		"blocks":  {transferCmd{URL: "nfs://192.0.2.1/e/f", From: fromGenerated, Block: "64K"}, "the same client"},
		"slowest": {transferCmd{URL: "sftp://192.0.2.1/f", Upload: true, Block: "16"}, "the same client"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := lone(t, &c.cmd, true).Ceiling(t.Context())
			if l.Name != measure.LayerLibrary || l.Bps == nil || *l.Bps <= 0 || l.Missing != "" || !strings.Contains(l.How, c.want) {
				t.Errorf("%+v, want %q", l, c.want)
			}
		})
	}
}

// TestNoCeiling: where it is not measured, the layer says why.
func TestNoCeiling(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		cmd  transferCmd
		ctx  context.Context
		want string
	}{
		"not wanted":  {transferCmd{URL: "http://192.0.2.1/f", NoCeiling: true}, t.Context(), "--no-ceiling"},
		"our own":     {transferCmd{URL: "thru://192.0.2.1/f"}, t.Context(), "same data plane"},
		"interrupted": {transferCmd{URL: "http://192.0.2.1/f"}, over, "interrupted"},
	} {
		if l := lone(t, &c.cmd, true).Ceiling(c.ctx); l.Bps != nil || !strings.Contains(l.Missing, c.want) {
			t.Errorf("%s: %+v, want %q", name, l, c.want)
		}
	}
}

// TestAloneJob: a download is compared with the stream only where the transfer is.
func TestAloneJob(t *testing.T) {
	for _, generated := range []bool{true, false} {
		c := &transferCmd{URL: "http://192.0.2.1/f", NoChecksum: generated}
		if generated {
			c.From = fromGenerated
		}
		m := lone(t, c, true)
		if (m.fill() != nil) != generated {
			t.Errorf("generated %t: the server makes the stream: %t", generated, m.fill() != nil)
		}
		job, err := m.aloneJob(loopbackServer(t, m), 1000)
		if err != nil || (job.Same != nil) != generated || job.Sum == generated || job.Bytes != 1000 || job.Name(0, 0) != "1000" {
			t.Errorf("%+v, %v", job, err)
		}
	}
}

func loopbackServer(t *testing.T, m *carrier) *loopback.Server {
	t.Helper()
	s, err := loopback.Serve(t.Context(), m.target.protocol, loopback.Options{Fill: m.fill()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
