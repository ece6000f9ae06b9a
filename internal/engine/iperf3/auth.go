package iperf3

import (
	"bufio"
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"thru/internal/engine"
	"thru/internal/fault"
)

// usualSkew is the default limit for the difference between the clocks of client and server, as in iperf3.
const usualSkew = 10 * time.Second

// Contents of a token before encryption.
const (
	userLine = "user: "
	passLine = "pwd:  "
	timeLine = "ts:   "
)

// newToken encrypts the login for the server that has the private key; it returns "" without a login.
func newToken(l engine.Login, now time.Time) (string, error) {
	if l.User == "" {
		return "", nil
	}
	key, err := publicKey(l.PublicKey)
	if err != nil {
		return "", err
	}
	plain := []byte(userLine + l.User + "\n" + passLine + l.Password + "\n" + timeLine + strconv.FormatInt(now.Unix(), 10))
	var secret []byte
	if l.PKCS1 {
		//lint:ignore SA1019 servers before 3.17 know nothing else
		secret, err = rsa.EncryptPKCS1v15(rand.Reader, key, plain)
	} else {
		secret, err = rsa.EncryptOAEP(sha1.New(), rand.Reader, key, plain, nil)
	}
	if err != nil {
		return "", fault.Failf("use a shorter user and password: a key of 2048 bits has room for 200 characters", "iperf3: encrypting user and password: %w", err)
	}
	return base64.StdEncoding.EncodeToString(secret), nil
}

func publicKey(text []byte) (*rsa.PublicKey, error) {
	const hint = "make the file with `openssl rsa -in private.pem -outform PEM -pubout -out public.pem`"
	return rsaKey(text, "public", hint, x509.ParsePKCS1PublicKey, x509.ParsePKIXPublicKey)
}

func privateKey(text []byte) (*rsa.PrivateKey, error) {
	const hint = "make the file with `openssl genrsa -out private.pem 2048`, without a password"
	return rsaKey(text, "private", hint, x509.ParsePKCS1PrivateKey, x509.ParsePKCS8PrivateKey)
}

// rsaKey reads an RSA key in its own form, or in the form that names its algorithm.
func rsaKey[K any](text []byte, which, hint string, own func([]byte) (K, error), named func([]byte) (any, error)) (key K, err error) {
	bad := func(format string, args ...any) (K, error) {
		return key, fault.Usagef(hint, "iperf3: reading the "+which+" key: "+format, args...)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return bad("it is not PEM")
	}
	if key, err = own(block.Bytes); err == nil {
		return key, nil
	}
	found, err := named(block.Bytes)
	if err != nil {
		return bad("it is not an RSA key: BEGIN %s", block.Type)
	}
	key, ok := found.(K)
	if !ok {
		return bad("it is not an RSA key")
	}
	return key, nil
}

// Users are the users that a server admits.
type Users struct{ list []user }

type user struct {
	name string
	hash [sha256.Size]byte // of "{name}password"
}

// ParseUsers reads iperf3's file of users: lines of `name,hash`, where hash is the SHA-256 of "{name}password" in hexadecimal. It ignores empty lines,
// comments (#) and lines without a comma.
func ParseUsers(r io.Reader) (Users, error) {
	var u Users
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		name, rest, ok := strings.Cut(strings.TrimRight(lines.Text(), "\r"), ",")
		if !ok || name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		hash, _, _ := strings.Cut(rest, ",")
		b, err := hex.DecodeString(hash)
		if err != nil || len(b) != sha256.Size {
			return Users{}, fault.Usagef("write each line as NAME,HASH; the hash is that of `echo -n \"{NAME}PASSWORD\" | sha256sum`",
				"iperf3: reading the users: line %d has no hash of 64 hexadecimal digits", n)
		}
		u.list = append(u.list, user{name, [sha256.Size]byte(b)})
	}
	if err := lines.Err(); err != nil {
		return Users{}, fmt.Errorf("iperf3: reading the users: %w", err)
	}
	if len(u.list) == 0 {
		return Users{}, fault.Usagef("write each line as NAME,HASH", "iperf3: reading the users: the file has none")
	}
	return u, nil
}

// know reports whether a user has that password; it takes as long for a wrong one.
func (u Users) know(name, password string) bool {
	hash := sha256.Sum256([]byte("{" + name + "}" + password))
	found := 0
	for _, x := range u.list {
		found |= subtle.ConstantTimeCompare([]byte(x.name), []byte(name)) & subtle.ConstantTimeCompare(x.hash[:], hash[:])
	}
	return found == 1
}

// gate admits authenticated users; without a key it admits everybody.
type gate struct {
	users Users
	key   *rsa.PrivateKey
	pkcs1 bool
	skew  time.Duration // 0: usualSkew
}

// admit returns the user of a token; empty where no login is required. All defects of a token give the client the same error, so that it learns nothing.
func (g gate) admit(token string, now time.Time) (name string, err error) {
	if g.key == nil {
		return "", nil
	}
	if token == "" {
		return "", refuse(codeAuth, "checking a user: the client sent no user and password")
	}
	name, password, at, err := g.open(token)
	if err != nil {
		return "", refuse(codeAuth, "checking a user: %w", err)
	}
	if !g.users.know(name, password) {
		return "", refuse(codeAuth, "checking a user: unknown user %.40q, or wrong password", name)
	}
	if off := now.Sub(at).Abs(); off > cmp.Or(g.skew, usualSkew) {
		return "", refuse(codeAuth, "checking a user: the client's clock differs by %v, or its token is old", off.Round(time.Second))
	}
	return name, nil
}

// open decrypts a token.
func (g gate) open(token string) (name, password string, at time.Time, err error) {
	unreadable := errors.New("the token cannot be decrypted: it is for another key, or has the other padding (--use-pkcs1-padding)")
	secret, err := base64.StdEncoding.DecodeString(token)
	if err != nil {
		return "", "", at, unreadable
	}
	var plain []byte
	if g.pkcs1 {
		//lint:ignore SA1019 clients before 3.17 know nothing else
		plain, err = rsa.DecryptPKCS1v15(nil, g.key, secret)
	} else {
		plain, err = rsa.DecryptOAEP(sha1.New(), nil, g.key, secret, nil)
	}
	if err != nil {
		return "", "", at, unreadable
	}
	return readToken(string(plain))
}

// readToken splits a decrypted token.
func readToken(plain string) (name, password string, at time.Time, err error) {
	user, rest, ok1 := strings.Cut(plain, "\n"+passLine)
	password, stamp, ok2 := strings.Cut(rest, "\n"+timeLine)
	name, ok3 := strings.CutPrefix(user, userLine)
	unix, err := strconv.ParseInt(stamp, 10, 64)
	if !ok1 || !ok2 || !ok3 || err != nil || unix < 0 {
		return "", "", at, errors.New("the token lacks user, password or time")
	}
	return name, password, time.Unix(unix, 0), nil
}
