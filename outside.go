package stint

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/outside"
	"github.com/stint-go/stint/seal"
)

// blobs is where a client keeps large values.
type blobs struct {
	outside.Blobs
	from int // bytes
}

// Outside returns a client that keeps arguments, results and what steps record outside of the database if these have so
// many bytes of JSON or more, from 1 KiB to 1 MiB; 0 is 64 KiB. In the database stands their size and SHA-256. An engine
// takes the blobs of its client for its handlers, which see everything as it was, as do [Client.Job], [Client.Await] and
// the like of such a client:
//
//	client := stint.NewClient(store).Outside(outside.Dir("/mnt/stint"), 64<<10)
//	e, err := engine.New(store, mux, engine.Config{Client: client})
//
// A value may have up to [outside.MaxBytes] then. It is put before its job is stored, and is never deleted: whoever keeps
// the values deletes them by their age. What is [Sealed] is sealed before it is put.
//
// Arguments stay in the database, up to 1 MiB, if the job is unique by a part of them ([By]), or if it is sealed and has an
// idempotency key or a unique key. Arguments of schedules stay there, too.
//
// A job whose arguments cannot be got waits, uncharged, until some engine can get them. If they are certainly not there, or
// are not what was put, it fails without a retry.
func (c *Client) Outside(keep outside.Blobs, from int) *Client {
	from = min(max(cmp.Or(from, 64<<10), 1<<10), maxArgs)
	return c.but(func(d *Client) { d.blobs = &blobs{keep, from}; d.chain() })
}

// maxArgs is the default of [Limits.Args].
const maxArgs = 1 << 20

// checkSize checks arguments as they are to be stored.
func (c *Client) checkSize(job *NewJob) error {
	if most := cmp.Or(c.limits.Args, maxArgs); len(job.Args) > most {
		return valid.Invalid("args", "%d bytes are more than the limit of %d, and cannot be kept outside", len(job.Args), most)
	}
	return nil
}

// putOutside keeps large arguments of a checked job outside.
func (c *Client) putOutside(ctx context.Context, job *NewJob) error {
	if len(job.Args) < c.blobs.from || !job.compareOutside() {
		return c.checkSize(job)
	}
	args := job.Args
	if !seal.Is(args) {
		args = canonical(args) // equal ones are told by their hash
	}
	e, err := outside.Value(ctx, c.blobs, args)
	if err != nil {
		return err
	}
	job.Args = e
	return nil
}

// compareOutside gives a job that is large the keys of its limits by arguments, and reports whether nothing else looks into
// the arguments.
func (j *NewJob) compareOutside() bool {
	if j.Unique != "" && j.Unique != notUnique {
		if u, err := ParseUniqueness(j.Unique); err != nil || len(u.By) > 0 || j.Sealed != nil {
			return false
		}
	}
	if j.IdempotencyKey != "" && j.Sealed != nil {
		return false
	}
	if !slices.ContainsFunc(j.Limits, func(text string) bool { return strings.Contains(text, by) }) {
		return true
	}
	keys, err := j.LimitKeys()
	if err != nil || strings.Contains(keys, by) { // a key that would be read as a pointer
		return false
	}
	j.Limits = strings.Split(keys, "\n")
	return true
}

// fetched gets a value that is outside, and returns any other as it is.
func (b *blobs) fetched(ctx context.Context, value json.RawMessage) (json.RawMessage, error) {
	if !outside.Is(value) {
		return value, nil
	}
	if b == nil {
		return outside.Open(ctx, nil, value)
	}
	return outside.Open(ctx, b.Blobs, value)
}

// put keeps a large value outside, and returns any other as it is.
func (b *blobs) put(ctx context.Context, value json.RawMessage) (json.RawMessage, error) {
	if b == nil || len(value) < b.from || len(value) > outside.MaxBytes || !json.Valid(value) {
		return value, nil
	}
	return outside.Value(ctx, b.Blobs, value)
}
