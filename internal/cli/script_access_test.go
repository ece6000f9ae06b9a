package cli

import (
	"github.com/rogpeppe/go-internal/testscript"

	"thru/internal/access/oidc/oidctest"
)

// provider VARIABLE GROUP...: starts a provider of OpenID Connect, at which a user of these groups logs in. The variable
// has its URL.
func provider(ts *testscript.TestScript, neg bool, args []string) {
	p, stop, err := oidctest.Start()
	ts.Check(err)
	ts.Defer(stop)
	p.Approve(p.Claims(args[1:]...), "authorization_pending")
	ts.Setenv(args[0], p.URL)
}
