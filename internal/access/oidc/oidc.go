// Package oidc logs users in at a provider of OpenID Connect, and verifies the ID tokens of it: discovery, the device
// authorization grant (RFC 8628), the provider's keys (RFC 7517) and signatures (RFC 7515). It is small on purpose: the usual
// libraries add 0.5 MB to the binary, for what is a table of five algorithms here.
package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"thru/internal/fault"
)

// Bounds of what a provider sends.
const (
	mostBytes = 1 << 20
	askTime   = 10 * time.Second
	// Of RFC 8628, section 3.2 and 3.5.
	pollEvery = 5 * time.Second
	slowDown  = 5 * time.Second
)

// Provider is a provider as its discovery document describes it (OpenID Connect Discovery 1.0, section 3).
type Provider struct {
	Issuer string `json:"issuer"`
	Device string `json:"device_authorization_endpoint"`
	Token  string `json:"token_endpoint"`
	Keys   string `json:"jwks_uri"`

	http *http.Client
}

// Discover reads the discovery document of an issuer.
func Discover(ctx context.Context, issuer string) (*Provider, error) {
	if err := CheckURL(issuer); err != nil {
		return nil, err
	}
	p := &Provider{http: &http.Client{Timeout: askTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if err := p.get(ctx, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", p); err != nil {
		return nil, fault.Failf("check the URL of the provider, and whether this host reaches it", "oidc: finding the provider %s: %w", issuer, err)
	}
	if p.Issuer != issuer {
		return nil, fault.Failf("give the URL exactly as the provider writes it: "+p.Issuer, "oidc: the provider at %s calls itself %.200q", issuer, p.Issuer)
	}
	return p, nil
}

// CheckURL accepts https, and http at this host itself.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fault.Usagef("give https://HOST/PATH", "oidc: %.200q is not the URL of a provider", text)
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme != "https" && (u.Scheme != "http" || ip == nil || !ip.IsLoopback()) {
		return fault.Usagef("give an https URL: others on the path could forge the keys of the provider", "oidc: %s is not encrypted", text)
	}
	return nil
}

// get reads a JSON document.
func (p *Provider) get(ctx context.Context, at string, into any) error {
	if err := CheckURL(at); err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	_, err = p.do(q, into)
	return err
}

// do sends a request, and reads the JSON of the answer. It returns an error answer of OAuth (RFC 6749, section 5.2) as that.
func (p *Provider) do(q *http.Request, into any) (refused string, err error) {
	r, err := p.http.Do(q)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(io.LimitReader(r.Body, mostBytes))
	if err != nil {
		return "", err
	}
	if r.StatusCode != http.StatusOK {
		var no struct {
			Error string `json:"error"`
			Text  string `json:"error_description"`
		}
		_ = json.Unmarshal(b, &no) // a page of a proxy is no JSON
		return no.Error, fmt.Errorf("%s: %s", r.Status, fault.Printable(strings.TrimSpace(no.Error+" "+no.Text)))
	}
	return "", json.Unmarshal(b, into)
}

// post sends a form.
func (p *Provider) post(ctx context.Context, at string, form url.Values, into any) (refused string, err error) {
	if err := CheckURL(at); err != nil {
		return "", err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return p.do(q, into)
}

// Ask is what a user must do to log in: open the page, and enter the code there.
type Ask struct {
	Page string // URL
	Code string
	Full string // URL with the code in it; may be empty
}

// Login logs a user in by the device authorization grant: show tells the user what to do, on any device with a browser. It
// returns the ID token.
func (p *Provider) Login(ctx context.Context, client string, show func(Ask)) (string, error) {
	if p.Device == "" {
		return "", fault.Failf("enable the device authorization grant (RFC 8628) for the client there, or use a token: thru token", "oidc: the provider %s has no login for programs without a browser", p.Issuer)
	}
	var d struct {
		Device   string `json:"device_code"`
		Code     string `json:"user_code"`
		Page     string `json:"verification_uri"`
		Full     string `json:"verification_uri_complete"`
		Expires  int    `json:"expires_in"`
		Interval int    `json:"interval"`
	}
	if _, err := p.post(ctx, p.Device, url.Values{"client_id": {client}, "scope": {"openid email profile groups"}}, &d); err != nil {
		return "", fault.Failf("check the client at the provider: it must be public, and have the device authorization grant", "oidc: the provider %s refuses a login of the client %s: %w", p.Issuer, client, err)
	}
	show(Ask{fault.Printable(d.Page), fault.Printable(d.Code), fault.Printable(d.Full)})
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(d.Expires, 1))*time.Second)
	defer cancel()
	every := pollEvery
	if d.Interval > 0 {
		every = time.Duration(d.Interval) * time.Second
	}
	for {
		select {
		case <-ctx.Done():
			return "", expired(ctx.Err())
		case <-time.After(every):
		}
		var got struct {
			ID string `json:"id_token"`
		}
		refused, err := p.post(ctx, p.Token, url.Values{"client_id": {client}, "device_code": {d.Device}, "grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}}, &got)
		switch {
		case err == nil && got.ID == "":
			return "", fault.Failf("give the client the scope openid there", "oidc: the provider %s has sent no ID token", p.Issuer)
		case err == nil:
			return got.ID, nil
		case refused == "authorization_pending":
		case refused == "slow_down":
			every += slowDown
		case refused == "expired_token", ctx.Err() != nil:
			return "", expired(err)
		default:
			return "", fault.Failf("log in again", "oidc: the provider %s refuses the login: %w", p.Issuer, err)
		}
	}
}

// expired is the error of a login that the user has not finished.
func expired(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return fault.Failf("log in again, and enter the code sooner", "oidc: the code has expired")
}
