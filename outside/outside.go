// Package outside keeps large values outside of the database: in an object store, or in files that all programs reach.
// In the database stands an envelope with the size of the value and its SHA-256, by which it is found and verified:
//
//	{"$outside": {"bytes": 812345, "sha256": "9f86d081…"}}
//
// [stint.Client.Outside] says what is stored so.
package outside

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// Blobs keeps values by their keys. It may be used by many goroutines at once. [Dir] is one; for a service such as S3 it
// is some lines around its client.
type Blobs interface {
	// Put stores a value, durably when it returns nil. A key is 64 hexadecimal digits, and is always put with the same
	// value. One that is there already is put again, perhaps at the same time: that must count as new to
	// whatever deletes values by their age.
	Put(ctx context.Context, key string, value []byte) error

	// Get returns the value of a key. The error matches [ErrNotFound] only if there is certainly none: a job that needs
	// it fails then, and after any other error it waits.
	Get(ctx context.Context, key string) ([]byte, error)
}

// MaxBytes is the size of the largest value that is kept outside.
const MaxBytes = 64 << 20

var (
	// ErrNotFound says that a value is not there, or not any more.
	ErrNotFound = errors.New("the value is not there")

	// ErrChanged says that a value is not what was put.
	ErrChanged = errors.New("the value is not what was put")

	// ErrNoBlobs says that a value stands outside, and that there is nothing to get it from.
	ErrNoBlobs = errors.New("it is stored outside of the database, and the client has nothing to get it from (stint.Client.Outside)")
)

// mark is the only member of an envelope, and mostLong longer than one is, however it is written.
const (
	mark     = `"$outside"`
	mostLong = 256
)

type envelope struct {
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Is reports whether a JSON value is an envelope. It costs next to nothing for others.
func Is(value json.RawMessage) bool {
	_, ok := read(value)
	return ok
}

func read(value json.RawMessage) (envelope, bool) {
	if len(value) > mostLong || !bytes.Contains(value, []byte(mark)) {
		return envelope{}, false
	}
	return decode(value)
}

func decode(value json.RawMessage) (e envelope, ok bool) {
	var all map[string]json.RawMessage
	if json.Unmarshal(value, &all) != nil || len(all) != 1 {
		return e, false
	}
	d := json.NewDecoder(bytes.NewReader(all["$outside"]))
	d.DisallowUnknownFields()
	if d.Decode(&e) != nil || e.Bytes <= 0 || len(e.SHA256) != hex.EncodedLen(sha256.Size) {
		return e, false
	}
	for _, c := range e.SHA256 {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return e, false // no key, perhaps the path of a file
		}
	}
	return e, true
}

// Value puts a value, and returns its envelope. It is the same for the same bytes.
func Value(ctx context.Context, blobs Blobs, value json.RawMessage) (json.RawMessage, error) {
	sum := sha256.Sum256(value)
	e := envelope{len(value), hex.EncodeToString(sum[:])}
	if err := blobs.Put(ctx, e.SHA256, value); err != nil {
		return nil, fmt.Errorf("put %d bytes outside: %w", e.Bytes, err)
	}
	return fmt.Appendf(nil, `{%s:{"bytes":%d,"sha256":%q}}`, mark, e.Bytes, e.SHA256), nil
}

// Open returns the value of an envelope, and any other value as it is. Without blobs the error matches [ErrNoBlobs].
func Open(ctx context.Context, blobs Blobs, value json.RawMessage) (json.RawMessage, error) {
	e, ok := read(value)
	switch {
	case !ok:
		return value, nil
	case blobs == nil:
		return nil, ErrNoBlobs
	}
	got, err := blobs.Get(ctx, e.SHA256)
	if err != nil {
		return nil, fmt.Errorf("get the value %.12s… from outside: %w", e.SHA256, err)
	}
	if sum := sha256.Sum256(got); len(got) != e.Bytes || hex.EncodeToString(sum[:]) != e.SHA256 {
		return nil, fmt.Errorf("get the value %.12s… from outside: %w", e.SHA256, ErrChanged)
	}
	return got, nil
}
