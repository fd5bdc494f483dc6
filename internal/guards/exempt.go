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
		"the end of a job that was never ready would stand at an entry of its own, and say the same"},
	{functions + "cancel_waiting where e.lane = -1", "what waits and has no execution is in that lane"},
	{functions + "cancel_waiting where x.job = w.job or x.pos = w.job", "as the whole of it"},
	{functions + "cancel_waiting where … or x.pos = w.job", "an entry in that lane that has an execution is of no job that waits"},
	{functions + "settle where x.job is null", ownFirst},
}

const (
	functions = "postgres/schema/0001_2_functions.sql "

	sameAnswer = "it decides how the answer is found, and not what it is"
	spares     = "it spares a look that would find nothing"
	ownFirst   = "what stands at a job's id is the job's first entry"
	oneRow     = "the table has one row"
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
