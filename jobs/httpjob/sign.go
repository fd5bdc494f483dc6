package httpjob

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
)

// Secret signs requests after the specification of Standard Webhooks (https://www.standardwebhooks.com), which the
// libraries of many languages verify:
//
//	Webhook-Id          job_42, the same for each attempt of a job
//	Webhook-Timestamp   when this request was sent, in seconds since 1970
//	Webhook-Signature   v1,BASE64 of the HMAC-SHA-256 of "ID.TIMESTAMP.BODY"
//
// The zero value signs nothing.
type Secret struct{ keys [][]byte }

// secretPrefix begins a secret in the form of the specification.
const secretPrefix = "whsec_"

// ParseSecret reads a secret: whsec_ and 24 to 64 random bytes in Base64. Of several, with spaces
// between them, each signs, so that a receiver may change from one to the next. The error matches [stint.ErrInvalid].
func ParseSecret(text string) (Secret, error) {
	var s Secret
	for one := range strings.FieldsSeq(text) {
		encoded, ok := strings.CutPrefix(one, secretPrefix)
		key, err := base64.StdEncoding.DecodeString(encoded)
		switch {
		case !ok || err != nil:
			return Secret{}, valid.Invalid("secret", "it is not %s and Base64", secretPrefix) // without the secret
		case len(key) < 24 || len(key) > 64:
			return Secret{}, valid.Invalid("secret", "its key has %d bytes, not 24 to 64", len(key))
		}
		s.keys = append(s.keys, key)
	}
	if len(s.keys) == 0 {
		return Secret{}, valid.Invalid("secret", "it is empty")
	}
	return s, nil
}

// sign adds the headers of a signature.
func (s Secret) sign(h http.Header, job stint.ID, body []byte, now time.Time) {
	if len(s.keys) == 0 {
		return
	}
	id, at := "job_"+job.String(), strconv.FormatInt(now.Unix(), 10)
	var signatures []string
	for _, key := range s.keys {
		sum := hmac.New(sha256.New, key)
		sum.Write([]byte(id + "." + at + "."))
		sum.Write(body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(sum.Sum(nil)))
	}
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", at)
	h.Set("Webhook-Signature", strings.Join(signatures, " "))
}

// secretOf is the secret of the server that a URL names: of its host and port, of its host, or of all others.
func secretOf(secrets map[string]Secret, to *url.URL) Secret {
	for _, name := range []string{to.Host, to.Hostname(), "*"} {
		if s, ok := secrets[strings.ToLower(name)]; ok {
			return s
		}
	}
	return Secret{}
}
