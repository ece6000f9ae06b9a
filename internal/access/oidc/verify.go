package oidc

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	_ "crypto/sha256" // crypto.SHA256
	_ "crypto/sha512" // crypto.SHA384
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"time"

	"thru/internal/access"
	"thru/internal/fault"
)

// Times of keys and tokens.
const (
	keysAge   = time.Hour       // after which the keys are read again
	keysAgain = 5 * time.Second // between two readings for a key that is not known
	skew      = time.Minute     // by which clocks may differ
)

// Verifier verifies the ID tokens of a provider, and maps the groups of their users to roles.
type Verifier struct {
	Issuer string
	Client string // id: the audience
	Claim  string // with the groups
	Rules  []access.Rule
	Now    func() time.Time // nil: time.Now

	mu       sync.Mutex
	provider *Provider
	keys     []key
	read     time.Time // of the keys
}

// key is a key of a provider (RFC 7517, RFC 7518 section 6, RFC 8037).
type key struct {
	ID   string `json:"kid"`
	Type string `json:"kty"`
	Use  string `json:"use"`
	N    string `json:"n"`
	E    string `json:"e"`
	Crv  string `json:"crv"`
	X    string `json:"x"`
	Y    string `json:"y"`
}

// claims are those of an ID token (OpenID Connect Core 1.0, section 2).
type claims struct {
	Issuer   string   `json:"iss"`
	Subject  string   `json:"sub"`
	Audience words    `json:"aud"`
	Party    string   `json:"azp"`
	Expires  *float64 `json:"exp"`
	Issued   *float64 `json:"iat"`
	Begins   *float64 `json:"nbf"`
	Email    string   `json:"email"`
	Verified bool     `json:"email_verified"`
}

// words is a list, or a single word.
type words []string

// UnmarshalJSON implements json.Unmarshaler.
func (w *words) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*w = words{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(w))
}

// Verify returns the user of an ID token, with the role of its groups, and when the token expires.
func (v *Verifier) Verify(ctx context.Context, token string) (access.Identity, time.Time, error) {
	c, body, err := v.claims(ctx, token)
	if err != nil {
		return access.Identity{}, time.Time{}, fmt.Errorf("oidc: the ID token is not valid: %w", err)
	}
	var all map[string]json.RawMessage
	var groups words
	_ = json.Unmarshal(body, &all) // it was read before
	_ = json.Unmarshal(all[v.Claim], &groups)
	who := access.Identity{Name: c.Subject, Via: access.ByOIDC}
	if c.Verified && access.CheckName(c.Email) == nil {
		who.Name = c.Email // others could have entered the same address unless the provider has checked it
	}
	if err := access.CheckName(who.Name); err != nil {
		return access.Identity{}, time.Time{}, err
	}
	rule, ok := access.Choose(v.Rules, groups)
	if !ok {
		return who, time.Time{}, fault.Failf("give a group a role: thru control --oidc-role ROLE:GROUP", "oidc: %s has none of the groups that have a role", who.Name)
	}
	who.Role, who.Labels = rule.Role, rule.Labels
	return who, time.Unix(int64(*c.Expires), 0), nil
}

// claims verifies signature, issuer, audience and times of a token.
func (v *Verifier) claims(ctx context.Context, token string) (c claims, body []byte, err error) {
	signed, signature, found := cutLast(token)
	head, payload, two := strings.Cut(signed, ".")
	if !found || !two || strings.Contains(payload, ".") {
		return c, nil, errors.New("it does not have three parts")
	}
	var h struct {
		Alg  string   `json:"alg"`
		Key  string   `json:"kid"`
		Crit []string `json:"crit"`
	}
	var sig []byte
	if err := errors.Join(part(head, func(b []byte) error { return json.Unmarshal(b, &h) }), part(signature, func(b []byte) error { sig = b; return nil }),
		part(payload, func(b []byte) error { body = b; return json.Unmarshal(b, &c) })); err != nil {
		return c, nil, err
	}
	if len(h.Crit) > 0 {
		return c, nil, errors.New("it has extensions that must be understood")
	}
	if err := v.signedBy(ctx, h.Alg, h.Key, signed, sig); err != nil {
		return c, nil, err
	}
	return c, body, v.fits(c)
}

// part decodes a part of a token.
func part(text string, into func([]byte) error) error {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return err
	}
	return into(b)
}

func cutLast(token string) (before, after string, found bool) {
	i := strings.LastIndexByte(token, '.')
	if i < 0 {
		return "", "", false
	}
	return token[:i], token[i+1:], true
}

// fits checks who has issued the token, for whom, and when.
func (v *Verifier) fits(c claims) error {
	now := v.now()
	at := func(seconds float64) time.Time { return time.Unix(int64(seconds), 0) }
	switch {
	case c.Issuer != v.Issuer:
		return fmt.Errorf("another provider has issued it: %.200q", c.Issuer)
	case !slices.Contains(c.Audience, v.Client):
		return fmt.Errorf("it is for another client: %.200q", c.Audience)
	case len(c.Audience) > 1 && c.Party != v.Client, c.Party != "" && c.Party != v.Client:
		return fmt.Errorf("it was given to another client: %.200q", c.Party)
	case c.Subject == "":
		return errors.New("it names nobody")
	case c.Expires == nil || !now.Before(at(*c.Expires).Add(skew)):
		return errors.New("it has expired")
	case c.Issued == nil || now.Add(skew).Before(at(*c.Issued)), c.Begins != nil && now.Add(skew).Before(at(*c.Begins)):
		return errors.New("it is not valid yet: the clocks of the provider and this host differ")
	}
	return nil
}

func (v *Verifier) now() time.Time {
	if v.Now != nil {
		return v.Now()
	}
	return time.Now()
}

// signedBy checks a signature by the provider's keys. They are read again when they are old, or when none has the id.
func (v *Verifier) signedBy(ctx context.Context, alg, id, signed string, sig []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	age := v.now().Sub(v.read)
	known := slices.ContainsFunc(v.keys, func(k key) bool { return k.ID == id })
	if age > keysAge || !known && age > keysAgain {
		if err := v.fetch(ctx); err != nil {
			return err
		}
	}
	for _, k := range v.keys {
		if (id == "" || k.ID == id) && k.Use != "enc" && k.verifies(alg, signed, sig) {
			return nil
		}
	}
	return errors.New("no key of the provider has signed it")
}

// fetch reads the provider's keys.
func (v *Verifier) fetch(ctx context.Context) (err error) {
	if v.provider == nil {
		if v.provider, err = Discover(ctx, v.Issuer); err != nil {
			return err
		}
	}
	var set struct {
		Keys []key `json:"keys"`
	}
	if err := v.provider.get(ctx, v.provider.Keys, &set); err != nil {
		return fmt.Errorf("reading the keys of the provider: %w", err)
	}
	v.keys, v.read = set.Keys, v.now()
	return nil
}

// verifies reports whether a signature is by the key. The algorithm must fit the key's type, so that no public key
// is taken for a shared secret.
func (k key) verifies(alg, signed string, sig []byte) bool {
	hash := crypto.SHA256
	if alg == "ES384" {
		hash = crypto.SHA384
	}
	sum := hash.New()
	sum.Write([]byte(signed))
	digest := sum.Sum(nil)
	switch alg {
	case "RS256":
		pub, ok := k.rsa()
		return ok && rsa.VerifyPKCS1v15(pub, hash, digest, sig) == nil
	case "PS256":
		pub, ok := k.rsa()
		return ok && rsa.VerifyPSS(pub, hash, digest, sig, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil
	case "ES256":
		return k.ecdsa("P-256", elliptic.P256(), digest, sig)
	case "ES384":
		return k.ecdsa("P-384", elliptic.P384(), digest, sig)
	case "EdDSA":
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		return err == nil && k.Type == "OKP" && k.Crv == "Ed25519" && len(x) == ed25519.PublicKeySize && ed25519.Verify(x, []byte(signed), sig)
	}
	return false
}

func (k key) rsa() (*rsa.PublicKey, bool) {
	n, err := base64.RawURLEncoding.DecodeString(k.N)
	e, err2 := base64.RawURLEncoding.DecodeString(k.E)
	if cmp.Or(err, err2) != nil || k.Type != "RSA" || len(n) < 256 || len(e) == 0 || len(e) > 3 { // 2048 bits (RFC 7518, section 3.3)
		return nil, false
	}
	return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}, true
}

// ecdsa verifies the two numbers of RFC 7518, section 3.4.
func (k key) ecdsa(name string, curve elliptic.Curve, digest, sig []byte) bool {
	size := (curve.Params().BitSize + 7) / 8
	x, err := base64.RawURLEncoding.DecodeString(k.X)
	y, err2 := base64.RawURLEncoding.DecodeString(k.Y)
	if cmp.Or(err, err2) != nil || k.Type != "EC" || k.Crv != name || len(x) != size || len(y) != size || len(sig) != 2*size {
		return false
	}
	pub, err := ecdsa.ParseUncompressedPublicKey(curve, slices.Concat([]byte{4}, x, y))
	return err == nil && ecdsa.Verify(pub, digest, new(big.Int).SetBytes(sig[:size]), new(big.Int).SetBytes(sig[size:]))
}
