package sim

import (
	"context"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// Retry implements [store.Operator] with a bug.
func (s *planted) Retry(ctx context.Context, ids []stint.ID, again stint.RerunOptions) (map[stint.ID]stint.RerunResult, error) {
	said := again
	if s.bug == bugEarly {
		again.RunAt, again.Delay = time.Time{}, 0
	}
	if s.bug == bugCharges {
		for _, id := range ids {
			s.exec(`update stint_waiting set attempt = attempt + 1 where job = ?`, int64(id))
		}
	}
	answers, err := s.ground.Retry(ctx, ids, again)
	for id, r := range answers {
		switch {
		case s.bug == bugEarly && r.Answer == stint.RerunReady && (said.Delay > 0 || said.RunAt.After(time.Now())):
			answers[id] = stint.RerunResult{Answer: stint.RerunScheduled, ID: id}
		case s.bug == bugOrphans && r.Answer == stint.RerunRecovered:
			s.exec(`update stint_entries set recovered = null where pos = ?`, int64(r.ID))
		}
	}
	return answers, err
}

// Delete implements [store.Operator] with a bug.
func (s *planted) Delete(ctx context.Context, ids []stint.ID) (map[stint.ID]store.DeleteStatus, error) {
	if s.bug == bugLingers {
		answers := map[stint.ID]store.DeleteStatus{}
		for _, id := range ids {
			answers[id] = store.DeleteNotFound
			if job, err := s.ground.Job(ctx, id); err == nil && hasEnded(job) {
				answers[id] = store.DeletedNow
			}
		}
		return answers, nil
	}
	answers, err := s.ground.Delete(ctx, ids)
	for id, answer := range answers {
		switch {
		case s.bug == bugErases && answer == store.DeleteNotFinal:
			if job, err := s.ground.Job(ctx, id); err == nil && waits(job.State) {
				s.erase(id)
				answers[id] = store.DeletedNow
			}
		case s.bug == bugRelapse && answer == store.DeletedNow:
			s.exec(`delete from stint_deletions`)
		}
	}
	return answers, err
}

// Retain implements [store.Retainer] with a bug.
func (s *planted) Retain(ctx context.Context, r store.RetainStep) (store.Retained, error) {
	if s.bug == bugHurries {
		r.Keep, r.Age = store.Retention{KeepFor: store.KeepFor{All: time.Nanosecond}}, 0
	}
	done, err := s.ground.Retain(ctx, r)
	if s.bug == bugRelapse {
		s.exec(`delete from stint_deletions`)
	}
	if s.bug == bugReaps && err == nil && r.Part == store.RetainJobs {
		var waits stint.ID
		if s.db.QueryRow(`select job from stint_waiting order by job limit 1`).Scan(&waits) == nil {
			s.erase(waits)
			done.Deleted++
		}
	}
	return done, err
}

// erase deletes a job that waits as if it had ended.
func (s *planted) erase(id stint.ID) {
	for _, text := range []string{
		`update stint_meta set deleted = deleted + (select count(*) from stint_entries where (job = ?1 or pos = ?1) and lane >= 0)`,
		`delete from stint_waiting where job = ?1`,
		`delete from stint_executions where job = ?1 or pos = ?1`,
		`delete from stint_entries where job = ?1 or pos = ?1`,
	} {
		s.exec(text, int64(id))
	}
}

// Pause implements [store.Pauser] with a bug.
func (s *planted) Pause(ctx context.Context, queue, by, why string) (bool, error) {
	if s.bug == bugOpen {
		return true, nil
	}
	return s.ground.Pause(ctx, queue, by, why)
}

// Resume implements [store.Pauser] with a bug.
func (s *planted) Resume(ctx context.Context, queue string) (bool, error) {
	if s.bug == bugShut {
		return true, nil
	}
	return s.ground.Resume(ctx, queue)
}

// Paused implements [store.Pauser] with a bug.
func (s *planted) Paused(ctx context.Context) ([]string, error) {
	if s.bug == bugHushed {
		return nil, nil
	}
	return s.ground.Paused(ctx)
}

// Look implements [store.Claimer] with a bug.
func (s *planted) Look(ctx context.Context, known store.LaneHints) ([]store.LaneHead, error) {
	sights, err := s.ground.Look(ctx, known)
	for i := range sights {
		sights[i].Paused = sights[i].Paused && s.bug != bugHushed && s.bug != bugHeedless
	}
	return sights, err
}

// EnqueueClaimed implements [store.ClaimedEnqueuer] with a bug.
func (s *planted) EnqueueClaimed(ctx context.Context, job stint.NewJob, req store.ClaimRequest) (store.Claim, error) {
	if s.bug != bugEager {
		return s.ground.EnqueueClaimed(ctx, job, req)
	}
	ids, err := s.ground.Enqueue(ctx, stint.Tx{}, []stint.NewJob{job})
	if err != nil {
		return store.Claim{}, err
	}
	c := store.Claim{ClaimRef: store.ClaimRef{Lane: store.NowLane, N: req.Serial, Nonce: req.Nonce}, Serial: req.Serial}
	c.Positions = []store.Position{store.Position(ids[0].ID)}
	c.Entries, err = s.ground.Fetch(ctx, c.Positions)
	return c, err
}

// unannounced takes out of a beat what callers brought along.
func (s *planted) unannounced(b store.Heartbeat) store.Heartbeat {
	var running []store.Position
	for _, pos := range b.Running {
		own := 0
		err := s.db.QueryRow(`select count(*) from stint_entries where pos = ? and lane = ?`, int64(pos), int64(store.NowLane)).Scan(&own)
		if err == nil && own == 0 {
			running = append(running, pos)
		}
	}
	b.Running = running
	return b
}

// Undecided implements [store.RetryDecider] with a bug.
func (s *planted) Undecided(ctx context.Context, funcs []string, after stint.ID, limit int) ([]store.PendingRetry, error) {
	if s.bug == bugPuts {
		return nil, nil
	}
	return s.ground.Undecided(ctx, funcs, after, limit)
}

// Decide implements [store.RetryDecider] with a bug.
func (s *planted) Decide(ctx context.Context, engine store.EngineID, done []store.Completion) ([]stint.ID, error) {
	ids, err := s.ground.Decide(ctx, engine, done)
	if s.bug == bugRules && err == nil {
		for i := range done {
			ids = append(ids, done[i].Job)
		}
	}
	return ids, err
}

// hasty has a failure that waits for a decision run again at once.
func hasty(done []store.Completion) []store.Completion {
	all := make([]store.Completion, len(done))
	for i, x := range done {
		if x.Next != nil && x.Next.Func != "" {
			next := *x.Next
			next.Func = ""
			x.Next = &next
		}
		all[i] = x
	}
	return all
}

// forgets records nothing of what callers brought along but its success.
func forgets(claims []store.ClaimRef, done []store.Completion) []store.Completion {
	var all []store.Completion
	for _, x := range done {
		own := false
		for _, ref := range claims {
			own = own || ref.Lane == store.NowLane && ref.Nonce == x.Nonce
		}
		if own && !x.Final {
			continue
		}
		all = append(all, x)
	}
	return all
}
