package session

import (
	"context"
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/internal/transfer"
	"thru/internal/transfer/loopback"
)

// lone returns a transfer as after login.
func lone(t *testing.T, at string, o Options, block int) *Transfer {
	t.Helper()
	u, err := ParseURL(at)
	if err != nil {
		t.Fatal(err)
	}
	o.Many = max(o.Many, 1)
	m, err := New(u, o, transfer.Config{Block: block, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	m.info = transfer.Info{Library: true, Block: block}
	return m
}

// TestCeiling: the ceiling is measured with as many clients as the transfer
// has, and downloads are compared where the transfer compares them.
func TestCeiling(t *testing.T) {
	for name, c := range map[string]struct {
		at    string
		o     Options
		block int
		want  string
	}{
		"one":     {"http://192.0.2.1/f", Options{}, 0, "the same client against a server in this process, over loopback: "},
		"two up":  {"ftp://192.0.2.1/f", Options{Upload: true, Many: 2}, 0, "2 such clients at once against"},
		"blocks":  {"nfs://192.0.2.1/e/f", Options{From: Generated}, 64 << 10, "the same client"},
		"slowest": {"sftp://192.0.2.1/f", Options{Upload: true}, 16, "the same client"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := lone(t, c.at, c.o, c.block).Ceiling(t.Context())
			if l.Name != measure.LayerLibrary || l.Bps == nil || *l.Bps <= 0 || l.Missing != "" || !strings.Contains(l.How, c.want) {
				t.Errorf("%+v, want %q", l, c.want)
			}
		})
	}
}

// TestNoCeiling: where the ceiling is not measured, the layer has the reason.
func TestNoCeiling(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		at   string
		o    Options
		ctx  context.Context
		want string
	}{
		"not wanted":  {"http://192.0.2.1/f", Options{NoCeiling: true}, t.Context(), "--no-ceiling"},
		"our own":     {"thru://192.0.2.1/f", Options{}, t.Context(), "same data plane"},
		"interrupted": {"http://192.0.2.1/f", Options{}, over, "interrupted"},
	} {
		if l := lone(t, c.at, c.o, 0).Ceiling(c.ctx); l.Bps != nil || !strings.Contains(l.Missing, c.want) {
			t.Errorf("%s: %+v, want %q", name, l, c.want)
		}
	}
}

// TestAloneJob: a download is compared with the stream only where the
// transfer does so.
func TestAloneJob(t *testing.T) {
	for _, generated := range []bool{true, false} {
		o := Options{NoChecksum: generated}
		if generated {
			o.From = Generated
		}
		m := lone(t, "http://192.0.2.1/f", o, 0)
		if (m.fill() != nil) != generated {
			t.Errorf("generated %t: the server makes the stream: %t", generated, m.fill() != nil)
		}
		job, err := m.aloneJob(loopbackServer(t, m), 1000)
		if err != nil || (job.Same != nil) != generated || job.Sum == generated || job.Bytes != 1000 || job.Name(0, 0) != "1000" {
			t.Errorf("%+v, %v", job, err)
		}
	}
}

func loopbackServer(t *testing.T, m *Transfer) *loopback.Server {
	t.Helper()
	s, err := loopback.Serve(t.Context(), m.target.Protocol, loopback.Options{Fill: m.fill()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
