package postgres

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/storetest"
)

// rowsOfFlowSQL is what is stored of a flow and those in it, with ids counted from its own.
const rowsOfFlowSQL = `
with recursive member(id) as (select $1::bigint union all select e.pos from member m join stint.entries e on e.flow = m.id)
select array_agg(e.pos - $1 || ' ' || jsonb_strip_nulls(jsonb_build_object('lane', e.lane, 'queue', e.queue, 'priority', e.priority, 'kind', e.kind, 'args', e.args, 'tags', e.tags,
  'retry', coalesce(e.retry, (select p.body from stint.policies p where p.id = e.policy)), 'timeout', e.timeout, 'urn', e.urn, 'source', e.source, 'metadata', e.metadata,
  'losses', e.max_losses, 'correlation', replace(e.correlation, $1::bigint::text, 'root'), 'limits', e.limits, 'unique', e.uniqueness, 'flow', e.flow - $1,
  'due', round(extract(epoch from e.due - e.created)), 'start_by', round(extract(epoch from e.start_by - e.created)),
  'waits', w.why, 'watch', w.watch - $1, 'verdict', w.verdict, 'is_flow', exists (select from stint.flows f where f.flow = e.pos),
  'deadline', (select round(extract(epoch from f.deadline - e.created)) from stint.flows f where f.flow = e.pos),
  'name', (select n.name from stint.nodes n where n.job = e.pos and n.flow = e.flow),
  'labels', (select count(*) from stint.job_tags t where t.job = e.pos),
  'needs', (select jsonb_agg(jsonb_build_array(n.parent - $1, n.wants) order by n.parent, n.wants) from stint.needs n where n.child = e.pos)))
  order by e.pos)
from member m join stint.entries e on e.pos = m.id left join stint.waiting w on w.job = m.id`

func rowsOfFlow(t *testing.T, s *Store, id stint.ID) []string {
	t.Helper()
	return value[[]string](t, s.pool, s.sql.in(rowsOfFlowSQL), int64(id))
}

// What SQL stores of a flow is what Go stores of it.
func TestAFlowInSQLIsThatOfGo(t *testing.T) {
	s := verified(t)
	w := storetest.NewWorker(t, s, "mail")
	declared := stint.KindInfo{Name: "mail", Queue: "slow", Priority: 3, Retry: retry.Fixed(2, time.Second), Timeout: time.Minute, Tags: []string{"a", "b"}}
	must(t, s.Join(t.Context(), w.Info, []stint.KindInfo{declared}))
	mail := stint.NewKind[map[string]int]("mail", stint.Queue("slow"), stint.Priority(3), stint.Retry(declared.Retry), stint.Timeout(time.Minute), stint.Tag("a", "b"))
	other := stint.NewKind[map[string]int]("other")

	f := stint.NewFlow("import", stint.Tag("daily"), stint.URN("u"), stint.Metadata(json.RawMessage(`{"m": 1}`)), stint.Description("text"), stint.UniqueUntilEnded(),
		stint.Timeout(2*time.Hour))
	first := mail.Add(f, "first", map[string]int{"n": 1})
	in := f.Flow("pages", "import-pages", stint.Tag("inner"), stint.Timeout(time.Hour))
	one := other.Add(in, "one", map[string]int{"n": 2}, stint.Needs(first), stint.Queue("fast"), stint.Retry(retry.Fixed(9, time.Minute)), stint.MaxLosses(7),
		stint.Limited("smtp"), stint.Correlation("mine"), stint.Source("s"), stint.Priority(-2))
	mail.Add(in, "first", map[string]int{}, stint.NeedsEnd(one, first), stint.Delay(time.Hour), stint.StartWithin(time.Minute), stint.Tag("c"))
	sum := other.Add(f, "sum", map[string]int{}, stint.Needs(in.Node()), stint.Timeout(90*time.Second))
	other.Add(f, "", map[string]int{}, stint.NeedsFailure(sum, first), stint.Needs(in.Node()))
	byGo, err := f.Enqueue(t.Context(), stint.NewClient(s))
	must(t, err)
	_, err = s.Cancel(t.Context(), []stint.ID{byGo}, "")
	must(t, err)
	want := rowsOfFlow(t, s, byGo)

	const text = `{"kind": "import", "tags": ["daily"], "urn": "u", "metadata": {"m": 1}, "description": "text", "unique": "until-ended", "timeout": "2h", "jobs": [
	  {"name": "first", "kind": "mail", "args": {"n": 1}},
	  {"name": "pages", "kind": "import-pages", "tags": ["inner"], "timeout": "1h", "jobs": [
	    {"name": "one", "kind": "other", "args": {"n": 2}, "needs": ["first"], "queue": "fast", "retry": {"policy": "fixed", "retries": 9, "wait": "1m"}, "max_losses": 7, "limits": ["smtp"], "correlation": "mine",
	     "source": "s", "priority": -2},
	    {"name": "first", "kind": "mail", "needs_end": ["one", "first"], "delay": "1h", "start_within": "1m", "tags": ["c"]}]},
	  {"name": "sum", "kind": "other", "needs": ["pages"], "timeout": "1m30s", "queue": "", "urn": null},
	  {"kind": "other", "args": null, "needs_failure": ["sum", "first"], "needs": ["pages"]}]}`
	var done struct {
		ID        stint.ID
		Duplicate bool
		Jobs      map[string]stint.ID
	}
	call := func(sql string, args ...any) {
		t.Helper()
		done.Duplicate, done.Jobs = false, nil
		must(t, json.Unmarshal([]byte(value[string](t, s.pool, sql, args...)), &done))
	}
	_, err = s.pool.Exec(t.Context(), `delete from stint.idempotency`)
	must(t, err)
	call(`select stint.enqueue_flow($1::text::jsonb)::text`, text)
	bySQL := done.ID
	if got := rowsOfFlow(t, s, bySQL); !slices.Equal(got, want) || len(got) != 7 {
		t.Errorf("SQL stored\n%s\nGo\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for name, after := range map[string]stint.ID{"first": 1, "pages": 2, "pages/one": 3, "pages/first": 4, "sum": 5} {
		if done.Jobs[name] != bySQL+after {
			t.Errorf("%s is job %d, want %d", name, done.Jobs[name], bySQL+after)
		}
	}
	call(`select stint.enqueue_flow($1::text::jsonb)::text`, text)
	if done.ID != bySQL || !done.Duplicate || len(done.Jobs) != 0 {
		t.Errorf("again it is %+v", done)
	}

	const more = `[{"name": "sum", "kind": "other"}, {"name": "more", "kind": "mail", "needs": ["sum"]}, {"kind": "k", "jobs": [{"kind": "other", "needs": ["more"], "name": "x"}]}]`
	for range 2 {
		call(`select stint.add_to_flow($1, $2::text::jsonb)::text`, int64(bySQL), more)
		if done.ID != bySQL || done.Jobs["sum"] != bySQL+5 || len(done.Jobs) != 3 {
			t.Errorf("adding answers %+v", done)
		}
	}
	if n := value[int](t, s.pool, `select count(*) from stint.entries where flow = $1 and job is null`, int64(bySQL)); n != 7 {
		t.Errorf("%d are in the flow, want four, and one with a name and two without added", n)
	}
}

func TestWhatIsWrongWithAFlowInSQLIsSaid(t *testing.T) {
	s := verified(t)
	id := value[int64](t, s.pool, `select stint.enqueue_flow('{"kind": "f", "jobs": [{"kind": "k"}]}') -> 'id'`)
	value[string](t, s.pool, `select stint.enqueue_flow('{"kind": "f", "idempotency_key": "one", "jobs": []}')::text`)
	job := func(fields string) string {
		return `{"kind": "f", "jobs": [{"kind": "k", "name": "a"}, {"kind": "k", ` + fields + `}]}`
	}
	for flow, want := range map[string]string{
		`null`:                      "the jobs are no array",
		`[]`:                        "the jobs are no array",
		`{"kind": "f"}`:             "the jobs are no array",
		`{"kind": "f", "jobs": {}}`: "the jobs are no array",
		`{"jobs": []}`:              "null is no name",
		`{"kind": "f", "queue": "q", "jobs": []}`:                                                      "'queue' is no option of a flow",
		`{"kind": "f", "jobs": [], "needs": []}`:                                                       "a flow needs nothing: its jobs do",
		`{"kind": "f", "jobs": [], "idempotency_key": "one", "args": 1}`:                               "'args' is no option of a flow",
		`{"kind": "g", "jobs": [], "idempotency_key": "one"}`:                                          "has the idempotency key 'one', with another kind",
		`{"kind": "f", "jobs": [3]}`:                                                                   "jobs[0]: it is no JSON object",
		`{"kind": "f", "jobs": ["jobs"]}`:                                                              "jobs[0]: it is no JSON object",
		`{"kind": "f", "jobs": [{"kind": "k"}, {"kind": "g", "jobs": 7}]}`:                             "jobs[1]: its jobs are no array",
		`{"kind": "f", "jobs": [{"kind": "g", "jobs": [{"kind": "k", "needs": ["b"]}]}]}`:              `jobs[0]: jobs[0]: no job before it is called "b"`,
		`{"kind": "f", "jobs": [{"kind": "g", "name": "g", "jobs": [{"kind": "k", "needs": ["g"]}]}]}`: `jobs[0]: jobs[0]: no job before it is called "g"`,
		`{"kind": "f", "jobs": [{"kind": "g", "jobs": [], "unique": "until-ended"}]}`:                  "jobs[0]: 'unique' is no option of a flow",
		`{"kind": "f", "jobs": [{"kind": "k", "needs": ["b"]}, {"kind": "k", "name": "b"}]}`:           `jobs[0]: no job before it is called "b"`,
		job(`"name": "a"`):             "jobs[1]: 'a' is there twice",
		job(`"needs": "a"`):            "jobs[1]: what it needs is no array",
		job(`"needs": [null]`):         "jobs[1]: no job before it is called null",
		job(`"needs_end": [999999]`):   "no job of a flow has the id 999999",
		job(`"unique": "until-ended"`): `jobs[1]: only the flow as a whole is unique: jobs of the kind k need "unique": "none" here`,
		job(`"idempotency_key": "x"`):  "jobs[1]: 'idempotency_key' is no option of a job in a flow",
		job(`"prioritty": 1`):          "jobs[1]: 'prioritty' is no option of a job in a flow",
		job(`"priority": "high"`):      "jobs[1]: invalid input syntax for type integer",
		job(`"priority": 300`):         "jobs[1]: priority 300 is outside",
		job(`"max_losses": 1001`):      "jobs[1]: max_losses of 1001 is outside 0 to 1000",
		job(`"delay": "soon"`):         "jobs[1]: invalid input syntax for type interval",
		job(`"delay": "-1s"`):          "is negative",
		job(`"tags": "a"`):             "jobs[1]: cannot extract elements",
		job(`"limits": "a"`):           "jobs[1]: cannot extract elements",
		job(`"retry": "fixed:x"`):      "jobs[1]: fixed:x is no retry policy",
		job(`"name": " a"`):            "' a' is no name",
		job(`"name": ""`):              "",
	} {
		_, err := s.pool.Exec(t.Context(), `select stint.enqueue_flow($1::text::jsonb)`, flow)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: the error is %v, want %q", flow, err, want)
		}
	}
	_, err := s.Cancel(t.Context(), []stint.ID{stint.ID(id)}, "")
	must(t, err)
	for call, want := range map[string]string{
		`null, '[]'`:                          "which flow?",
		`1, null`:                             "the jobs are no array",
		`999999, '[{"kind": "k"}]'`:           "there is no flow 999999",
		fmt.Sprint(id, `, '[{"kind": "k"}]'`): fmt.Sprintf("the flow %d has ended", id),
		fmt.Sprint(id, `, '[{"kind": "k", "needs": [`, id, `]}]'`): "has ended",
	} {
		if _, err := s.pool.Exec(t.Context(), `select stint.add_to_flow(`+call+`)`); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", call, err, want)
		}
	}
	if n := value[int](t, s.pool, `select count(*) from stint.entries where job is null`); n != 6 {
		t.Errorf("%d jobs are stored, want those of three flows", n)
	}
}
