// Package link signs links by which people answer a question of a job ([stint.Ask]) without a login: in a
// mail, or a chat. A dashboard that has the same key ([dashboard.Config]) shows the question there, and takes
// the answer.
//
//	key, err := link.NewKey(secret)
//	url, err := key.URL("https://jobs.example.com", link.Link{
//		Job: job.ID, Question: "approve", By: "ann", Expires: time.Now().Add(72 * time.Hour),
//	})
//
// Whoever has a link can answer this one question, in the name that the link says, until it expires: send it
// to that person only. To open it changes nothing, so programs that look at links do no harm; a button
// on its page answers. All that a link says is signed by HMAC-SHA-256, and can be read by whoever has it.
//
// A key is for one database: ids of jobs are alike in others.
package link

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
)

// Link is what a link permits.
type Link struct {
	Job      stint.ID
	Question string // its name
	Choice   string // the only one that it gives; empty for all of the question's
	By       string // in whose name: 1 to 255 bytes
	Expires  time.Time
}

// Path is where a dashboard has its links, below its own path.
const Path = "/answer/"

// The errors of [Key.Open].
var (
	ErrForged  = errors.New("the link is not valid")
	ErrExpired = errors.New("the link has expired")
)

// Key signs links.
type Key struct{ secret []byte }

// minSecret is the least length of a secret, as of the others of a dashboard: 128 bits cannot be guessed.
const minSecret = 22

// NewKey returns the key of a secret, which has at least 22 characters that nobody can guess.
func NewKey(secret string) (Key, error) {
	if len(secret) < minSecret {
		return Key{}, valid.Invalid("link key", "it has %d characters; at least %d are needed", len(secret), minSecret)
	}
	return Key{[]byte(secret)}, nil
}

// signed is a link as it is written and signed.
type signed struct {
	Job      stint.ID `json:"j"`
	Question string   `json:"q"`
	Choice   string   `json:"c,omitempty"`
	By       string   `json:"b"`
	Expires  int64    `json:"e"` // seconds since 1970
}

// maxToken bounds what is read of a link: names of 255 bytes, as they are escaped.
const maxToken = 8 << 10

// URL signs a link to a dashboard, whose URL is the base, with the path that it is mounted at. The error says
// what is wrong with these, and matches [stint.ErrInvalid].
func (k Key) URL(base string, l Link) (string, error) {
	if err := l.check(); err != nil {
		return "", err
	}
	return k.url(base, Path, answers, signed{l.Job, l.Question, l.Choice, l.By, l.Expires.Unix()})
}

// url is the URL of a token below a dashboard's.
func (k Key) url(base, path, purpose string, content any) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", valid.Invalid("base", "%q is not the URL of a dashboard, such as https://jobs.example.com", base)
	}
	if len(k.secret) == 0 {
		return "", valid.Invalid("link key", "there is none")
	}
	text, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(base, "/") + path + encoding.EncodeToString(text) + "." + encoding.EncodeToString(k.sum(purpose, text)), nil
}

func (l Link) check() error {
	if l.Job < 1 {
		return valid.Invalid("job", "%d is no id", l.Job)
	}
	if l.Expires.IsZero() {
		return valid.Invalid("expires", "a link must expire")
	}
	if err := valid.Name("question", l.Question); err != nil {
		return err
	}
	if err := valid.Name("by", l.By); err != nil {
		return err
	}
	if l.Choice != "" {
		return valid.Name("choice", l.Choice)
	}
	return nil
}

var encoding = base64.RawURLEncoding.Strict()

// What tokens are for. It is signed with them, so that a signature of anything else by the same secret is none of
// theirs.
const (
	answers   = "stint answer link\n"
	callbacks = "stint callback\n"
)

// sum signs a text.
func (k Key) sum(purpose string, text []byte) []byte {
	h := hmac.New(sha256.New, k.secret)
	h.Write([]byte(purpose))
	h.Write(text)
	return h.Sum(nil)
}

// Open returns what the token at the end of a link permits at an instant. The error is [ErrForged] if it was
// not signed by this key, or is incomplete, and [ErrExpired], together with the link, if its time is over.
// Without a key every link is forged.
func (k Key) Open(token string, now time.Time) (Link, error) {
	var s signed
	if err := k.open(answers, token, &s); err != nil {
		return Link{}, err
	}
	l := Link{s.Job, s.Question, s.Choice, s.By, time.Unix(s.Expires, 0)}
	if err := l.check(); err != nil {
		return Link{}, fmt.Errorf("%w: %w", ErrForged, err)
	}
	if !now.Before(l.Expires) {
		return l, ErrExpired
	}
	return l, nil
}

// open reads what a token says if it was signed for a purpose.
func (k Key) open(purpose, token string, content any) error {
	encoded, sum, two := strings.Cut(token, ".")
	if len(k.secret) == 0 || len(token) > maxToken || !two {
		return ErrForged
	}
	text, err := encoding.DecodeString(encoded)
	given, wrong := encoding.DecodeString(sum)
	if err != nil || wrong != nil || !hmac.Equal(given, k.sum(purpose, text)) { // in constant time
		return ErrForged
	}
	read := json.NewDecoder(bytes.NewReader(text))
	read.DisallowUnknownFields()
	if err := read.Decode(content); err != nil {
		return fmt.Errorf("%w: %w", ErrForged, err) // signed by another version
	}
	return nil
}
