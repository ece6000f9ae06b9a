// Package oidctest is a provider of OpenID Connect for tests: discovery, keys, and the device authorization grant.
package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Provider is a running provider.
type Provider struct {
	URL string

	mu      sync.Mutex
	rsa     *rsa.PrivateKey
	ec      *ecdsa.PrivateKey
	kid     string
	claims  map[string]any // of the user that logs in
	polls   []string       // errors that the next polls get
	fetched int
}

// New starts a provider on loopback, for a test.
func New(t testing.TB) *Provider {
	t.Helper()
	p, stop, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return p
}

// Start starts a provider on loopback.
func Start() (p *Provider, stop func(), err error) {
	p = &Provider{}
	if err := p.Rotate("first"); err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	p.URL = s.URL
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{"issuer": p.URL, "device_authorization_endpoint": p.URL + "/device", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys"})
	})
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("POST /device", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("client_id") != "thru" {
			answer(w, 401, map[string]any{"error": "invalid_client"})
			return
		}
		answer(w, 200, map[string]any{"device_code": "dev", "user_code": "ABCD-EFGH", "verification_uri": p.URL + "/enter", "expires_in": 60, "interval": 1})
	})
	mux.HandleFunc("POST /token", p.token)
	return p, s.Close, nil
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

// Rotate replaces the keys; their ids begin with a word.
func (p *Provider) Rotate(kid string) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		return err
	}
	p.kid = kid
	p.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return err
}

// Approve sets the claims of the user that logs in next, and the errors of the polls before.
func (p *Provider) Approve(claims map[string]any, polls ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims, p.polls = claims, polls
}

// Fetched returns how often the keys were read.
func (p *Provider) Fetched() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fetched
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fetched++
	point, _ := p.ec.PublicKey.Bytes()
	answer(w, 200, map[string]any{"keys": []map[string]any{
		{"kty": "RSA", "use": "sig", "kid": p.kid + "-rsa", "n": b64(p.rsa.N.Bytes()), "e": "AQAB"},
		{"kty": "EC", "use": "sig", "kid": p.kid + "-ec", "crv": "P-256", "x": b64(point[1:33]), "y": b64(point[33:])},
	}})
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	if len(p.polls) > 0 {
		code := p.polls[0]
		p.polls = p.polls[1:]
		p.mu.Unlock()
		answer(w, 400, map[string]any{"error": code})
		return
	}
	claims := p.claims
	p.mu.Unlock()
	if r.FormValue("device_code") != "dev" || r.FormValue("client_id") != "thru" || claims == nil {
		answer(w, 400, map[string]any{"error": "access_denied"})
		return
	}
	answer(w, 200, map[string]any{"id_token": p.Sign("RS256", nil, claims), "token_type": "Bearer", "access_token": "x"})
}

// Claims returns those of a valid token of a user.
func (p *Provider) Claims(groups ...string) map[string]any {
	now := time.Now().Unix()
	return map[string]any{"iss": p.URL, "sub": "1234", "aud": "thru", "exp": now + 300, "iat": now, "email": "anna@example.com", "email_verified": true, "groups": groups}
}

// Sign returns a token with these claims, and more in its header.
func (p *Provider) Sign(alg string, header map[string]any, claims any) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := map[string]any{"alg": alg, "kid": p.kid + map[string]string{"ES256": "-ec"}[alg]}
	if alg != "ES256" {
		h["kid"] = p.kid + "-rsa"
	}
	for k, v := range header {
		h[k] = v
	}
	hb, _ := json.Marshal(h)
	cb, _ := json.Marshal(claims)
	text := b64(hb) + "." + b64(cb)
	sum := crypto.SHA256.New()
	sum.Write([]byte(text))
	digest := sum.Sum(nil)
	var sig []byte
	switch alg {
	case "RS256":
		sig, _ = rsa.SignPKCS1v15(nil, p.rsa, crypto.SHA256, digest)
	case "PS256":
		sig, _ = rsa.SignPSS(rand.Reader, p.rsa, crypto.SHA256, digest, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
	case "ES256":
		r, s, _ := ecdsa.Sign(rand.Reader, p.ec, digest)
		sig = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	}
	return text + "." + b64(sig)
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
