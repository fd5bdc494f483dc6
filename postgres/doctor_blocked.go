package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/report"
)

// waiter is a session that waits for a lock, or one that keeps such a session
// waiting.
type waiter struct {
	session
	Waits    float64 // seconds, 0 when it does not or that cannot be seen
	Late     bool    // it waits for longer than is normal
	Lock     string  // what kind of lock it waits for
	Table    string  // and on which of stint's tables or indexes, if it is one
	Blockers []int32 // 0 is a prepared transaction
}

// blockedSQL asks the server's lists only: what it reads of the catalogues is
// not locked by work on stint's tables. A wait for one of these is
// a finding sooner than any other, since engines never wait for such a lock.
// Since when a wait lasts is told by servers from 14 on; before, since when the
// statement runs.
const blockedSQL = `
with recursive waits as (
  select distinct on (l.pid) l.pid, l.mode, c.relname, l.locktype,
         coalesce((to_jsonb(l) ->> 'waitstart')::timestamptz, a.query_start) as since
  from pg_locks l
  join pg_stat_activity a on a.pid = l.pid
  left join pg_class c on l.locktype = 'relation' and c.oid = l.relation
    and c.relnamespace = (select n.oid from pg_namespace n where n.nspname = $3)
  where not l.granted and a.datname = current_database() and l.pid <> pg_backend_pid()
    and (c.oid is not null or a.application_name like 'stint%' or position($4 in a.query) > 0 or position($5 in a.query) > 0)
  order by l.pid, c.relname
  limit 200),
-- A session in their way may wait for another in turn.
chain as (
  select w.pid, pg_blocking_pids(w.pid) as blockers from waits w
  union
  select b.pid, pg_blocking_pids(b.pid) from chain c cross join lateral unnest(c.blockers) b(pid))
select distinct on (c.pid) c.pid, ` + sessionColumns + `,
       coalesce(extract(epoch from clock_timestamp() - w.since), 0)::double precision,
       w.pid is not null and (w.since is null or w.since < clock_timestamp() - case when w.relname is null then $1::interval else $2::interval end),
       coalesce(w.mode, a.wait_event, ''), coalesce(w.relname::text, ''), c.blockers
from chain c
left join pg_stat_activity a on a.pid = c.pid
left join waits w on w.pid = c.pid
order by c.pid
limit 500`

var lockWait = warning(report.CodeBlocked, "it {since} for a lock ({what}) {who}", "see that what holds it ends, or: ")

// blocked finds sessions that work on stint's tables, or want to, and wait for a
// lock that another holds. Of a queue it reports the head: what waits after that
// goes on by itself.
func (x *examination) blocked(ctx context.Context, tx pgx.Tx) error {
	all, err := ask[waiter](ctx, tx, blockedSQL, x.normal.blocked, x.normal.queued, x.schema, x.sql.schema+".", x.schema+".")
	if err != nil {
		return err
	}
	by := map[int32]waiter{}
	for _, w := range all {
		by[w.PID] = w
	}
	waits := func(pid int32) bool { return len(by[pid].Blockers) > 0 }
	for _, w := range all {
		if !waits(w.PID) || slices.ContainsFunc(w.Blockers, waits) {
			continue
		}
		var behind []int32
		late := w.Late
		for _, other := range all {
			if other.PID != w.PID && follows(by, other.PID, w.PID) {
				behind = append(behind, other.PID)
				late = late || other.Late
			}
		}
		if late {
			x.find(x.head(w, by, behind))
		}
	}
	return nil
}

// follows reports whether one session waits for another, directly or through others.
func follows(by map[int32]waiter, pid, head int32) bool {
	seen := map[int32]bool{}
	for todo := []int32{pid}; len(todo) > 0; todo = todo[1:] {
		for _, b := range by[todo[0]].Blockers {
			if b == head {
				return true
			}
			if !seen[b] {
				seen[b] = true
				todo = append(todo, b)
			}
		}
	}
	return false
}

// head is about the first of those that wait.
func (x *examination) head(w waiter, by map[int32]waiter, behind []int32) report.Finding {
	what := w.Lock
	if w.Table != "" {
		what = fmt.Sprintf("%s on %s.%s", lockMode(w.Lock), x.schema, w.Table)
	}
	since := "waits"
	if w.Waits > 0 {
		since = fmt.Sprintf("has waited %v", ago(w.Waits))
	}
	f := lockWait.With("since", since, "what", what, "who", w.who()).Find(fmt.Sprint("session ", w.PID),
		map[string]any{"pid": w.PID, "query": w.Query, "lock": w.Lock, "table": w.Table, "since_seconds": w.Waits, "behind": behind})
	var ends []string
	var blockers []map[string]any
	for _, pid := range slices.Compact(slices.Sorted(slices.Values(w.Blockers))) {
		if pid == 0 {
			f.Problem += "; a prepared transaction holds it"
			ends = append(ends, "end the prepared transaction, which select * from pg_prepared_xacts lists")
			continue
		}
		b := by[pid]
		f.Problem += fmt.Sprintf("; session %d %s holds it", pid, b.who())
		if b.Since != nil {
			f.Problem += fmt.Sprintf(", in a transaction begun %v ago", ago(b.Seconds))
		}
		ends = append(ends, fmt.Sprintf("select pg_terminate_backend(%d)", pid))
		blockers = append(blockers, b.figures())
	}
	f.Remedy += strings.Join(ends, "; ")
	if len(blockers) > 0 {
		f.Figures["blocker"] = blockers[0]
		f.Figures["blockers"] = blockers
	}
	if len(behind) > 0 {
		f.Problem += fmt.Sprintf("; behind it wait %d more", len(behind))
		f.Remedy += fmt.Sprintf("; so that those behind it go on at once, end the one that waits: select pg_cancel_backend(%d)", w.PID)
	}
	if w.Waits > x.normal.stands.Seconds() || w.Table != "" && len(behind) > 0 {
		f.Severity = report.SeverityProblem // nothing goes on there
	}
	x.stuck = append(x.stuck, f.Subject)
	return f
}

// lockMode is a lock's mode as it is written in SQL.
func lockMode(mode string) string {
	var text strings.Builder
	for i, r := range strings.TrimSuffix(mode, "Lock") {
		if i > 0 && r >= 'A' && r <= 'Z' {
			text.WriteByte(' ')
		}
		text.WriteRune(r)
	}
	return strings.ToUpper(text.String())
}
