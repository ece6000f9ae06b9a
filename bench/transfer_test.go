//go:build linux

package main

import (
	"slices"
	"strings"
	"testing"

	"thru/internal/transfer"
	"thru/internal/transfer/clients"
	"thru/internal/transfer/servers"
)

// TestFileServices: every protocol that thru speaks to servers of others is
// compared, and each program is told of both files.
func TestFileServices(t *testing.T) {
	at := servers.Server{Config: transfer.Config{Port: "4711", User: "me"}, Secret: "s", Dir: "share/a b"}
	var compared []string
	for _, s := range fileServices() {
		compared = append(compared, s.protocol)
		if got, want := s.url(at, "x"), s.protocol+"://me@127.0.0.1:4711/share/a%20b/x"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		for _, c := range s.clients(at, "/dir") {
			for _, call := range [][]string{c.get("far", "/near"), c.put("/near", "far")} {
				if text := strings.Join(call, " "); !strings.Contains(text, "far") || !strings.Contains(text, "/near") || !slices.Contains(call, c.program) {
					t.Errorf("%s is called by %q", c.program, call)
				}
			}
		}
	}
	for _, p := range clients.All() {
		if p.Name != "thru" && !slices.Contains(compared, strings.TrimSuffix(p.Name, "4")) { // nfs4 is nfs with another version
			t.Errorf("%s is compared with nobody", p.Name)
		}
	}
}
