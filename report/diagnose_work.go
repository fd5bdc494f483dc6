package report

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// What is wrong with engines, and with the work that waits for them.
var (
	engineDraining = note("engine_draining", "it was asked to leave, takes no more jobs, and still runs {jobs}",
		"wait for these, or free them: stint engines bury {token}")
	engineDead = warning("engine_dead", "it has sent no heartbeat for {silent} (its time to live is {ttl})",
		"an engine buries it when it has watched it for {watched}: start one if none runs; by hand, stint engines bury {token} frees what it holds")
	engineGone = warning("engine_dead", "its process is gone; its last heartbeat was {silent} ago",
		"any engine that runs buries it in a moment: start one if none does; by hand, stint engines bury {token} frees what it holds")
	engineStuck = warning("engine_stuck", "its process lives, but it has sent no heartbeat for {silent} (its time to live is {ttl})",
		"see whether process {pid} on {host} was stopped, or whether something keeps the database from being written to; stint engines bury {token} frees what it holds")
	engineVersions = note("engine_versions", "they are of different versions: {names}",
		"that is right while a new version is rolled out; otherwise restart the older ones")
	retryFunctionMissing = problem("retry_function_missing", "no running engine has it, and it is to decide about {waiting}, the first for {age}",
		"start an engine whose mux has it (Mux.RetryFunc); stint jobs retry runs such a job without being asked")
	retryPolicyWaits = problem("retry_policy_waits", "no engine has applied the retry policy of {waiting} of workers by SQL, the first for {age}",
		"start an engine: stint work, or a program of yours; stint jobs retry runs such a job without being asked")
	retentionBehind = warning("retention_behind",
		"it deletes for all engines and does not keep up: jobs that are kept for {kept} have been there for up to {late} longer",
		"see what keeps it from deleting (findings about locks, the disk, or the horizon; the engine's log), or whether the database has processor time left; until then keep jobs for less time, or do less")
	stepsMissed = warning("steps_missed",
		"{done} of this kind completed without coming to steps that earlier runs had recorded: {steps}. A step that was given another name is done again by every job that has it under the old one",
		"give a renamed step its old name again; stint queues pause keeps jobs from running until then. If it was removed, or runs may leave it out, there is nothing to do, and this is told for a day")
	kindFailing = warning("kind_failing",
		"{failed} of the {attempts} attempts that ended in the last {span} failed or were lost ({share}); in the day before that {before}",
		"see what they fail with, on the page Errors of the dashboard, or: stint jobs list --state failed,retrying --kind {kind}. stint queues pause keeps jobs from running until it is fixed, and stint jobs retry runs those again that ended")
	startByMissed = warning("start_by_missed",
		"{late} of kind {kind} did not begin by the time that was set for it; what is not begun in time has failed when an engine comes to it",
		"see why the queue is not worked off; more engines or slots, or a longer start_within")
)

// Why ready jobs do not begin.
const readyFor = "; ready and not begun: {waiting}, the first for {age}"

var (
	queuePaused = note("queue_paused", "it is paused since {pause}"+readyFor, "stint queues resume {queue}")
	noEngine    = problem("no_engine", "no engine runs"+readyFor, "start one: stint work, or the program that has your kinds")
	kindUnknown = problem("kind_unknown", "no running engine handles this kind"+readyFor,
		"start an engine that does, or end them: stint jobs cancel --state available --kind {kind}")
	queueLate = warning("queue_late", "engines work on it, and do not keep up: {waiting} could begin and have not, the first for {age}",
		"see whether its engines have slots left and what takes them: stint engines list, stint jobs list --state running; then start more engines, give them more slots, or give the jobs a higher priority")
	queueUnattended = problem("queue_unattended", "no engine that handles {kind} works on it"+readyFor, "start one that does: stint work --queues {queue}")
)

// crew are the engines that live, as those that may perform what is ready.
type crew []store.EngineInfo

// performs reports whether an engine knows the kind.
func (c crew) performs(kind string) bool {
	return slices.ContainsFunc(c, func(e store.EngineInfo) bool { return e.Performs(kind) })
}

// attends reports whether an engine that knows the kind works on the queue.
func (c crew) attends(queue, kind string) bool {
	return slices.ContainsFunc(c, func(e store.EngineInfo) bool { return e.Performs(kind) && e.WorksOn(queue) })
}

// engines judges the roster, and returns the engines that live.
func (d *diagnosis) engines(ctx context.Context, holds map[store.EngineID]int) (crew, error) {
	roster, err := d.store.Engines(ctx)
	var running crew
	for _, e := range roster {
		subject := fmt.Sprintf("engine %s (%d)", e.Instance, e.Token)
		if e.Silent(d.now) {
			d.find(d.silent(e, subject, holds[e.Token]))
			continue
		}
		running = append(running, e)
		if n := len(e.Running); e.Draining {
			d.find(engineDraining.With("jobs", counted(n, math.MaxInt, "job"), "token", fmt.Sprint(e.Token)).Find(subject, map[string]any{"running": n}).At("engines", fmt.Sprint(int64(e.Token))))
		}
	}
	return running, err
}

// silent is about an engine without heartbeats, which holds so many jobs.
func (d *diagnosis) silent(e store.EngineInfo, subject string, holds int) Finding {
	quiet := d.now.Sub(e.Beat)
	rule := engineDead
	switch {
	case e.Held:
		rule = engineStuck
	case e.Gone:
		rule = engineGone
	}
	figures := map[string]any{"token": fmt.Sprint(int64(e.Token)), "silent_seconds": quiet.Seconds(), "host": e.Host, "pid": e.PID}
	if holds > 0 {
		rule.Problem += ", and it holds " + counted(holds, HoldsLimit, "job")
		figures["holds"] = holds
	}
	// Other engines bury it after twice its time to live at most or, where its session with the server
	// lives on, after four thirds of the longest outage. Later, there is none.
	watched, latest := e.TimeToLive.String(), 3*e.TimeToLive
	if cut := e.MaxOutage * 4 / 3; cut > e.TimeToLive {
		watched += " to " + cut.String()
		latest = max(latest, cut+e.TimeToLive)
	}
	if quiet > latest && holds > 0 {
		rule.Severity = SeverityProblem
	}
	return rule.With("silent", quiet.Round(100*time.Millisecond).String(), "ttl", e.TimeToLive.String(), "watched", watched).Find(subject, figures).At("engines", fmt.Sprint(int64(e.Token)))
}

// versions looks for engines of several versions side by side.
func (d *diagnosis) versions(running crew) {
	by := map[string][]string{}
	var all, names []string
	for _, e := range running {
		if by[e.Version] == nil {
			all = append(all, e.Version)
		}
		by[e.Version] = append(by[e.Version], e.Instance)
	}
	if len(all) < 2 {
		return
	}
	slices.Sort(all)
	for _, v := range all {
		names = append(names, fmt.Sprintf("%s (%s)", cmp.Or(v, "unknown"), words.Several(by[v])))
	}
	d.find(engineVersions.With("names", strings.Join(names, ", ")).Find("the engines that run", map[string]any{"versions": all}).At("engines"))
}

// undecided looks for failures that no engine decides about.
func (d *diagnosis) undecided(all []UndecidedBacklog) {
	for _, u := range all {
		switch {
		case d.now.Sub(u.Oldest) < deploying:
		case u.Func == store.AnyEngine:
			d.find(d.waiting(retryPolicyWaits, "retry policies", "failed job", u.Jobs, u.Oldest).At("jobs?state=retrying"))
		default:
			d.find(d.waiting(retryFunctionMissing, "retry function "+u.Func, "failed job", u.Jobs, u.Oldest).At("jobs?state=retrying"))
		}
	}
}

// noticed is how long it may take until somebody looks at what was noted: engines do it at once.
const noticed = 30 * time.Second

// What is wrong with those who should look at what jobs wait for.
var (
	notesUnread = problem("notes_unread", "what jobs of flows, or jobs that await signals, wait for has changed, and no engine has looked at it for {since_seconds}: they do not begin",
		"see what the engines log: one that runs looks at once")
	notesNoEngine = problem("notes_unread", "what jobs of flows, or jobs that await signals, wait for has changed, and no engine runs that could look at it, for {since_seconds}",
		"start one: stint work, or the program that has your kinds")
)

// notes looks whether anybody looks at what jobs wait for.
func (d *diagnosis) notes(running crew, f FlowFacts) {
	age := d.now.Sub(f.Noted)
	if f.Noted.IsZero() || age < noticed {
		return
	}
	rule := notesUnread
	if len(running) == 0 {
		rule = notesNoEngine
	}
	if age < deploying {
		rule.Severity = SeverityWarning
	}
	d.find(rule.Find("flows and signals", map[string]any{"since": f.Noted.UTC(), "since_seconds": age.Seconds(), "flows": f.Open, "blocked": f.Blocked}).At("jobs?state=blocked"))
}

// retentionSlack is how late retention may be, beside a tenth of the time that jobs are kept for.
const retentionSlack = 10 * time.Minute

// missedFor is how long a step that was not come to is told of.
const missedFor = 24 * time.Hour

// metrics looks at what the engines that run tell with their metrics.
func (d *diagnosis) metrics(ctx context.Context, running crew) error {
	keeper, ok := d.store.(MetricsKeeper)
	if !ok {
		return nil
	}
	all, err := keeper.EngineMetrics(ctx)
	all = slices.DeleteFunc(all, func(m Metrics) bool {
		return !slices.ContainsFunc(running, func(e store.EngineInfo) bool { return e.Token == m.Engine })
	})
	d.retention(all)
	d.missed(all)
	return err
}

// missed tells of steps that the program seems to have no more, by kind.
func (d *diagnosis) missed(all []Metrics) {
	type missed struct {
		steps []string
		jobs  int64 // of the step that most did not come to
		last  time.Time
	}
	kinds, jobs := map[string]*missed{}, map[[2]string]int64{}
	for _, m := range all {
		for _, s := range m.Missed {
			if m.At.Sub(s.Last) > missedFor {
				continue
			}
			k := kinds[s.Kind]
			if k == nil {
				k = &missed{}
				kinds[s.Kind] = k
			}
			of := [2]string{s.Kind, s.Step}
			jobs[of] += s.Jobs
			k.steps, k.jobs, k.last = append(k.steps, s.Step), max(k.jobs, jobs[of]), latest(k.last, s.Last)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		k := kinds[kind]
		slices.Sort(k.steps)
		k.steps = slices.Compact(k.steps)
		d.find(stepsMissed.With("done", counted(int(k.jobs), math.MaxInt, "job")).
			Find("kind "+kind, map[string]any{"steps": k.steps, "jobs": k.jobs, "last": k.last.UTC()}).At("kinds", kind))
	}
}

// retention looks how far the engine has come that deletes old jobs.
func (d *diagnosis) retention(all []Metrics) {
	for _, m := range all {
		if late := m.Late(); late > retentionSlack+m.Retention.Kept/10 {
			d.find(retentionBehind.With("kept", retry.FormatDuration(m.Retention.Kept), "late", late.Round(time.Second).String()).
				Find(fmt.Sprintf("engine %s (%d)", m.Instance, m.Engine), map[string]any{
					"token": fmt.Sprint(int64(m.Engine)), "kept_seconds": m.Retention.Kept.Seconds(), "late_seconds": late.Seconds(), "deleted": m.Retention.Deleted,
				}).At("engines", fmt.Sprint(int64(m.Engine))))
		}
	}
}

// When a kind fails more than it did. Attempts that failed and will be tried again count too: they come before the
// jobs that fail.
const (
	failingSpan   = 15 * time.Minute
	failingBefore = 24 * time.Hour
	failingLeast  = 20  // attempts, of which there must be as many in each of both times to compare
	failingShare  = 0.2 // of the attempts
	failingTimes  = 2   // as many as in the time before
	failingMost   = 0.9 // share from which on it does not matter how it was before
)

// failing looks for kinds of whose attempts many have failed lately, and not as many before. It reads the sums by the
// minute and the hour, and of what is not in them yet no more than a few: under load, the last minutes are left out.
func (d *diagnosis) failing(ctx context.Context) error {
	keeper, ok := d.store.(StatsStore)
	if !ok {
		return nil
	}
	fresh, err := keeper.Unsummed(ctx, FewUnsummed)
	if err != nil {
		return err
	}
	from, settled := d.now.Add(-failingSpan), fresh >= FewUnsummed
	if settled {
		from = from.Add(-SummedBy)
	}
	lately, err := keeper.Stats(ctx, StatsFilter{From: from, Every: time.Minute, Settled: settled})
	if err != nil {
		return err
	}
	day, err := keeper.Stats(ctx, StatsFilter{From: d.now.Add(-failingBefore), Settled: settled})
	if err != nil {
		return err
	}
	all := endsByKind(day)
	for kind, now := range endsByKind(lately) {
		before := all[kind]
		before.failed, before.all = max(0, before.failed-now.failed), max(0, before.all-now.all)
		known := before.all >= failingLeast
		if now.all < failingLeast || now.share() < failingShare || known && now.share() < failingMost && now.share() < failingTimes*before.share() {
			continue
		}
		text := "there were too few to compare"
		figures := map[string]any{"kind": kind, "attempts": now.all, "failed": now.failed, "share": now.share()}
		if known {
			text, figures["share_before"] = percent(before.share()), before.share()
		}
		d.find(kindFailing.With("share", percent(now.share()), "before", text, "span", words.Rough(failingSpan)).
			Find("kind "+kind, figures).At("errors?kind=" + url.QueryEscape(kind)))
	}
	return nil
}

// ends counts attempts that came to something: those that were handed back, snoozed or cancelled did not.
type ends struct{ failed, all int64 }

func (e ends) share() float64 { return float64(e.failed) / float64(max(1, e.all)) }

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

func endsByKind(all []Stats) map[string]ends {
	kinds := map[string]ends{}
	for _, s := range all {
		e := kinds[s.Kind]
		switch s.Outcome {
		case stint.OutcomeFailed, stint.OutcomeLost:
			e.failed += s.Attempts
			e.all += s.Attempts
		case stint.OutcomeCompleted:
			e.all += s.Attempts
		}
		kinds[s.Kind] = e
	}
	return kinds
}

// waiting is about jobs that wait, the first of them since a while.
func (d *diagnosis) waiting(rule Rule, subject, thing string, jobs int, oldest time.Time) Finding {
	age := d.now.Sub(oldest)
	return rule.With("waiting", counted(jobs, BacklogLimit, thing), "age", max(0, age.Round(time.Second)).String()).
		Find(subject, map[string]any{"jobs": jobs, "oldest": oldest.UTC(), "oldest_seconds": age.Seconds()})
}

// obstacle keeps ready jobs from beginning.
type obstacle struct {
	code, subject      string
	queue, kind, pause string // as far as its texts say them
	noun, name         string // of its page
}

func (o obstacle) names() []string {
	if o.name == "" {
		return nil
	}
	return []string{o.name}
}

// obstacle is what keeps jobs from beginning, besides those before them. Jobs with
// the same one are told of together.
func (c crew) obstacle(b Backlog) (o obstacle, rule Rule, ok bool) {
	switch {
	case !b.Paused.IsZero():
		o, rule = obstacle{subject: "queue " + b.Queue, queue: b.Queue, pause: paused(b), noun: "queues", name: b.Queue}, queuePaused
	case len(c) == 0:
		o, rule = obstacle{subject: "the roster", noun: "engines"}, noEngine
	case !c.performs(b.Kind):
		o, rule = obstacle{subject: "kind " + b.Kind, kind: b.Kind, noun: "kinds", name: b.Kind}, kindUnknown
	case !c.attends(b.Queue, b.Kind):
		o, rule = obstacle{subject: "queue " + b.Queue, queue: b.Queue, kind: b.Kind, noun: "queues", name: b.Queue}, queueUnattended
	case !b.Limited: // of limits it is told that they keep jobs waiting
		o, rule = obstacle{subject: "queue " + b.Queue, queue: b.Queue, noun: "queues", name: b.Queue}, queueLate
	}
	o.code = rule.Code
	return o, rule.With("queue", o.queue, "kind", o.kind, "pause", o.pause), rule.Code != ""
}

// paused tells since when a queue is paused, by whom and why.
func paused(b Backlog) string {
	text := b.Paused.UTC().Format(time.DateTime) + " UTC"
	if b.By != "" {
		text += " by " + b.By
	}
	if b.Why != "" {
		text += " (" + b.Why + ")"
	}
	return text
}

// backlogs looks for what is ready and does not begin, and what began too late.
func (d *diagnosis) backlogs(running crew, all []Backlog) {
	type sum struct {
		rule   Rule
		jobs   int
		oldest time.Time
	}
	sums := map[obstacle]sum{}
	for _, b := range all {
		if o, rule, ok := running.obstacle(b); ok {
			s := sums[o]
			if s.jobs == 0 || b.Oldest.Before(s.oldest) {
				s.oldest = b.Oldest
			}
			sums[o] = sum{rule, s.jobs + b.Jobs, s.oldest}
		}
		if b.Late > 0 {
			d.find(startByMissed.With("late", counted(b.Late, BacklogLimit, "job")).Find("queue "+b.Queue, map[string]any{"jobs": b.Late, "kind": b.Kind}).At("queues", b.Queue))
		}
	}
	for o, s := range sums {
		if s.rule.Severity == SeverityProblem && d.now.Sub(s.oldest) < deploying {
			s.rule.Severity = SeverityWarning
		}
		if o.code == queuePaused.Code {
			s.rule = d.urgent(s.rule, s.oldest)
		}
		if o.code != queueLate.Code || d.now.Sub(s.oldest) >= lateAfter {
			d.find(d.waiting(s.rule, o.subject, "job", s.jobs, s.oldest).At(o.noun, o.names()...))
		}
	}
}

// What is wrong with schedules.
var (
	scheduleUnplanned = problem("schedule_unplanned", "the next occurrence is overdue, though engines run, for {since_seconds}",
		"see what the engines log, and whether they have the time zones of the schedules")
	scheduleNoEngine     = problem("schedule_unplanned", "no engine runs that could make its jobs, for {since_seconds}", "start one: stint work, or the program that has your kinds")
	scheduleNoRecurrence = problem("schedule_unplanned", "no running engine has the recurrence function {function}, or it fails there, for {since_seconds}",
		"start an engine whose mux has it (Mux.Recurrence)")
	scheduleUnknownKind = warning("schedule_unknown_kind", "{making} jobs of it, and no running engine handles this kind",
		"start an engine that does, or: stint schedules remove {first}")
	scheduleMissed = warning("schedule_missed",
		"occurrences were missed and are not made up for, as was found at {found}: no engine was there, or none could reach the database, when they were due",
		"if one should run all the same: stint schedules run-now {first}. What makes up for them is said where the schedule is declared (--missed); stint engines gone tells when engines went. This is told until it fires again, for a day at most")
	scheduleAhead = problem("schedule_ahead",
		"everything up to {until} counts as dealt with, {distance} from now: the database's clock was ahead, and nothing fires until then",
		"when the clock is right: stint schedules remove {first}, and add it again, or restart the programs that declare it")
)

// schedules judges those that are to fire, by which engines can fire them and
// perform what they make. Those with one reason are one finding.
func (d *diagnosis) schedules(ctx context.Context, running crew) error {
	keeper, ok := d.store.(store.ScheduleKeeper)
	if !ok {
		return nil
	}
	all, err := keeper.Schedules(ctx)
	unplanned, unknown, ahead, missed := map[string][]string{}, map[string][]string{}, []string{}, []string{}
	first := map[string]time.Time{} // by function, since when an engine is missing
	var farthest, found time.Time
	for _, s := range all {
		if s.State() != "active" {
			continue
		}
		since := s.Next
		if since.IsZero() { // to be computed
			since = latest(s.Declared, s.After) // declared or resumed then
		}
		if d.now.Sub(since) > deploying {
			f, _ := s.Recurrence.Func()
			unplanned[f] = append(unplanned[f], s.Name)
			if before, ok := first[f]; !ok || since.Before(before) {
				first[f] = since
			}
		}
		if s.Job.Kind != "" && len(running) > 0 && !running.performs(s.Job.Kind) {
			unknown[s.Job.Kind] = append(unknown[s.Job.Kind], s.Name)
		}
		if dealt := latest(s.After, s.LastOccurrence); dealt.Sub(d.now) > deploying {
			ahead = append(ahead, s.Name)
			farthest = latest(farthest, dealt)
		}
		// Until it has fired again, in time.
		if !s.PassedAt.IsZero() && d.now.Sub(s.PassedAt) < missedFor && s.LastOccurrence.Before(s.PassedAt) {
			missed = append(missed, s.Name)
			found = latest(found, s.PassedAt)
		}
	}
	for function, names := range unplanned {
		rule := scheduleUnplanned
		figures := map[string]any{"schedules": names, "since": first[function].UTC(), "since_seconds": d.now.Sub(first[function]).Seconds()}
		switch {
		case function != "":
			rule, figures["function"] = scheduleNoRecurrence, function
		case len(running) == 0:
			rule = scheduleNoEngine
		}
		d.find(atSchedules(rule.Find(schedulesNamed(names), figures), names))
	}
	for kind, names := range unknown {
		making := schedulesNamed(names) + " make"
		if len(names) == 1 {
			making += "s"
		}
		d.find(atSchedules(scheduleUnknownKind.With("making", making, "first", names[0]).Find("kind "+kind, map[string]any{"schedules": names}), names))
	}
	if len(ahead) > 0 {
		d.find(atSchedules(scheduleAhead.With("distance", words.Between(d.now, farthest), "first", ahead[0]).
			Find(schedulesNamed(ahead), map[string]any{"schedules": ahead, "until": farthest.UTC()}), ahead))
	}
	if len(missed) > 0 {
		d.find(atSchedules(scheduleMissed.With("first", missed[0]).Find(schedulesNamed(missed), map[string]any{"schedules": missed, "found": found.UTC()}), missed))
	}
	return err
}

// atSchedules gives a finding the page of its schedule, or that of all.
func atSchedules(f Finding, names []string) Finding {
	if len(names) == 1 {
		return f.At("schedules", names[0])
	}
	return f.At("schedules")
}

func schedulesNamed(names []string) string {
	if len(names) == 1 {
		return "schedule " + names[0]
	}
	return "schedules " + words.Several(names)
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }
