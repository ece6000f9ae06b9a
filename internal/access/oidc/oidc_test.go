package oidc_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"strings"
	"testing"
	"time"

	"thru/internal/access"
	"thru/internal/access/oidc"
	"thru/internal/access/oidc/oidctest"
	"thru/internal/fault"
)

func verifier(p *oidctest.Provider) *oidc.Verifier {
	rules := []access.Rule{{Group: "admins", Role: access.Admin}, {Group: "berlin", Role: access.Operator, Labels: access.Labels{"site": {"berlin"}}}}
	return &oidc.Verifier{Issuer: p.URL, Client: "thru", Claim: "groups", Rules: rules}
}

// TestVerify: a token of the provider for this client is accepted with each algorithm, and gives the role of the group.
func TestVerify(t *testing.T) {
	p := oidctest.New(t)
	for _, alg := range []string{"RS256", "PS256", "ES256"} {
		who, until, err := verifier(p).Verify(t.Context(), p.Sign(alg, nil, p.Claims("others", "berlin")))
		if err != nil || who.Name != "anna@example.com" || who.Role != access.Operator || who.Labels.String() != "site=berlin" || who.Via != access.ByOIDC || time.Until(until) <= 0 {
			t.Errorf("%s: %v %v", alg, who, err)
		}
	}
}

// TestRefused: what is wrong with a token is found, and it gives no role.
func TestRefused(t *testing.T) {
	p, other := oidctest.New(t), oidctest.New(t)
	now := time.Now().Unix()
	with := func(more map[string]any) string {
		c := p.Claims("berlin")
		maps.Copy(c, more)
		return p.Sign("RS256", nil, c)
	}
	good := with(nil)
	parts := strings.Split(good, ".")
	forged := base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"` + p.URL + `","sub":"eve","aud":"thru","exp":99999999999,"iat":1,"groups":["admins"]}`))
	mac := hmac.New(sha256.New, []byte("AQAB"))
	hs := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","kid":"first-rsa"}`)) + "." + forged
	mac.Write([]byte(hs))
	for name, tt := range map[string]struct{ token, says string }{
		"another issuer":           {with(map[string]any{"iss": other.URL}), "another provider"},
		"another audience":         {with(map[string]any{"aud": "web"}), "for another client"},
		"several, given to others": {with(map[string]any{"aud": []string{"thru", "web"}, "azp": "web"}), "given to another client"},
		"several, no party":        {with(map[string]any{"aud": []string{"thru", "web"}}), "given to another client"},
		"expired":                  {with(map[string]any{"exp": now - 120}), "has expired"},
		"without an end":           {with(map[string]any{"exp": nil}), "has expired"},
		"of the future":            {with(map[string]any{"iat": now + 600}), "not valid yet"},
		"not yet":                  {with(map[string]any{"nbf": now + 600}), "not valid yet"},
		"of nobody":                {with(map[string]any{"sub": ""}), "names nobody"},
		"no group":                 {with(map[string]any{"groups": []string{"others"}}), "none of the groups"},
		"no groups":                {with(map[string]any{"groups": nil}), "none of the groups"},
		"the keys of another":      {other.Sign("RS256", map[string]any{"kid": "first-rsa"}, p.Claims("admins")), "no key of the provider"},
		"changed":                  {parts[0] + "." + forged + "." + parts[2], "no key of the provider"},
		"unsigned":                 {base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + forged + ".", "no key of the provider"},
		"a shared secret":          {hs + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), "no key of the provider"},
		"the key of another kind":  {p.Sign("RS256", map[string]any{"kid": "first-ec"}, p.Claims("admins")), "no key of the provider"},
		"an extension":             {p.Sign("RS256", map[string]any{"crit": []string{"b64"}, "b64": false}, p.Claims("admins")), "extensions"},
		"two parts":                {parts[0] + "." + parts[1], "three parts"},
		"four parts":               {good + ".x", "three parts"},
		"nothing":                  {"", "three parts"},
		"no JSON":                  {"eA.eA.eA", "invalid character"},
	} {
		if who, _, err := verifier(p).Verify(t.Context(), tt.token); err == nil || !strings.Contains(err.Error(), tt.says) || who.Role != "" {
			t.Errorf("%s: %v %v", name, who, err)
		}
	}
	if who, _, err := verifier(p).Verify(t.Context(), with(map[string]any{"email_verified": false})); err != nil || who.Name != "1234" {
		t.Error("an address that the provider has not checked is a name:", who, err)
	}
}

// TestKeyRotation: new keys are read when a token has one, and unknown ones do not have them read at each token.
func TestKeyRotation(t *testing.T) {
	p := oidctest.New(t)
	v, now := verifier(p), time.Now()
	v.Now = func() time.Time { return now }
	for range 2 {
		if _, _, err := v.Verify(t.Context(), p.Sign("RS256", nil, p.Claims("berlin"))); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		v.Verify(t.Context(), p.Sign("RS256", map[string]any{"kid": "strange"}, p.Claims("berlin")))
	}
	if n := p.Fetched(); n != 1 {
		t.Errorf("the keys are read %d times", n)
	}
	if err := p.Rotate("second"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(10 * time.Second)
	if _, _, err := v.Verify(t.Context(), p.Sign("ES256", nil, p.Claims("berlin"))); err != nil || p.Fetched() != 2 {
		t.Error(p.Fetched(), err)
	}
}

// TestLogin: the user sees page and code, and the login waits until the provider has the answer.
func TestLogin(t *testing.T) {
	p := oidctest.New(t)
	found, err := oidc.Discover(t.Context(), p.URL)
	if err != nil {
		t.Fatal(err)
	}
	p.Approve(p.Claims("berlin"), "authorization_pending")
	var asked oidc.Ask
	token, err := found.Login(t.Context(), "thru", func(a oidc.Ask) { asked = a })
	if err != nil || asked.Code != "ABCD-EFGH" || asked.Page != p.URL+"/enter" {
		t.Fatal(asked, err)
	}
	if who, _, err := verifier(p).Verify(t.Context(), token); err != nil || who.Role != access.Operator {
		t.Error(who, err)
	}
	for _, refused := range []string{"access_denied", "expired_token"} {
		p.Approve(nil, refused)
		if _, err := found.Login(t.Context(), "thru", func(oidc.Ask) {}); err == nil || fault.Hint(err) == "" {
			t.Errorf("%s: %v", refused, err)
		}
	}
	if _, err := found.Login(t.Context(), "web", func(oidc.Ask) {}); err == nil || !strings.Contains(err.Error(), "invalid_client") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p.Approve(nil, "authorization_pending", "authorization_pending", "authorization_pending")
	if _, err := found.Login(ctx, "thru", func(oidc.Ask) { cancel() }); err == nil {
		t.Error("an interrupted login succeeds")
	}
}

// TestURLs: keys come only over an encrypted path, and from the issuer itself.
func TestURLs(t *testing.T) {
	for text, ok := range map[string]bool{
		"https://id.example.com/realms/x": true, "http://127.0.0.1:5556/dex": true, "http://[::1]:1": true, "http://id.example.com": false, "http://10.0.0.1": false,
		"id.example.com": false, "https://": false, "https://a:b@id.example.com": false, "ftp://127.0.0.1": false, "https://id.example.com/?x": false,
	} {
		if err := oidc.CheckURL(text); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	p := oidctest.New(t)
	if _, err := oidc.Discover(t.Context(), p.URL+"/"); err == nil || !strings.Contains(err.Error(), "calls itself") {
		t.Error(err)
	}
}

// FuzzVerify: no text ends the program or is accepted without the signature of the provider.
func FuzzVerify(f *testing.F) {
	p := oidctest.New(f)
	good := p.Sign("RS256", nil, p.Claims("berlin"))
	f.Add(good)
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	v := verifier(p)
	f.Fuzz(func(t *testing.T, token string) {
		if _, _, err := v.Verify(t.Context(), token); err == nil && token != good {
			t.Errorf("%q is accepted", token)
		}
	})
}
