package storetest_test

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/stint-go/stint"
)

// keyRow is who has a key, whether that is committed or not.
func (d *database) keyRow(key string) *row {
	i := slices.IndexFunc(d.rows, func(r *row) bool { return key != "" && r.key == key })
	if i < 0 || d.is("forgets a key when its job ends") && d.ended(d.rows[i].holder) {
		return nil
	}
	return d.rows[i]
}

// ended tells whether a job has its final outcome.
func (d *database) ended(id stint.ID) bool {
	for _, x := range d.done {
		if x.Job == id && x.Final {
			return true
		}
	}
	return false
}

// awaitKeys waits until no transaction but this one has taken one of the keys
// without having ended.
func (d *database) awaitKeys(ctx context.Context, in *modelTx, jobs []stint.NewJob) error {
	taken := func(j stint.NewJob) bool {
		for _, k := range []*row{d.keyRow(j.IdempotencyKey), d.uniqueRow(uniqueKey(j))} {
			if k != nil && k.tx != nil && k.tx != in && !k.tx.ended {
				return true
			}
		}
		return false
	}
	for slices.ContainsFunc(jobs, taken) && !d.is("believes keys that are not committed") {
		d.mu.Unlock()
		time.Sleep(time.Millisecond)
		d.mu.Lock()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// keyConflict is what is wrong with the keys of a batch.
func (d *database) keyConflict(jobs []stint.NewJob) error {
	if d.is("takes any arguments for a key") {
		return nil
	}
	batch := map[string][32]byte{}
	for _, j := range jobs {
		if j.IdempotencyKey == "" {
			continue
		}
		asked := j.Fingerprint()
		if d.is("compares the text of arguments") {
			asked = [32]byte{}
			copy(asked[:], j.Args)
		}
		if k := d.keyRow(j.IdempotencyKey); k != nil && k.asked != asked && !d.is("forgets keys") {
			return &stint.KeyConflictError{Key: j.IdempotencyKey, ID: k.holder}
		}
		if first, twice := batch[j.IdempotencyKey]; twice && first != asked {
			return &stint.KeyConflictError{Key: j.IdempotencyKey}
		}
		batch[j.IdempotencyKey] = asked
	}
	return nil
}

func (d *database) takeKey(in *modelTx, j *stint.NewJob, id stint.ID) {
	if j.IdempotencyKey == "" {
		return
	}
	asked := j.Fingerprint()
	if d.is("compares the text of arguments") {
		asked = [32]byte{}
		copy(asked[:], j.Args)
	}
	d.rows = append(d.rows, &row{tx: in, key: j.IdempotencyKey, asked: asked, holder: id})
}

// correlation is the correlation id of a job's row.
func (d *database) correlation(job *row) string {
	if d.is("forgets correlation ids") {
		return job.id.String()
	}
	return cmp.Or(job.job.Correlation, job.id.String())
}
