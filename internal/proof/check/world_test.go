package check

import (
	"slices"
	"time"
)

// world makes both accounts of a test at once, as they would be if nothing
// went wrong. Tests then spoil one of them.
type world struct {
	h   History
	f   Facts
	opt Options
	at  Instant
	pos int64
	key map[string]int64 // the jobs by key
}

var midnight = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// newWorld has four processes, each with an engine that bears its number; the last
// one has left.
func newWorld() *world {
	w := &world{key: map[string]int64{}, at: Instant(time.Hour)}
	for _, name := range []string{"one", "two", "three", "four"} {
		w.h.Processes = append(w.h.Processes, Process{Name: name, Wall: midnight})
	}
	w.f.Roster, w.opt.Clean = []int64{1, 2, 3}, []int64{4}
	w.f.Buried = map[int64]time.Time{}
	return w
}

func (w *world) tick() Instant {
	w.at = w.at.Add(10 * time.Second)
	return w.at
}

func (w *world) wall(at Instant) time.Time { return midnight.Add(time.Duration(at)) }

// job enqueues one; ready or waiting.
func (w *world) job(key string, fate Fate, state string) *life {
	w.pos++
	id := w.pos
	w.key[key] = id
	e := Enqueue{Key: key, At: w.tick(), Fate: fate, Batch: int32(id)}
	if fate == Committed {
		e.Job = id
	}
	w.h.Enqueues = append(w.h.Enqueues, e)
	w.f.Jobs = append(w.f.Jobs, Job{ID: id, State: state, Key: key, ChargedMax: 2, LossesMax: 3})
	l := &life{w: w, id: id, attempt: 1}
	if state == StateScheduled {
		l.waits(state)
	} else {
		l.ready(id)
	}
	return l
}

// again recovers a job, as one that has a key.
func (w *world) again(old, key string) *Job {
	id, named := w.key[old], w.key[key]
	w.job(key, Committed, StateAvailable).does(1, OK, OutcomeCompleted, true)
	w.key[key] = named
	w.h.Enqueues = w.h.Enqueues[:len(w.h.Enqueues)-1]
	j := &w.f.Jobs[len(w.f.Jobs)-1]
	j.Recovers = id
	return j
}

// made is a job that a schedule made so many hours after midnight.
func (w *world) made(hour int) {
	w.job("made", Committed, StateAvailable).does(1, OK, OutcomeCompleted, true)
	w.h.Enqueues = w.h.Enqueues[:len(w.h.Enqueues)-1]
	j := &w.f.Jobs[len(w.f.Jobs)-1]
	j.Schedule, j.Occurrence = "hourly", midnight.Add(time.Duration(hour)*time.Hour)
}

// life leads one job through its places.
type life struct {
	w       *world
	id      int64
	pos     int64
	attempt int
}

func (l *life) show(state string, final bool) {
	i := slices.IndexFunc(l.w.f.Jobs, func(j Job) bool { return j.ID == l.id })
	l.w.f.Jobs[i].State, l.w.f.Jobs[i].Final = state, final
}

func (l *life) ready(pos int64) *life {
	l.w.f.Waiting = slices.DeleteFunc(l.w.f.Waiting, func(w Waiting) bool { return w.Job == l.id })
	l.w.f.Entries = append(l.w.f.Entries, Entry{Pos: pos, Job: l.id, Lane: 7, Attempt: l.attempt})
	l.pos = pos
	l.show(StateAvailable, false)
	return l
}

// again appends the next entry.
func (l *life) again() *life {
	l.w.pos++
	return l.ready(l.w.pos)
}

func (l *life) waits(state string) *life {
	l.w.f.Waiting = append(l.w.f.Waiting, Waiting{Job: l.id, Attempt: l.attempt})
	l.show(state, false)
	return l
}

// claimed takes the entry for an engine.
func (l *life) claimed(engine int64) *life {
	i := slices.IndexFunc(l.w.f.Entries, func(e Entry) bool { return e.Pos == l.pos })
	l.w.f.Entries[i].Behind = true
	l.w.f.Claims = append(l.w.f.Claims, Claim{Lane: 7, N: l.pos, Nonce: 1000 + l.pos, Engine: engine, Positions: []int64{l.pos}})
	l.show(StateRunning, false)
	return l
}

// runs logs a run that lasts ten seconds, or does not end.
func (l *life) runs(engine int64, how How) *life {
	r := Run{Job: l.id, Pos: l.pos, Engine: engine, Attempt: l.attempt, Slot: 1, Process: int32(engine - 1), Start: l.w.tick(), How: how}
	if how != Open {
		r.End = l.w.tick()
	}
	l.w.h.Runs = append(l.w.h.Runs, r)
	return l
}

// ends records an execution for an engine; 0 when none took the entry.
func (l *life) ends(engine int64, outcome string, final bool) *life {
	x := Execution{
		Pos: l.pos, Job: l.id, Attempt: l.attempt, Outcome: outcome, Final: final,
		Charged: outcome == OutcomeFailed || outcome == OutcomeLost,
		Engine:  engine, Finished: l.w.wall(l.w.tick()),
	}
	if engine != 0 {
		x.Nonce = 1000 + l.pos
	}
	l.w.f.Executions = append(l.w.f.Executions, x)
	if x.Charged {
		l.attempt++
	}
	if final {
		l.show(stateAfter(outcome), true)
	}
	return l
}

// does claims, runs and records.
func (l *life) does(engine int64, how How, outcome string, final bool) *life {
	return l.claimed(engine).runs(engine, how).ends(engine, outcome, final)
}

// bury takes an engine out, after something happened to its process.
func (w *world) bury(engine int64, does Does, from Instant) *Disturbance {
	w.f.Roster = slices.DeleteFunc(w.f.Roster, func(t int64) bool { return t == engine })
	w.f.Buried[engine] = w.wall(w.tick())
	w.opt.Disturbances = append(w.opt.Disturbances, Disturbance{Does: does, Process: w.h.Processes[engine-1].Name, From: from})
	return &w.opt.Disturbances[len(w.opt.Disturbances)-1]
}

// The parts of the world that tests spoil.

func (w *world) row(key string) *Job {
	return find(w.f.Jobs, func(j *Job) bool { return j.ID == w.key[key] })
}

func (w *world) entry(key string) *Entry {
	return find(w.f.Entries, func(e *Entry) bool { return e.Job == w.key[key] })
}

func (w *world) execution(key string) *Execution {
	return find(w.f.Executions, func(x *Execution) bool { return x.Job == w.key[key] })
}

func (w *world) run(key string) *Run {
	return find(w.h.Runs, func(r *Run) bool { return r.Job == w.key[key] })
}

// find returns the first that fits; the tests name only what is there.
func find[T any](all []T, fits func(*T) bool) *T {
	return &all[slices.IndexFunc(all, func(v T) bool { return fits(&v) })]
}

// forget removes a job from the facts.
func (w *world) forget(key string) {
	id := w.key[key]
	w.f.Jobs = slices.DeleteFunc(w.f.Jobs, func(j Job) bool { return j.ID == id })
	w.f.Entries = slices.DeleteFunc(w.f.Entries, func(e Entry) bool { return e.Job == id })
	w.f.Executions = slices.DeleteFunc(w.f.Executions, func(x Execution) bool { return x.Job == id })
	w.f.Waiting = slices.DeleteFunc(w.f.Waiting, func(x Waiting) bool { return x.Job == id })
}

// busyWorld has a job for everything that may rightly happen.
func busyWorld() *world {
	w := newWorld()
	w.job("plain", Committed, StateAvailable).does(1, OK, OutcomeCompleted, true)
	w.job("retried", Committed, StateAvailable).does(1, Error, OutcomeFailed, false).again().does(2, OK, OutcomeCompleted, true)
	w.job("snoozed", Committed, StateAvailable).does(1, Snooze, OutcomeSnoozed, false).again().does(1, OK, OutcomeCompleted, true)
	w.job("stopped", Committed, StateAvailable).does(4, Cancelled, OutcomeReturned, false).again().does(2, OK, OutcomeCompleted, true)
	w.job("handed back", Committed, StateAvailable).claimed(1).ends(1, OutcomeReturned, false).again().does(2, OK, OutcomeCompleted, true)
	w.job("hopeless", Committed, StateAvailable).does(1, Panic, OutcomeFailed, false).again().does(1, Error, OutcomeFailed, true)
	w.job("late", Committed, StateAvailable).claimed(1).ends(1, OutcomeExpired, true)
	w.job("unwanted", Committed, StateAvailable).ends(0, OutcomeCancelled, true)
	w.job("maybe there", Unknown, StateAvailable).does(1, OK, OutcomeCompleted, true)
	w.job("there with it", Unknown, StateAvailable).does(1, OK, OutcomeCompleted, true)
	w.h.Enqueues[len(w.h.Enqueues)-1].Batch = w.h.Enqueues[len(w.h.Enqueues)-2].Batch
	w.h.Enqueues = append(w.h.Enqueues, Enqueue{Key: "maybe gone", Batch: 901}, Enqueue{Key: "gone with it", Batch: 901}, Enqueue{Key: "taken back", Fate: RolledBack})

	// Deleted ones: one for certain, and two of which the answer was lost.
	for _, key := range []string{"deleted", "deleted perhaps"} {
		w.job(key, Committed, StateAvailable).does(1, OK, OutcomeCompleted, true)
		w.forget(key)
	}
	w.opt.Deleted = append(w.opt.Deleted, Deletion{Job: w.key["deleted"], At: w.tick()}, Deletion{Job: w.key["deleted perhaps"]}, Deletion{Job: w.key["plain"]})

	// A killed process, one that had done its work but could not say so.
	crashed := w.job("crashed", Committed, StateAvailable).claimed(2).runs(2, Open)
	unsaid := w.job("unsaid", Committed, StateAvailable).claimed(2).runs(2, OK)
	w.bury(2, Kills, w.tick())
	crashed.ends(2, OutcomeLost, false).again().does(1, OK, OutcomeCompleted, true)
	unsaid.ends(2, OutcomeReturned, false).again().does(1, OK, OutcomeCompleted, true)

	// A frozen one, whose handler goes on for a second after the thaw.
	frozen := w.job("frozen", Committed, StateAvailable).claimed(3).runs(3, Cancelled)
	d := w.bury(3, Freezes, w.at)
	frozen.ends(3, OutcomeLost, false).again().does(1, OK, OutcomeCompleted, true)
	w.job("beside", Committed, StateAvailable).does(1, OK, OutcomeCompleted, true)
	d.To = w.at
	w.run("frozen").End = w.at.Add(time.Second)

	w.opt.Disturbances = append(w.opt.Disturbances, Disturbance{Does: Stops, Process: "four", From: w.run("stopped").Start})
	return w
}

// limit has jobs wait for a limit.
func (w *world) limit(atOnce int, keys ...string) {
	for _, key := range keys {
		w.row(key).AtOnce = map[string]int{"limit": atOnce}
	}
}

// unique has jobs want the same unique key.
func (w *world) unique(keys ...string) {
	for _, key := range keys {
		w.row(key).Unique = "only one"
	}
}

// stop is when the process of the run that was stopped was told to.
func (w *world) stop() *Instant {
	return &find(w.opt.Disturbances, func(d *Disturbance) bool { return d.Does == Stops }).From
}

// idleWorld has, in addition, jobs that have not ended.
func idleWorld() *world {
	w := busyWorld()
	w.job("scheduled", Committed, StateScheduled)
	w.job("retrying", Committed, StateAvailable).does(1, Error, OutcomeFailed, false).waits(StateRetrying)
	w.job("ready", Committed, StateAvailable)
	w.job("running", Committed, StateAvailable).claimed(1).runs(1, Open)
	w.job("ending", Committed, StateAvailable).claimed(1).runs(1, OK)
	w.job("marked", Committed, StateScheduled).show(StateCancelled, true)
	return w
}
