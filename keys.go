package stint

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/stint-go/stint/seal"
)

// KeyConflictError says that an idempotency key was used before for another kind or
// other arguments. Nothing was stored.
type KeyConflictError struct {
	Key string
	ID  ID // of the job that has the key; 0 when it is one of the same batch
}

// Error names the key and the job that has it.
func (e *KeyConflictError) Error() string {
	if e.ID == 0 {
		return fmt.Sprintf("idempotency key %q: two jobs of one batch have it, and differ in kind or arguments", e.Key)
	}
	return fmt.Sprintf("idempotency key %q: job %d has it, with another kind or other arguments", e.Key, e.ID)
}

// Is makes every KeyConflictError match [ErrKeyConflict].
func (e *KeyConflictError) Is(target error) bool { return target == ErrKeyConflict }

// Fingerprint returns a hash of what an idempotency key stands for: the job's kind
// and arguments. It is the same for the same JSON value, however that is written
// (spaces, the order of names, escapes in strings); but a number that is written in
// another way, 1.0 for 1, may count as another.
//
// It is for stores whose database cannot compare JSON.
func (j NewJob) Fingerprint() [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte(j.Kind))
	h.Write([]byte{'\n'}) // in no name
	h.Write(canonical(j.Args))
	return [sha256.Size]byte(h.Sum(nil))
}

// canonical returns the same text for the same JSON value.
func canonical(raw json.RawMessage) []byte {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) == nil {
		if seal.Is(raw) {
			v = seal.Comparable(v)
		}
		if text, err := json.Marshal(v); err == nil {
			return text
		}
	}
	return raw // it was not checked
}
