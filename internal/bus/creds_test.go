package bus_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"thru/internal/bus"
	"thru/internal/bus/bustest"
)

// TestCreds: an agent and an operator of a NATS server with accounts, by credentials
// files. The agent's id is the key of its user.
func TestCreds(t *testing.T) {
	for name, start := range map[string]run{"library": library, "program": program} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := openAccounts(t, start)
			p, _, f := fleetOn(t, x, bustest.New(), nil)
			if p.ID() != x.agentKeys[0] {
				t.Errorf("the agent goes by %s, its key is %s", p.ID(), x.agentKeys[0])
			}
			if _, err := f.Client(p.ID()).Hello(t.Context()); err != nil {
				t.Error(err)
			}
			waitHosts(t, f, func(h []bus.Host) bool { return named(h, "bee") != nil })
		})
	}
}

// openAccounts starts a server that knows an operator and an account, and users by what
// those have signed.
func openAccounts(t testing.TB, start run) *external {
	t.Helper()
	x := &external{dir: t.TempDir()}
	x.ca = x.certificates(t, "localhost")
	authority, _ := nkeys.CreateOperator()
	account, _ := nkeys.CreateAccount()
	authorityKey, _ := authority.PublicKey()
	accountKey, _ := account.PublicKey()
	authorityJWT, err := jwt.NewOperatorClaims(authorityKey).Encode(authority)
	if err != nil {
		t.Fatal(err)
	}
	accountJWT, err := jwt.NewAccountClaims(accountKey).Encode(authority)
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	x.url = fmt.Sprintf("nats://localhost:%d", port)
	x.config = filepath.Join(x.dir, "nats.conf")
	write(t, x.config, fmt.Sprintf("listen: \"127.0.0.1:%d\"\ntls { cert_file: %q, key_file: %q }\noperator: %s\nresolver: MEMORY\nresolver_preload: { %s: %s }\n",
		port, filepath.Join(x.dir, "server.pem"), filepath.Join(x.dir, "server.key"), authorityJWT, accountKey, accountJWT))
	user := func(name string) (bus.NATSConfig, string) {
		pair, _ := nkeys.CreateUser()
		key, _ := pair.PublicKey()
		seed, _ := pair.Seed()
		claims := jwt.NewUserClaims(key)
		claims.Name = name
		claims.Pub.Allow.Add("thru.>")
		claims.Sub.Allow.Add("thru.>")
		signed, err := claims.Encode(account)
		if err != nil {
			t.Fatal(err)
		}
		text, err := jwt.FormatUserConfig(signed, seed)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(x.dir, name+".creds")
		write(t, path, string(text))
		return bus.NATSConfig{URL: x.url, CA: x.ca, Creds: path}, key
	}
	agent, key := user("agent")
	operator, _ := user("operator")
	controller, _ := user("controller")
	x.agents, x.agentKeys, x.operators, x.controller = []bus.NATSConfig{agent}, []string{key}, []bus.NATSConfig{operator}, []bus.NATSConfig{controller}
	x.start = func() { x.stop = start(t, x.config) }
	x.start()
	t.Cleanup(func() { x.stop() })
	return x
}
