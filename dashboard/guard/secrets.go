package guard

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
)

// minSecret is the least length of a secret: 128 bits cannot be guessed.
const minSecret = 22

// Token is a secret that a program presents as Authorization: Bearer. What is kept
// is its SHA-256, which is enough for what cannot be guessed.
type Token struct {
	Name string
	Role Role
	Hash string // SHA-256 of the token, in hex

	// Queues and Kinds are what a worker with the token may work on; none for all.
	Queues, Kinds []string
}

// NewToken describes a token.
func NewToken(name string, role Role, secret string) Token {
	sum := sha256.Sum256([]byte(secret))
	return Token{Name: name, Role: role, Hash: hex.EncodeToString(sum[:])}
}

func (t Token) check() error {
	raw, err := hex.DecodeString(t.Hash)
	switch {
	case t.Name == "":
		return fmt.Errorf("a token has no name")
	case err != nil || len(raw) != sha256.Size:
		return fmt.Errorf("the token %s: its hash is not the SHA-256 of a token in hex", t.Name)
	case t.Role < Worker || t.Role > Admin:
		return fmt.Errorf("the token %s has no role", t.Name)
	case t.Role != Worker && len(t.Queues)+len(t.Kinds) > 0:
		return fmt.Errorf("the token %s: queues and kinds bound the role worker only", t.Name)
	}
	return nil
}

// bearer identifies the owner of a secret, in the same time for all of them.
func (a *admitted) bearer(secret string) (who Identity, found bool) {
	sum := sha256.Sum256([]byte(secret))
	got := []byte(hex.EncodeToString(sum[:]))
	for _, t := range a.Tokens {
		if subtle.ConstantTimeCompare(got, []byte(t.Hash)) == 1 {
			who, found = Identity{t.Name, t.Role, t.Queues, t.Kinds}, true
		}
	}
	if a.link.is(secret) {
		who, found = linkIdentity, true
	}
	return who, found
}

// link is the secret in the address that a person opens.
type link struct {
	hash   [sha256.Size]byte
	cookie string // its name: another one for each secret, since cookies know no ports
	value  string // what that holds, which is not the secret
}

var linkIdentity = Identity{Name: "link", Role: Admin}

func newLink(secret string) *link {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("session"))
	sum := mac.Sum(nil)
	return &link{sha256.Sum256([]byte(secret)), "stint_" + hex.EncodeToString(sum[:4]), hex.EncodeToString(sum[4:])}
}

// is reports whether a secret is the link's.
func (l *link) is(secret string) bool {
	sum := sha256.Sum256([]byte(secret))
	return l != nil && subtle.ConstantTimeCompare(sum[:], l.hash[:]) == 1
}

// session recognizes a browser that opened the link before.
func (l *link) session(r *http.Request) (Identity, bool) {
	if l == nil {
		return Identity{}, false
	}
	c, err := r.Cookie(l.cookie)
	if err != nil || subtle.ConstantTimeCompare([]byte(c.Value), []byte(l.value)) != 1 {
		return Identity{}, false
	}
	return linkIdentity, true
}

// openSession answers a request with the link's secret: the browser gets a cookie, and
// goes to the same page without the secret, so that no history, bookmark or copied address
// has it.
func (g *Guard) openSession(w http.ResponseWriter, r *http.Request) bool {
	query := r.URL.Query()
	if !query.Has("token") || r.Method != http.MethodGet {
		return false
	}
	link := g.now.Load().link
	_, err := g.tries.guarded(r, func() (Identity, bool) { return linkIdentity, link.is(query.Get("token")) }, nil)
	if err != nil {
		status := http.StatusUnauthorized
		if err == errTooMany {
			w.Header().Set("Retry-After", "60")
			status = http.StatusTooManyRequests
		}
		g.refuse(w, r, Identity{}, status, "that is not the token of this server: open the link that it printed when it started")
		return true
	}
	http.SetCookie(w, &http.Cookie{
		Name: link.cookie, Value: link.value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
	query.Del("token")
	to := *r.URL
	to.Scheme, to.Host, to.RawQuery = "", "", query.Encode()
	if len(to.Path) > 1 && (to.Path[1] == '/' || to.Path[1] == '\\') {
		to.Path, to.RawPath = "/", "" // which a browser would take for another host
	}
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
	return true
}
