package guards

// exempt are guards that need no killer, each with the reason. Three are common:
// two texts of a query that answer alike, of which one is quicker; what spares
// looking where nothing would be found; and what a table with one row needs only
// to be read as one.
var exempt = []struct{ key, why string }{
	{functions + "claim if f.listed is null or f.listed < f.n", sameAnswer},
	{functions + "claim if same and (stint.unseen(snap, coalesce(f.pending, 0) + 1) < xid8send(new_xid)) is not true", sameAnswer},
	{functions + "sight if found (2)", "a lane with late rows would also be said to need settling, which its claim does"},
	{functions + "fetch if cardinality(p_at) >= 20", sameAnswer},
	{functions + "fetch if high - low < 3 * cardinality(p_at)", sameAnswer},
	{functions + "fetch on e.pos between low and high", sameAnswer},
	{functions + "unfinished if high - low < 3 * cardinality(p_at)", sameAnswer},
	{functions + "unfinished where x.pos between low and high", sameAnswer},
	{functions + "record where d.engine = p_engine", spares},
	{functions + "record where m.one", oneRow},
	{functions + "record where x.pos = any (done)", "what was recorded before and has no entry would go as well, which is what this is for"},
	{functions + "record where x.pos = any (done) (2)", "the marker of any job that has ended is to go"},
	{functions + "record if s_pos is null or written = 0", "without successors what follows writes nothing, and rings for nothing"},
	{functions + "record where … or whole", sameAnswer},
	{functions + "cancel_waiting if exists (select from stint.entries e where e.pos = w.job and e.lane = -1) and not exists (select from stint.executions x where x.job = w.job or x.pos = w.job)",
		neverReady},
	{functions + "cancel_waiting where e.lane = -1", "what waits and has no execution is in that lane"},
	{functions + "cancel_waiting where e.pos = w.job", "as the one before"},
	{functions + "cancel_waiting where x.job = w.job or x.pos = w.job", "as the whole of it"},
	{functions + "cancel_waiting where … or x.pos = w.job", "an entry in that lane that has an execution is of no job that waits"},
	{functions + "settle where x.job is null", ownFirst},
	{functions + "promote where x.job is null", ownFirst},
	{figures + "claimed where not h.swept", "the bound of what was swept is 0, and nothing is below that"},
	{figures + "add_sums where m.start >= oldest", "minutes that are not told any more are not told, and go with the next step"},
	{figures + "sum_up if clock_timestamp() < began + interval '200 milliseconds'", "it decides how large a slice is, and not how far a step goes"},
	{figures + "sum_gone where x.finished >= upto", spares},
	{figures + "sum_gone where x.finished >= upto (2)", spares},
	{figures + "sums where a.ran", "of what did not run nobody knows how long it took"},
	{figures + "sums where a.ran (3)", "as the other one"},
	{figures + "sums where a.finished >= p_from (2)", "who gives positions gives none of before"},
	{figures + "claimed where h.ended is not null", "the bound of who has not ended is 0 there"},
	{operating + "remove where t.tag = l.tag", forIndex},
	{operating + "erase where x.job is null", ownFirst},
	{retaining + "retain_claims where k.n between dead[1] and dead[cardinality(dead)]", forIndex},
	{retaining + "retain_keys where a.job is null", ownFirst},
	{retaining + "retain_engines where not exists (select from stint.engines e where e.token = h.token)", "who stands in the roster has no end"},
	{retaining + "retain_engines where x.nonce = 0", forIndex},
	{"postgres/cancel.go Cancel where exists (select from stint.entries e where e.pos = j.id)", noMarker},
	{"postgres/cancel.go Cancel where e.pos = j.id", noMarker},
	{"postgres/copy.go reserveSQL where p.id = any ($2::bigint[])", "of the others no job says anything"},
	{"postgres/entry.go readPolicies where id = any($1)", "the others are remembered, and given to no entry"},
	{"postgres/fire.go fireSQL on s.name = p.schedule", oneRevision},
	{"postgres/fire.go fireSQL where x.job is null", ownFirst},
	{"postgres/bury.go lockEngine where l.locktype = 'advisory'", noLocks},
	{"postgres/bury.go sweep where c.engine = h.token", "it decides how much a step reads, and not what it finds"},
	{"postgres/bury.go sweep where not h.swept", "the bound of what was swept is 0, and nothing is below that"},
	{"postgres/roster.go beatSQL where e.token = b.token", "an engine and its beat come and go together"},
	{"postgres/roster.go heldSQL where c.serial < $3", "what is above the bound was concluded before"},
	{"postgres/undecided.go undecidedSQL where w.undecided is not null", forIndex},
	{"postgres/upgrade.go actForOwner where r.rolname <> current_user", "to become who one is changes nothing"},
	{"postgres/upgrade.go inTheWay where a.pid <> pg_backend_pid()", "who asks this holds no lock in the schema"},
	{"postgres/evict.go Evict where l.locktype = 'advisory'", noLocks},
	{"postgres/evict.go Evict where l.pid <> pg_backend_pid()", "a session that asks this is in no claim, outcome or beat"},
	{"postgres/rebase.go rebase where xid >= pg_snapshot_xmin(pg_current_snapshot())", behind},
	{"postgres/rebase.go rebase where e.xid >= pg_snapshot_xmin(pg_current_snapshot())", behind},
	{"postgres/rebase.go rebase where e.lane >= 0", "of the lane that nobody claims no number matters"},
	{"postgres/filter.go mayBe where l.pos > p.pos", stateToo},
	{"postgres/filter.go mayBe where x.outcome <> 1", forIndex},
	{"postgres/filter.go mayBe where x.outcome <> 1 (2)", forIndex},
	{"postgres/filter.go mayBe where x.final (2)", "what was cancelled is final"},
	{"postgres/filter.go mayBe where x.job is null", ownFirst},
	{"postgres/filter.go jobsQuery where e.correlation = …", forIndex},
	{"postgres/filter.go rare where x.finished - x.started > interval '5 seconds'", forIndex},
	{"postgres/filter.go rare where x.outcome <> 1", forIndex},
	{"postgres/filter.go rare where x.outcome in (2, 5)", "that another attempt follows it is asked as well"},
	{"postgres/filter.go rare where not x.final", "as the one before"},
	{"postgres/filter.go rare where w.faulty", "whether the job is faulty is asked as well"},
	{"postgres/filter.go rare where e.faulty", "as the one before"},
	{"postgres/filter.go rare where x.job is null", laterNone},
	{"postgres/filter.go rare where x.job is not null", "a first entry's names no job there"},
	{"postgres/errorgroups.go errorsSQL where o.outcome <> 1", forIndex},
	{"postgres/doctor.go questions where the log was written", forPeople},
	{"postgres/doctor.go Advise where wait_event_type = 'Lock'", forPeople},
	{"postgres/doctor_schema.go objectsSQL on not a.attisdropped", "what was dropped has no type, and joins with none"},
	{"postgres/doctor_schema.go objectsSQL where k.contype = 'c'", "the domains that are installed have no other constraints"},
	{"postgres/doctor_work.go backlogSQL where not l.settle", "a lane that is only to be settled has nothing behind its frontier"},
	{"postgres/doctor_work.go holdsSQL where c.serial >= b.low", "below its bound an engine has nothing open"},
	{"postgres/doctor_blocked.go blockedSQL where l.pid <> pg_backend_pid()", "who asks this waits for nothing"},
	{"postgres/doctor_sessions.go horizonSessions where (a.backend_xmin is not null or a.backend_xid is not null or a.state like 'idle in transaction%')",
		"who works in a transaction has a snapshot, but for moments"},
	{"postgres/doctor_sessions.go horizonSlots where … or xmin is not null", "what pins rows keeps WAL as well"},
	{"postgres/doctor_sessions.go horizonSlots where … or catalog_xmin is not null", "as the one before"},
	{"postgres/doctor_sessions.go horizonStandbys where backend_xmin is not null", "the age of none is not more than anything"},
	{"postgres/metrics.go keepMetricsSQL where (select fresh from kept)", "it decides when room is made, and not for whom"},
	{"postgres/schema/0001_3_people.sql jobs where (w.job is not null or e.pos is not null or x.final or x.pos is null and b.lane >= 0)", "one of these is so of every job"},
	{"sqlite/cancel.go finalOfSQL where x.job is null", ownFirst},
	{"sqlite/cancel.go finalSQL where job is null", ownFirst},
	{"sqlite/cancel.go triedSQL where pos = ?1 or job = ?1", neverReady},
	{"sqlite/claim.go lookSQL where l.lane is not null (2)", spares},
	{"sqlite/fire.go revisionSQL where name = ?", oneRevision},
	{"sqlite/fire.go notEndedSQL where x.job is null", ownFirst},
	{"sqlite/keys.go oldKeysSQL where f.job is null", ownFirst},
	{"sqlite/operate.go eraseTagsSQL where tag in (select r.value from stint_entries e, json_each(e.tags) r where e.pos = ?1)", forIndex},
	{"sqlite/operate.go eraseTagsSQL where e.pos = ?1", forIndex},
	{"sqlite/retain.go enginesPageSQL where x.nonce = 0", forIndex},
	{"sqlite/undecided.go undecidedSQL where w.undecided is not null", forIndex},
	{"sqlite/filter.go mayBe where why = 'scheduled'", stateToo},
	{"sqlite/filter.go mayBe where why = 'retrying'", stateToo},
	{"sqlite/filter.go mayBe where not exists (select 1 from stint_executions x where x.pos = e.pos)", stateToo},
	{"sqlite/filter.go frontiersSQL where l.lane is not null (2)", "the row behind those of the lanes is of none, and joins with no entry"},
	{"sqlite/filter.go correlatedSQL where job is null", laterNone},
	{"sqlite/filter.go jobsQuery where attempt >= ?", "that another attempt follows it is asked as well"},
	{"sqlite/inspect.go jobExecutionsSQL where job is null", ownFirst},
	{"sqlite/marks.go openSQL where ended is null", "what an engine held that was buried has its outcome"},
	{"sqlite/doctor_schema.go objectsSQL where sql is not null", "what SQLite makes for keys has such a name, which is left out as well"},
	{"sqlite/doctor_schema.go objectsSQL where name not like 'sqlite\\_%' escape '\\'",
		"what SQLite makes for keys has no text, and is left out as well; what else has such a name belongs to no table of stint"},
}

const (
	figures   = "postgres/schema/0001_4_figures.sql "
	functions = "postgres/schema/0001_2_functions.sql "
	operating = "postgres/schema/0001_4_operate.sql "
	retaining = "postgres/schema/0001_4_retain.sql "

	sameAnswer  = "it decides how the answer is found, and not what it is"
	neverReady  = "the end of a job that was never ready would stand at an entry of its own, and say the same"
	oneRevision = "no two schedules have one revision, but by a chance of one in 2^52"
	noLocks     = "no lock of another kind has such numbers, but by a chance of one in 2^63"
	noMarker    = "the marker of what is no job goes at once, when it is looked where the job is"
	behind      = "a number that is behind this server's says the same as the lowest"
	spares      = "it spares a look that would find nothing"
	ownFirst    = "what stands at a job's id is the job's first entry"
	laterNone   = "where a later entry of a job stands is the id of none"
	forPeople   = "it stands in a text for people"
	oneRow      = "the table has one row"
	forIndex    = "it says again what the rest says, so that an index is used"
	stateToo    = "these are the jobs that may be in the state; whether they are is asked as well"
)

var reasons = func() map[string]string {
	by := map[string]string{}
	for _, e := range exempt {
		by[e.key] = e.why
	}
	return by
}()

// exemptFor is why a guard needs no killer, empty when it needs one.
func exemptFor(g Guard) string { return reasons[g.Key()] }
