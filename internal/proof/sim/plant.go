package sim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// Bug is a fault to plant between the calls of the processes and the store.
type Bug string

// NoBug is the store as it is.
const NoBug Bug = ""

// Bugs are the faults that a simulation must find.
var Bugs = slices.Concat(jobBugs, scheduleBugs, retentionBugs, flowBugs)

var jobBugs = []Bug{
	bugFence, bugGhost, bugHeld, bugJudge, bugFlush, bugBeat, bugEnqueue, bugPromote, bugLow, bugMurder, bugForgiven,
	bugUnmarked, bugTooSoon, bugSilent, bugHandsOut, bugRetries, bugHollow, bugRepeats, bugSplit, bugCertain,
	bugUnswept, bugSweeps, bugEarly, bugCharges, bugOrphans, bugErases, bugLingers, bugRelapse, bugOpen, bugShut,
	bugHushed, bugHeedless, bugCrowds, bugEager, bugHides, bugForgets, bugPuts, bugHasty, bugRules,
	bugLends, bugSells, bugPushes, bugTwins,
}

// scheduleBugs are those of schedules, which not every seed has.
var scheduleBugs = []Bug{
	bugAgain, bugMoves, bugUnbound, bugOmits, bugOverlaps, bugRestarts, bugRestless, bugMakesUp, bugStays, bugReturns,
}

// retentionBugs are those of retention, which not every seed has either.
var retentionBugs = []Bug{
	bugHurries, bugReaps,
}

// flowBugs are those of flows and steps, which not every seed has either.
var flowBugs = []Bug{
	bugRushes, bugSkips, bugStalls, bugCloses, bugAdds, bugRedoes, bugUnheld, bugLoses, bugDrops, bugTakes, bugMisses, bugSleeps, bugReplies, bugForgetsAnswers,
}

// fits tells whether a seed has what the bug is in.
func (b Bug) fits(seed Seed) bool {
	switch {
	case slices.Contains(scheduleBugs, b):
		return newCalendar(seed) != nil
	case slices.Contains(retentionBugs, b):
		return retentionOf(seed).Shortest() != store.Forever
	case slices.Contains(flowBugs, b):
		return linked(seed)
	}
	return true
}

const (
	bugFence    Bug = "claims for the buried"           // the store lets buried engines claim
	bugGhost    Bug = "leaves the buried in the roster" // a burial leaves the engine in the roster
	bugHeld     Bug = "hides what is held"              // an engine never asks what it holds
	bugJudge    Bug = "buries without successors"       // a burial forgets the successor
	bugFlush    Bug = "records once or never"           // a flush is not repeated
	bugBeat     Bug = "beats in vain"                   // an engine does not learn that it was buried or is cut off
	bugEnqueue  Bug = "enqueues again"                  // a client repeats an enqueue of unknown result
	bugPromote  Bug = "skips what is due"               // a promoter skips what is due
	bugLow      Bug = "promises too much"               // a beat promises too much
	bugMurder   Bug = "buries the living"               // a watch buries living engines
	bugForgiven Bug = "charges nobody"                  // a burial never counts a loss

	bugUnmarked Bug = "drops the marker"          // the marker of a cancellation is dropped
	bugTooSoon  Bug = "is never too late"         // a cancellation that came too late says that it came in time
	bugSilent   Bug = "tells nobody to stop"      // the store tells no engine what to stop
	bugHandsOut Bug = "hands out the cancelled"   // the store hands out a cancelled job like any other
	bugRetries  Bug = "tries the cancelled again" // the store retries a cancelled job

	bugHollow  Bug = "acknowledges and does not complete" // a completion is acknowledged and not made
	bugRepeats Bug = "completes twice"                    // a completion is made twice
	bugSplit   Bug = "commits before it completes"        // what the handler wrote is committed on its own
	bugCertain Bug = "takes the unknown for a failure"    // a completion of unknown result is reported as failed

	bugUnswept Bug = "sweeps nothing"    // a sweep is skipped
	bugSweeps  Bug = "sweeps the living" // a sweep takes from living engines too

	bugEarly   Bug = "runs again too early"       // a job runs again before the time that was named
	bugCharges Bug = "charges for running again"  // running a job again counts as an attempt
	bugOrphans Bug = "forgets what is done again" // a job that does another again does not name it
	bugErases  Bug = "deletes the unfinished"     // a job that has not ended is deleted
	bugLingers Bug = "deletes nothing"            // a deletion is acknowledged and not made
	bugRelapse Bug = "brings the deleted back"    // an engine may bring a deleted job back

	bugOpen     Bug = "pauses nothing"         // a pause is acknowledged and not made
	bugShut     Bug = "resumes nothing"        // a resumption is acknowledged and not made
	bugHushed   Bug = "tells nobody of pauses" // the store tells no engine of paused queues
	bugHeedless Bug = "begins what is paused"  // an engine knows of paused queues and goes on
	bugCrowds   Bug = "crowds the slots"       // an engine uses more slots for a queue than it was given

	bugEager   Bug = "hands out what nobody claimed" // a job is performed at once without a claim
	bugHides   Bug = "announces no guests"           // no beat announces an inline run
	bugForgets Bug = "forgets what guests came to"   // the failure of an inline run is acknowledged and not recorded

	bugPuts  Bug = "decides nothing"       // the store never offers retries to decide
	bugHasty Bug = "waits for no decision" // a failure does not wait for its decision
	bugRules Bug = "decides twice"         // the store accepts every decision

	bugLends  Bug = "lends the permits of others"       // an engine gets a permit that another one holds
	bugSells  Bug = "sells starts twice"                // an engine gets each start of a rate twice
	bugPushes Bug = "lets others pass what comes again" // an engine is not told that a job holds up the others

	bugTwins Bug = "stores two of a kind" // a job is stored whoever has its unique key

	bugAgain    Bug = "fires and stays"               // a firing makes its jobs, and the schedule does not move on
	bugMoves    Bug = "goes on and does not fire"     // a firing moves the schedule on, and makes no jobs
	bugUnbound  Bug = "makes up for everything"       // a firing makes up for more than is wanted
	bugOmits    Bug = "omits the newest"              // a firing leaves out the newest of what it makes up for
	bugOverlaps Bug = "overlaps retries"              // a firing takes a job that waits for its retry for ended
	bugRestarts Bug = "forgets where schedules stand" // a declaration forgets where the schedule stood
	bugRestless Bug = "pauses no schedule"            // the pause of a schedule is acknowledged and not made
	bugMakesUp  Bug = "makes up for pauses"           // a resumption makes up for what came during the pause
	bugStays    Bug = "removes no schedule"           // a removal is acknowledged and not made
	bugReturns  Bug = "brings schedules back"         // a late firing brings a removed schedule back

	bugHurries Bug = "deletes the young"  // retention deletes what is too young
	bugReaps   Bug = "deletes what waits" // retention deletes what waits

	bugRushes Bug = "begins what is blocked"       // a job begins before what it needs has ended
	bugSkips  Bug = "skips what is to run"         // a job is skipped that nothing forbids
	bugStalls Bug = "looks at nobody who waits"    // the end of a job has nobody looked at who waits for it
	bugCloses Bug = "ends flows before their jobs" // a flow ends that has open jobs
	bugAdds   Bug = "adds and calls twice"         // a job is added to a flow, or called, under a name that is there

	bugRedoes         Bug = "records steps again"          // the last record of a step counts
	bugUnheld         Bug = "records steps for the buried" // a step is recorded for an attempt that has ended
	bugLoses          Bug = "keeps no signals"             // a signal is acknowledged and not kept
	bugDrops          Bug = "drops what nobody awaits"     // a signal is lost that comes before its wait
	bugTakes          Bug = "takes signals twice"          // a signal is taken by a second step
	bugMisses         Bug = "finds no signal"              // a wait is over although its signal is there
	bugSleeps         Bug = "wakes nobody"                 // a signal does not wake the job that waits for it
	bugReplies        Bug = "answers for jobs that run"    // a caller goes on before what it called has ended
	bugForgetsAnswers Bug = "forgets answers"              // an answer is acknowledged and not kept
)

// planted is the real store with a bug.
type planted struct {
	*ground
	bug Bug
}

func plant(bug Bug, ground *ground) anyStore {
	if bug == NoBug {
		return ground
	}
	return &planted{ground, bug}
}

// exec changes the database, and tells whether anything changed. That it cannot must not be taken for the store's
// answer: then the bug would not be there at all.
func (s *planted) exec(text string, args ...any) (changed bool) {
	r, err := s.db.Exec(text, args...)
	if errors.Is(err, sqlite3.BUSY) {
		return false
	} else if err != nil {
		panic(fmt.Sprintf("sim: the bug %q cannot be planted: %v", s.bug, err))
	}
	n, _ := r.RowsAffected()
	return n > 0
}

// standSQL puts an engine into the roster.
const standSQL = `insert into stint_engines (token, locked) values (?, 0) on conflict (token) do nothing`

func (s *planted) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	c, err := s.Store.Claim(ctx, req)
	if s.bug == bugFence && errors.Is(err, store.ErrBuried) {
		s.exec(standSQL, int64(req.Engine))
		c, err = s.Store.Claim(ctx, req)
		s.exec(`delete from stint_engines where token = ?`, int64(req.Engine))
	}
	c.Entries = s.welcome(c.Entries)
	return c, err
}

func (s *planted) ClaimLanes(ctx context.Context, req store.ClaimRequest, lanes []store.LaneHead) (all []store.Claim, err error) {
	for room := req.Max; len(all) < len(lanes) && room > 0; req.Serial++ {
		lane := lanes[len(all)]
		req.Lane, req.Settle, req.Max = lane.Lane, lane.Settle, room
		if lane.Most > 0 {
			req.Max = min(room, lane.Most)
		}
		c, err := s.Claim(ctx, req)
		if err != nil {
			return all, err
		}
		all, room = append(all, c), room-len(c.Positions)
	}
	return all, nil
}

func (s *planted) Permits(ctx context.Context, engine store.EngineID, req store.PermitRequest) ([]store.Hold, error) {
	holds, err := s.Store.Permits(ctx, engine, req)
	for i := range holds {
		h := &holds[i]
		switch {
		case s.bug == bugLends && h.Permits == 0 && h.Rule.AtOnce > 0 && !h.Rule.InOrder:
			h.Permits++
		case s.bug == bugSells:
			h.Starts = append(h.Starts, h.Starts...)
		case s.bug == bugPushes && h.Blocked:
			h.Blocked, h.Permits = false, 1
		}
	}
	return holds, err
}

func (s *planted) Bury(ctx context.Context, b store.Burial, judge func(e *store.Entry, begun bool) store.Completion) (int, error) {
	if s.bug == bugMurder {
		b.Unless = 0
	}
	n, err := s.Store.Bury(ctx, b, func(e *store.Entry, begun bool) store.Completion {
		x := judge(e, begun)
		switch s.bug {
		case bugJudge:
			x.Next = nil
		case bugForgiven:
			if x.Outcome == stint.OutcomeLost && x.Next != nil {
				x.Next.Attempt, x.Next.Losses = e.Attempt, e.Losses
			}
		}
		return x
	})
	if s.bug == bugGhost && err == nil {
		s.exec(standSQL, int64(b.Engine))
	}
	return n, err
}

func (s *planted) Engines(ctx context.Context) ([]store.EngineInfo, error) {
	list, err := s.Store.Engines(ctx)
	if s.bug == bugMurder {
		for i := range list {
			list[i].TimeToLive /= 20 // nobody beats that often
		}
	}
	return list, err
}

func (s *planted) Held(ctx context.Context, engine store.EngineID, serial int64, known ...int64) ([]store.Claim, error) {
	if s.bug == bugHeld {
		return nil, nil
	}
	return s.Store.Held(ctx, engine, serial, known...)
}

func (s *planted) Heartbeat(ctx context.Context, engine store.EngineID, b store.Heartbeat) (store.HeartbeatReply, error) {
	switch s.bug {
	case bugLow:
		b.Low++
	case bugHides:
		b = s.unannounced(b)
	}
	return s.Store.Heartbeat(ctx, engine, b)
}

func (s *planted) Promote(ctx context.Context, from time.Time, limit int) (store.Promotion, error) {
	switch s.bug {
	case bugRushes:
		s.exec(`update stint_waiting set why = 'scheduled', due = ?, watch = null, verdict = null, cause = null where job = (`+needingSQL+`)`, time.Now().UnixMicro())
	case bugSkips:
		s.exec(`update stint_waiting set verdict = 1, cause = watch where job = (` + needingSQL + `)`)
	case bugCloses:
		s.exec(`update stint_waiting set watch = 0 where job = (select w.job from stint_waiting w join stint_flows f on f.flow = w.job limit 1)`)
		s.exec(`insert into stint_notes (job, after) select w.job, 0 from stint_waiting w join stint_flows f on f.flow = w.job where w.watch = 0 on conflict do nothing`)
	}
	p, err := s.Store.Promote(ctx, from, limit)
	if s.bug == bugPromote && err == nil && p.Moved == 0 && p.Next > 0 && p.Next < 20*time.Millisecond {
		s.exec(`delete from stint_waiting where job = (select job from stint_waiting order by due limit 1)`)
	}
	return p, err
}

// hides tells whether a process does not see that a call failed.
func (b Bug) hides(o op, err error) bool {
	switch {
	case err == nil || errors.Is(err, errGone):
		return false
	case b == bugFlush:
		return o == opFinish && !errors.Is(err, store.ErrBuried)
	}
	return b == bugBeat && o == opBeat
}

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

func (s *planted) Pause(ctx context.Context, queue, by, why string) (bool, error) {
	if s.bug == bugOpen {
		return true, nil
	}
	return s.ground.Pause(ctx, queue, by, why)
}

func (s *planted) Resume(ctx context.Context, queue string) (bool, error) {
	if s.bug == bugShut {
		return true, nil
	}
	return s.ground.Resume(ctx, queue)
}

func (s *planted) Paused(ctx context.Context) ([]string, error) {
	if s.bug == bugHushed {
		return nil, nil
	}
	return s.ground.Paused(ctx)
}

func (s *planted) Look(ctx context.Context, known store.LaneHints) ([]store.LaneHead, error) {
	sights, err := s.ground.Look(ctx, known)
	s.unpause(sights)
	return sights, err
}

func (s *planted) LookSince(ctx context.Context, since store.Mark) (store.Appended, error) {
	a, err := s.ground.LookSince(ctx, since)
	s.unpause(a.Heads)
	return a, err
}

func (s *planted) unpause(sights []store.LaneHead) {
	for i := range sights {
		sights[i].Paused = sights[i].Paused && s.bug != bugHushed && s.bug != bugHeedless
	}
}

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

func (s *planted) Undecided(ctx context.Context, funcs []string, after stint.ID, limit int) ([]store.PendingRetry, error) {
	if s.bug == bugPuts {
		return nil, nil
	}
	return s.ground.Undecided(ctx, funcs, after, limit)
}

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

func (s *planted) Cancel(ctx context.Context, ids []stint.ID, why string) (map[stint.ID]stint.CancelStatus, error) {
	answers, err := s.ground.Cancel(ctx, ids, why)
	for id, answer := range answers {
		switch {
		case s.bug == bugUnmarked:
			s.exec(unmarkSQL, int64(id))
		case s.bug == bugTooSoon && answer == stint.CancelTooLate:
			answers[id] = stint.CancelledNow
		}
	}
	return answers, err
}

func (s *planted) Cancelling(ctx context.Context, ids []stint.ID) ([]stint.ID, error) {
	if s.bug == bugSilent {
		return nil, nil
	}
	return s.ground.Cancelling(ctx, ids)
}

func (s *planted) Fetch(ctx context.Context, at []store.Position) ([]store.Entry, error) {
	entries, err := s.ground.Fetch(ctx, at)
	return s.welcome(entries), err
}

func (s *planted) welcome(entries []store.Entry) []store.Entry {
	for i := range entries {
		entries[i].Cancelled = entries[i].Cancelled && s.bug != bugHandsOut
	}
	return entries
}

func (s *planted) Finish(ctx context.Context, engine store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	if s.bug == bugStalls {
		done = slices.Clone(done)
		for i := range done {
			done[i].Flow = false
		}
	}
	for i := range done {
		if s.bug == bugRetries && done[i].Next != nil {
			s.exec(unmarkSQL, int64(done[i].Job))
		}
	}
	switch s.bug {
	case bugHasty:
		done = hasty(done)
	case bugForgets:
		done = forgets(claims, done)
	}
	return s.ground.Finish(ctx, engine, claims, done)
}

func (s *planted) FinishTx(ctx context.Context, tx stint.Tx, engine store.EngineID, claim store.ClaimRef, x store.Completion) error {
	own := tx.Handle.(*sql.Tx)
	switch s.bug {
	case bugHollow:
		return own.Rollback()
	case bugSplit:
		if err := own.Commit(); err != nil {
			return err
		}
		_, err := s.ground.Finish(ctx, engine, []store.ClaimRef{claim}, []store.Completion{x})
		return err
	}
	err := s.ground.FinishTx(ctx, tx, engine, claim, x)
	if s.bug == bugRepeats && err == nil {
		s.exec(`insert into sim_effects select * from sim_effects where pos = ?`, int64(x.Pos))
	}
	return err
}

func (s *planted) Sweep(ctx context.Context, judge func(e *store.Entry, begun bool) store.Completion) (int, error) {
	switch s.bug {
	case bugUnswept:
		return 0, nil
	case bugSweeps:
		return s.sweep(ctx, judge, heldSQL)
	}
	return s.ground.Sweep(ctx, judge)
}

func (s *planted) FireSchedules(ctx context.Context, f store.FireRequest, plan store.PlanFunc) (store.FireResult, error) {
	bad := plan
	switch s.bug {
	case bugUnbound:
		bad = func(i *store.ScheduleInfo, now time.Time) (store.Plan, error) {
			i.Missed = stint.MissedAll(1000)
			return plan(i, now)
		}
	case bugOmits:
		bad = func(i *store.ScheduleInfo, now time.Time) (store.Plan, error) {
			p, err := plan(i, now)
			if n := len(p.Occurrences); n > 1 {
				p.Occurrences = p.Occurrences[:n-1]
			}
			return p, err
		}
	case bugMoves:
		bad = func(i *store.ScheduleInfo, now time.Time) (store.Plan, error) {
			p, err := plan(i, now)
			p.Occurrences = nil
			return p, err
		}
	case bugOverlaps:
		s.exec(`update stint_schedules set last_job = null where last_job in (select job from stint_waiting where why = 'retrying')`)
	}
	fired, err := s.ground.FireSchedules(ctx, f, bad)
	for _, j := range fired.Jobs {
		if s.bug == bugAgain && err == nil {
			// As if the second of two transactions had not come to pass.
			s.exec(`update stint_schedules set next = ?, after = ?, revision = revision + 1 where name = ?`,
				j.Occurrence.UnixMicro(), j.Occurrence.UnixMicro()-1, j.Schedule)
		}
	}
	return fired, err
}

func (s *planted) DeclareSchedules(ctx context.Context, by string, schedules []stint.Schedule) error {
	err := s.ground.DeclareSchedules(ctx, by, schedules)
	if s.bug == bugRestarts && err == nil {
		for i := range schedules {
			s.exec(`update stint_schedules set next = null where name = ?`, schedules[i].Name)
		}
	}
	return err
}

func (s *planted) PauseSchedule(ctx context.Context, name, by, why string) (bool, error) {
	if s.bug == bugRestless {
		return true, nil
	}
	return s.ground.PauseSchedule(ctx, name, by, why)
}

func (s *planted) ResumeSchedule(ctx context.Context, name string) (bool, error) {
	before, _ := s.ground.Schedule(ctx, name)
	news, err := s.ground.ResumeSchedule(ctx, name)
	if s.bug == bugMakesUp && news && before != nil && !before.Next.IsZero() {
		s.exec(`update stint_schedules set next = ?, after = ? where name = ?`, before.Next.UnixMicro(), before.After.UnixMicro(), name)
	}
	return news, err
}

func (s *planted) RemoveSchedule(ctx context.Context, name, why string) ([]stint.ID, error) {
	if s.bug == bugStays {
		return nil, nil
	}
	was, _ := s.ground.Schedule(ctx, name)
	ids, err := s.ground.RemoveSchedule(ctx, name, why)
	if s.bug == bugReturns && err == nil && was != nil {
		// Whoever fires it writes it as he knew it.
		_ = s.ground.DeclareSchedules(ctx, "", []stint.Schedule{was.Schedule})
	}
	return ids, err
}

// needingSQL finds a job that waits for others.
const needingSQL = `select w.job from stint_waiting w where w.verdict is not null and not exists (select 1 from stint_flows f where f.flow = w.job) limit 1`

func (s *planted) Enqueue(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
	if m := jobs[0].Member; s.bug == bugAdds && m != nil && m.Into != 0 {
		jobs = slices.Clone(jobs)
		for i := range jobs {
			m := *jobs[i].Member
			m.Name, jobs[i].Member = "", &m
		}
	}
	if s.bug == bugTwins {
		jobs = slices.Clone(jobs)
		for i := range jobs {
			jobs[i].Unique = ""
		}
	}
	return s.ground.Enqueue(ctx, tx, jobs)
}

func (s *planted) RecordSteps(ctx context.Context, engine store.EngineID, steps []store.StepRecord) ([]stint.RecordedStep, error) {
	for _, r := range steps {
		switch job := int64(r.Job); {
		case s.bug == bugRedoes && r.Signal == "" && r.Question == nil:
			s.exec(`delete from stint_steps where job = ? and name = ?`, job, r.Name)
		case s.bug == bugMisses && r.Signal != "":
			s.exec(`insert into stint_steps (job, name, pos, began, ended, result) values (?, ?, ?, 0, 0, '{"timeout":true}') on conflict do nothing`, job, r.Name, int64(r.Pos))
		}
	}
	recorded, err := s.ground.RecordSteps(ctx, engine, steps)
	if s.bug == bugUnheld && errors.Is(err, store.ErrBuried) {
		recorded, err = make([]stint.RecordedStep, len(steps)), nil
	}
	for i := range recorded {
		r := &steps[i]
		switch job := int64(r.Job); {
		case s.bug == bugUnheld && recorded[i].Name == "" && len(r.Result) > 0:
			if s.exec(`insert into stint_steps (job, name, pos, began, ended, result) values (?, ?, ?, 0, 0, ?) on conflict do nothing`, job, r.Name, int64(r.Pos), string(r.Result)) {
				recorded[i] = stint.RecordedStep{Name: r.Name, Result: r.Result}
			}
		case s.bug == bugTakes && r.Signal != "":
			s.exec(`update stint_steps set signal = null where job = ?`, job)
		case s.bug == bugReplies && r.Question != nil && r.Question.Job != 0:
			s.exec(`update stint_steps set result = json_object('job', question ->> 'job', 'state', 'completed') where job = ? and name = ? and result is null`, job, r.Name)
		}
	}
	return recorded, err
}

func (s *planted) Signal(ctx context.Context, tx stint.Tx, job stint.ID, signal stint.Signal) error {
	switch s.bug {
	case bugLoses:
		return nil
	case bugSleeps:
		defer s.exec(`update stint_waiting set due = due + 3600000000 where job = ? and awaits is not null`, int64(job))
	case bugDrops:
		defer s.exec(`delete from stint_signals where job = ?1 and not exists (select 1 from stint_waiting where job = ?1)
		  and not exists (select 1 from stint_steps t where t.signal = n)`, int64(job))
	}
	return s.ground.Signal(ctx, tx, job, signal)
}

func (s *planted) Answer(ctx context.Context, tx stint.Tx, job stint.ID, question string, a stint.Answer) error {
	if s.bug == bugForgetsAnswers {
		return nil
	}
	return s.ground.Answer(ctx, tx, job, question, a)
}
