package seal

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stint-go/stint/internal/valid"
)

var (
	// ErrNoKey says that a value is sealed with a key that is not at hand.
	ErrNoKey = errors.New("seal: the key is not at hand")

	// ErrForged says that a value was not sealed with this key, or for another kind or place, or was changed since.
	ErrForged = errors.New("seal: it was not sealed with this key, or for another kind or place, or was changed since")
)

// Keys seal and open. A [Ring] has its keys in memory; a program can write its own for a
// service that keeps them. All methods may be called concurrently.
type Keys interface {
	// Seal encrypts a value, and says with which key. What the value is bound to is no
	// secret, and is not in the result: Open must refuse it with anything else.
	Seal(ctx context.Context, plain, bound []byte) (key string, sealed []byte, err error)

	// Open is the way back, and may write into sealed. The error matches [ErrForged] when this can never be
	// opened, and [ErrNoKey] when the key is unknown here. After any error but ErrForged the job is
	// put off, and left to an engine that can open it.
	Open(ctx context.Context, key string, sealed, bound []byte) ([]byte, error)
}

// Comparer is implemented by keys that can tell equal values without opening them. Jobs with
// an idempotency key or a unique key, and limits by what is sealed, need it.
type Comparer interface {
	// MAC returns at least 16 bytes that are the same for equal values, for as long as such jobs
	// are kept, also while programs with older and newer keys run beside each other.
	MAC(ctx context.Context, value []byte) ([]byte, error)
}

// Key is a secret with a name.
type Key struct {
	// ID names the key in what it sealed: 1 to 255 bytes, for example when it was made. It is no
	// secret, and must never stand for another secret.
	ID string

	// Secret are 32 random bytes, such as openssl rand makes. Whoever has them reads everything
	// that was sealed with the key.
	Secret []byte
}

// Ring are keys in memory. It seals with the newest, and opens with all of them.
type Ring struct {
	newest  string
	secrets map[string]secret
	compare []byte // for MACs
}

// NewRing returns a ring. To change the key, first give the new one to all programs that open jobs, by
// [Ring.AlsoOpens], then put it first everywhere, and take the old one out when no job is
// kept any more that it sealed (see store.Retention).
//
// MACs are made with the oldest key, the last one, so that they stay the same meanwhile. When
// that is taken out, equal values count as different from those before.
func NewRing(newest Key, older ...Key) (*Ring, error) {
	r := &Ring{newest: newest.ID, secrets: map[string]secret{}}
	all := append([]Key{newest}, older...)
	for _, k := range all {
		if err := r.add(k); err != nil {
			return nil, err
		}
	}
	oldest := all[len(all)-1]
	var err error
	r.compare, err = hkdf.Key(sha256.New, oldest.Secret, nil, "stint compare", sha256.Size)
	return r, err
}

// ReadRing reads a ring from a text: on each line the ID of a key, space, and its 32 bytes in Base64, as of
// openssl rand -base64 32; the newest first, as for [NewRing]. Empty lines and those that begin with # say nothing.
// An error tells the line, and no part of a secret.
func ReadRing(text string) (*Ring, error) {
	var keys []Key
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		id, encoded, _ := strings.Cut(line, " ")
		secret, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
		if err != nil || len(secret) != secretLen {
			return nil, fmt.Errorf("seal: %w", valid.Invalid("key", "line %d is not the ID of a key, a space, and %d bytes in Base64", i+1, secretLen))
		}
		keys = append(keys, Key{ID: id, Secret: secret})
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("seal: %w", valid.Invalid("key", "there is none"))
	}
	return NewRing(keys[0], keys[1:]...)
}

// AlsoOpens returns a ring that opens with these keys, too, and does nothing else with them: for a new key,
// before any program seals with it.
func (r *Ring) AlsoOpens(keys ...Key) (*Ring, error) {
	more := &Ring{newest: r.newest, secrets: maps.Clone(r.secrets), compare: r.compare}
	for _, k := range keys {
		if err := more.add(k); err != nil {
			return nil, err
		}
	}
	return more, nil
}

// add adds a good key that is not there.
func (r *Ring) add(k Key) (err error) {
	if err := valid.Name("key", k.ID); err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	if len(k.Secret) != secretLen {
		return fmt.Errorf("seal: %w", valid.Invalid("key", "the secret of %q has %d bytes, not %d", k.ID, len(k.Secret), secretLen))
	}
	if _, twice := r.secrets[k.ID]; twice {
		return fmt.Errorf("seal: %w", valid.Invalid("key", "%q is there twice", k.ID))
	}
	r.secrets[k.ID], err = newSecret(k.Secret)
	return err
}

const secretLen = 32

// Seal encrypts with the newest key, as XAES-256-GCM (c2sp.org/XAES-256-GCM): AES-256-GCM under a key of its own
// for each value, with a random nonce of 24 bytes, which comes before the ciphertext. So no number of values wears a
// key out, as random nonces of 12 bytes would after some billions.
func (r *Ring) Seal(_ context.Context, plain, bound []byte) (key string, sealed []byte, err error) {
	sealed = make([]byte, nonceLen, nonceLen+len(plain)+tagLen)
	rand.Read(sealed)
	a, err := r.secrets[r.newest].derive(sealed)
	if err != nil {
		return "", nil, err
	}
	return r.newest, a.Seal(sealed, sealed[derivedBy:], plain, bound), nil
}

// Open decrypts with the key that is named.
func (r *Ring) Open(_ context.Context, key string, sealed, bound []byte) ([]byte, error) {
	secret, ok := r.secrets[key]
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrNoKey, key)
	}
	if len(sealed) < nonceLen {
		return nil, ErrForged
	}
	a, err := secret.derive(sealed)
	if err != nil {
		return nil, err
	}
	nonce, text := sealed[derivedBy:nonceLen], sealed[nonceLen:]
	plain, err := a.Open(text[:0], nonce, text, bound)
	if err != nil {
		return nil, ErrForged
	}
	return plain, nil
}

const (
	nonceLen  = 24
	derivedBy = 12 // so much of the nonce makes the key, and the rest is the nonce under it
	tagLen    = 16
)

// secret derives keys: by CMAC in counter mode (NIST SP 800-108), of which each makes one block of AES.
type secret struct {
	block  cipher.Block
	subkey [aes.BlockSize]byte // of CMAC, for whole blocks
}

func newSecret(key []byte) (secret, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return secret{}, err
	}
	s := secret{block: block}
	block.Encrypt(s.subkey[:], s.subkey[:])
	carry := byte(0)
	for i, b := range slices.Backward(s.subkey[:]) {
		s.subkey[i], carry = b<<1|carry, b>>7
	}
	s.subkey[aes.BlockSize-1] ^= carry * 0x87
	return s, nil
}

// derive makes the cipher for a nonce.
func (s secret) derive(nonce []byte) (cipher.AEAD, error) {
	var key [secretLen]byte
	for i := range 2 {
		part := key[i*aes.BlockSize:][:aes.BlockSize]
		part[1], part[2] = byte(i+1), 'X'
		copy(part[4:], nonce[:derivedBy])
		subtle.XORBytes(part, part, s.subkey[:])
		s.block.Encrypt(part, part)
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// MAC is an HMAC-SHA-256 with the oldest key.
func (r *Ring) MAC(_ context.Context, value []byte) ([]byte, error) {
	h := hmac.New(sha256.New, r.compare)
	h.Write(value)
	return h.Sum(nil), nil
}

// String names the keys, and never shows a secret.
func (r *Ring) String() string {
	return fmt.Sprintf("a ring of %d keys, newest %q", len(r.secrets), r.newest)
}

// GoString is String.
func (r *Ring) GoString() string { return r.String() }

// String names the key without its secret.
func (k Key) String() string { return fmt.Sprintf("the key %q", k.ID) }

// GoString is String.
func (k Key) GoString() string { return k.String() }
