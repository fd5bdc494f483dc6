package storetest_test

import (
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
)

// uniqueRow is who took a unique key last, whether that is committed or not.
func (d *database) uniqueRow(key string) *row {
	for _, r := range slices.Backward(d.rows) {
		if key != "" && r.key == key {
			return r
		}
	}
	return nil
}

func uniqueKey(j stint.NewJob) string {
	if j.Unique == "" {
		return ""
	}
	key, _, _ := j.UniqueKey()
	return key
}

// stateIn is the state of a job as a transaction sees it; empty for none.
func (d *database) stateIn(in *modelTx, id stint.ID) stint.State {
	job := d.jobs[id]
	if job == nil {
		return ""
	}
	var rows []*row
	for _, r := range d.rows {
		if r.id == id && r.job == nil && (r.tx == nil || r.tx == in) {
			rows = append(rows, r)
		}
	}
	state := d.show(job, rows).State
	if _, marked := d.cancelled[id]; marked && state != stint.Running && !state.Final() && (!job.isFlow || d.is("frees the unique key of a flow when that is cancelled")) {
		return stint.Cancelled
	}
	return state
}

// holder returns the job that holds the key of a job, with its state; 0 for none.
func (d *database) uniqueHolder(in *modelTx, j stint.NewJob) (stint.ID, stint.State) {
	key, u, err := j.UniqueKey()
	k := d.uniqueRow(key)
	if err != nil || k == nil || d.is("forgets unique keys") {
		return 0, ""
	}
	state := d.stateIn(in, k.holder)
	held := state != "" && !state.Final()
	switch {
	case d.is("frees a unique key when its job is claimed"):
		held = held && state != stint.Running
	case d.is("frees a unique key while its job is blocked"):
		held = held && state != stint.Blocked
	case d.is("holds a unique key when its job has ended"):
		held = true
	}
	switch u.Scope {
	case stint.UntilStarted:
		held = d.heldUntilStarted(in, u, k.holder, state)
	case stint.Within, stint.Slot:
		held = k.due.After(time.Now())
	}
	if !held {
		return 0, ""
	}
	return k.holder, state
}

// begun reports whether an engine has had a job.
func (d *database) begun(id stint.ID) bool {
	for _, x := range d.done {
		if x.Job == id {
			return true
		}
	}
	return false
}

// heldUntilStarted reports whether a job that has not begun holds its key: it is replaced, or begins only
// after the commit.
func (d *database) heldUntilStarted(in *modelTx, u stint.Uniqueness, id stint.ID, state stint.State) bool {
	early := d.is("keeps what may begin before the commit")
	switch {
	case d.begun(id) && !d.is("holds a key until-started again when its job is retried"):
		return false
	case state == stint.Scheduled || state == stint.Retrying:
		return u.OnConflict != stint.Keep || d.jobs[id].due.After(time.Now()) || early
	}
	return state == stint.Available && (in == nil || early)
}

// takeUnique makes room for a unique job, or says whose duplicate it is. The due time is
// that of what it replaces, if it is to have that; and until is what to store with the key.
func (d *database) takeUnique(in *modelTx, j stint.NewJob) (r stint.Receipt, due, until time.Time) {
	id, state := d.uniqueHolder(in, j)
	key, u, _ := j.UniqueKey()
	until = time.UnixMicro(u.Until(time.Now().UnixMicro()))
	if id != 0 && u.OnConflict == stint.Debounce && !d.is("puts jobs off for ever") {
		if first := d.uniqueRow(key).due; first.Before(until) {
			until = first
		}
	}
	r, due = d.makeRoom(in, j, u, id, state)
	return r, due, until
}

func (d *database) makeRoom(in *modelTx, j stint.NewJob, u stint.Uniqueness, id stint.ID, state stint.State) (r stint.Receipt, due time.Time) {
	if id == 0 {
		return r, due
	}
	begun := d.begun(id)
	waits := state == stint.Scheduled || state == stint.Available && in == nil
	switch {
	case u.OnConflict == stint.CancelOld:
		d.cancel(id, "")
		return stint.Receipt{Cancelled: id}, due
	case u.OnConflict != stint.Keep && (waits && !begun || d.is("replaces what has begun")):
		if u.OnConflict == stint.ReplaceKeepTime {
			due = d.jobs[id].due
		}
		if !j.StartBy.IsZero() && due.After(j.StartBy) {
			return r, due
		}
		d.cancel(id, "")
		return stint.Receipt{Replaced: id}, due
	}
	return stint.Receipt{ID: id, Duplicate: true, State: state}, due
}

func (d *database) keepUnique(in *modelTx, j stint.NewJob, id stint.ID, until time.Time) {
	d.rows = append(d.rows, &row{tx: in, key: uniqueKey(j), holder: id, due: until})
}

// onceInBatch refuses jobs of a batch that are to replace each other.
func (d *database) onceInBatch(jobs []stint.NewJob) error {
	seen := map[string]bool{}
	for _, j := range jobs {
		key := uniqueKey(j)
		if key == "" || d.keyRow(j.IdempotencyKey) != nil {
			continue
		}
		if _, u, _ := j.UniqueKey(); seen[key] && u.OnConflict != stint.Keep {
			return valid.Invalid("unique", "two of the batch")
		}
		seen[key] = true
	}
	return nil
}
