package dashboard

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/sample"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// worked is a store with so many jobs of a queue that completed, none of which is in
// the sums.
func worked(t *testing.T, n int, queue string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	done := make(chan struct{}, n)
	mux := stint.NewMux()
	mux.Add(stint.KindInfo{Name: "k"}, func(context.Context, *stint.Job) (json.RawMessage, error) {
		done <- struct{}{}
		return nil, nil
	})
	e, err := engine.New(s, mux, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- e.Run(ctx) }()
	if _, err := stint.NewClient(s).EnqueueMany(t.Context(), slices.Repeat([]stint.NewJob{{Kind: "k", Queue: queue, Args: json.RawMessage("{}")}}, n)); err != nil {
		t.Fatal(err)
	}
	for range n {
		<-done
	}
	stop()
	if err := <-left; err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhereMuchEndedFiguresAreThoseOfTheSumsAndOfAShorterTime(t *testing.T) {
	t.Parallel()
	const n = 5
	f := newFigures(worked(t, n, "q"), nil)
	ended := func(h history) (all int64) {
		for _, m := range h.Steps {
			all += m.Ended[0]
		}
		return all
	}
	for _, c := range []struct {
		readable int
		behind   bool
		charted  int64
		span     time.Duration
	}{{n + 1, false, n, time.Minute}, {n, true, 0, shortSpan}} {
		f.readable = c.readable
		h, err := f.historyOf(t.Context(), part{})
		if err != nil || h.Behind != c.behind || ended(h) != c.charted {
			t.Errorf("where %d are read the chart has %d, behind %t, error %v", c.readable, ended(h), h.Behind, err)
		}
		if from := time.Since(h.From) - time.Hour; c.behind != (from > report.SummedBy-time.Minute) {
			t.Errorf("where %d are read the chart begins %v earlier than an hour ago", c.readable, from)
		}
		if all, err := f.stats(t.Context(), report.StatsFilter{}, day); err != nil || (len(all.Stats) == 0) != c.behind {
			t.Errorf("where %d are read the statistics are %+v, error %v", c.readable, all.Stats, err)
		}
		if look, err := f.lately(t.Context(), part{kind: "k"}); err != nil || look.Span != c.span || look.Short() != c.behind || !c.behind && look.Ended != n {
			t.Errorf("where %d are read the figures are %+v of %v, error %v", c.readable, look.Activity, look.Span, err)
		}
	}
}

func TestAQueuesFiguresAreOfItsLastMinutes(t *testing.T) {
	end := time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC)
	back := func(minutes int) time.Time {
		return end.Truncate(time.Minute).Add(-time.Duration(minutes) * time.Minute)
	}
	q := &queueRow{}
	for _, s := range []report.Stats{
		{Start: back(0), Outcome: stint.OutcomeCompleted, Totals: report.Totals{Attempts: 1}},
		{Start: back(4), Outcome: stint.OutcomeFailed, Totals: report.Totals{Attempts: 10}},
		{Start: back(4), Outcome: stint.OutcomeLost, Totals: report.Totals{Attempts: 100}},
		{Start: back(5), Outcome: stint.OutcomeFailed, Totals: report.Totals{Attempts: 1000}},
		{Start: back(59), Outcome: stint.OutcomeCompleted, Totals: report.Totals{Attempts: 10_000}},
		{Start: back(60), Outcome: stint.OutcomeCompleted, Totals: report.Totals{Attempts: 100_000}},
		{Start: back(-2), Outcome: stint.OutcomeCompleted, Totals: report.Totals{Attempts: 1_000_000}},
	} {
		q.count(s, ended{End: end})
	}
	want := queueRow{Ended: 111, Failed: 110, Hour: make([]float64, 60)}
	want.Hour[59], want.Hour[55], want.Hour[54], want.Hour[0] = 1, 110, 1000, 10_000
	if diff := cmp.Diff(want, *q); diff != "" {
		t.Errorf("(-worked out +counted):\n%s", diff)
	}
}

// What is refreshed every few seconds, of pages that are left open, must not be much: each is as long here as it gets, or
// lists a hundred of what there may be any number of.
func TestARefreshIsSmall(t *testing.T) {
	templates, err := parse("")
	if err != nil {
		t.Fatal(err)
	}
	b := &Dashboard{templates: templates, config: Config{Log: slog.New(slog.NewTextHandler(t.Output(), nil))}}
	full, golden := b.fullPages(t), goldenPages(t)
	for _, p := range pages {
		if _, still := golden[p.name].data.(frozen); !still && full[p.name] == nil {
			t.Errorf("nothing is known of how much a refresh of the page %s is", p.name)
		}
	}
	for what, data := range full {
		name, _, _ := strings.Cut(what, " ")
		w := httptest.NewRecorder()
		b.render(w, httptest.NewRequest("GET", "/", nil), 200, shown{page: &pages[slices.IndexFunc(pages, func(p page) bool { return p.name == name })], Data: data, Now: noon, Sent: noon})
		raw := w.Body.Len()
		var small bytes.Buffer
		z := gzip.NewWriter(&small)
		_, _ = z.Write(w.Body.Bytes())
		_ = z.Close()
		if t.Logf("%s: %d bytes, %d compressed", what, raw, small.Len()); small.Len() > 30_000 || w.Code != 200 {
			t.Errorf("a refresh of the page %s is %d bytes, %d compressed; want at most 30,000", what, raw, small.Len())
		}
		if (what == "overview" || what == "queue") && raw < 60_000 {
			t.Errorf("a refresh of the page %s is %d bytes: it is not as long as it gets", what, raw)
		}
	}
}

// fullPages are pages that keep themselves up to date, with much to show.
func (b *Dashboard) fullPages(t *testing.T) map[string]any {
	random := rand.New(rand.NewPCG(1, 2))
	h := newHistory(noon.Add(-time.Hour), time.Minute, hour)
	for _, steps := range [][]sums{h.Steps, h.Before} {
		for i := range steps {
			m := &steps[i]
			m.Ran, m.Took, m.Waited = 1+random.Int64N(1e6), time.Duration(random.Int64N(1e15)), time.Duration(random.Int64N(1e15))
			m.TookBy, m.WaitedBy = make(report.Histogram, 90), make(report.Histogram, 90)
			for j := range m.TookBy {
				m.TookBy[j], m.WaitedBy[j] = random.Int64N(1e6), random.Int64N(1e6)
			}
			for j := range m.Ended {
				m.Ended[j] = random.Int64N(1e6)
			}
		}
	}
	distributed := h
	distributed.Distributed = true
	charts := func(p part) partFigures {
		return partFigures{History: seen(distributed), jobs: b.jobsOf(p), Zoom: zoom{Path: p.path()}}
	}
	before := func() time.Time {
		return noon.Add(-time.Duration(random.Int64N(int64(day)))).Truncate(time.Microsecond)
	} // as databases keep them
	name := func(of string) string { return fmt.Sprintf("%s-%06x", of, random.Int32N(1<<24)) }
	const many = 100 // of what there may be any number of

	all := map[string]any{}
	golden := goldenPages(t)
	overview := golden["overview"].data.(overviewPage)
	overview.History, overview.jobs, overview.Zoom = seen(h), b.jobsOf(part{}), zoom{Path: "/"}
	overview.Backlog.Value = grown(overview.Backlog.Value, many, func(g *report.DueGroup) { g.Value, g.Jobs = new(name("queue")), random.Int64N(1e6) })
	overview.Engines = grown(overview.Engines, many, func(e *engineRow) { e.Token, e.Instance = store.EngineID(random.Int64()), name("engine") })
	all["overview"] = overview

	jobs := golden["jobs"].data.(jobsPage)
	jobs.Jobs = grown(jobs.Jobs, jobsOnPage, func(j *stint.JobInfo) {
		j.ID, j.Kind, j.Queue, j.Created, j.Tags = stint.ID(random.Int32()), name("kind"), name("queue"), before(), []string{name("tag"), name("tag")}
	})
	all["jobs"] = jobs

	job := golden["job"].data.(jobPage)
	job.Steps = grown(job.Steps, shownSteps, func(s *view.Step) {
		s.Name, s.Began, s.Ended, s.Result = name("step"), before(), before(), json.RawMessage(`"`+name("result")+`"`)
	})
	job.History = grown(job.History, 100, func(a *attempt) { a.Started, a.Finished, a.Name = before(), before(), name("attempt") })
	job.Related = grown(job.Related, relatedJobs, func(j *stint.JobInfo) { j.ID, j.Kind, j.Created = stint.ID(random.Int32()), name("kind"), before() })
	all["job"] = job
	flow := golden["job-flow"].data.(jobPage)
	graph := *flow.Graph
	last := flow.ID
	graph.Nodes = grown(graph.Nodes, 2*many, func(n *report.FlowNode) {
		last++
		n.ID, n.Name, n.Layer = last, fmt.Sprint("node ", last), random.IntN(20)
		n.Created, n.Ready, n.Started, n.Finished = before(), before(), before(), before()
	})
	for _, edges := range []int{300, report.MostFlowEdges} { // as many as are told apart, and as many as there may be
		graph := graph
		graph.Edges = grown(graph.Edges, edges, func(e *report.FlowEdge) {
			e.From, e.To = graph.Nodes[random.IntN(len(graph.Nodes))].ID, graph.Nodes[random.IntN(len(graph.Nodes))].ID
		})
		flow.Graph, flow.Related = &graph, job.Related
		all[fmt.Sprintf("job of a flow with %d edges", edges)] = flow
	}

	questions := golden["questions"].data.(questionsPage)
	questions.Questions = grown(questions.Questions, many, func(q *store.OpenQuestion) {
		q.Job, q.Kind, q.Name, q.Asked, q.Until, q.Text = stint.ID(random.Int32()), name("kind"), name("question"), before(), before(), name("Pay this order?")
	})
	all["questions"] = questions

	queues := golden["queues"].data.(queuesPage)
	queues.Rows = grown(queues.Rows, many, func(q *queueRow) {
		q.Name, q.Queued, q.Oldest, q.Ended, q.Failed, q.Hour = name("queue"), new(random.Int64N(1e6)), before(), random.Int64N(1e6), random.Int64N(1e3), make([]float64, 60)
		for i := range q.Hour {
			q.Hour[i] = float64(random.IntN(1e6))
		}
	})
	all["queues"] = queues
	queue := golden["queue"].data.(queuePage)
	queue.partFigures, queue.AllEngines = charts(part{queue: "mail"}), overview.Engines
	all["queue"] = queue

	limits := golden["limits"].data.(limitsPage)
	limits.Rows = grown(limits.Rows, many, func(l *limitRow) {
		l.Name, l.Held, l.Asked, l.SetAt = name("limit"), random.Int64N(1e6), random.Int64N(1e6), before()
	})
	all["limits"] = limits
	limit := golden["limit-keys"].data.(limitPage)
	limit.Keys = grown(limit.Keys, shownKeys, func(g *gateRow) {
		g.Key = name("key")
		g.Gate, g.Held, g.Next = "tenant="+g.Key, random.Int64N(1e6), before()
	})
	all["limit"] = limit

	kind := golden["kind"].data.(kindPage)
	kind.partFigures = charts(part{kind: "send_invoice"})
	all["kind"] = kind

	schedules := golden["schedules"].data.(schedulesPage)
	schedules.Schedules = grown(schedules.Schedules, many, func(s **store.ScheduleInfo) {
		one := **s
		one.Name, one.Job.Kind, one.Next, one.LastJob, one.Fired = name("schedule"), name("kind"), before(), stint.ID(random.Int32()), random.Int64N(1e6)
		*s = &one
	})
	all["schedules"], all["schedule"] = schedules, golden["schedule"].data

	engines := golden["engines"].data.(enginesPage)
	engines.Engines = overview.Engines
	engines.Former = grown(engines.Former, shownFormer, func(e *formerRow) {
		e.Token, e.Instance, e.Host, e.At, e.Joined = store.EngineID(random.Int64()), name("engine"), name("host"), before(), before()
	})
	engines.Metrics = grown(engines.Metrics, many, func(m *report.Metrics) {
		m.Engine = engines.Engines[random.IntN(many)].Token
		m.Instance, m.Since, m.At = name("engine"), before(), before()
		m.Workers.Running, m.Workers.Run, m.Workers.Succeeded, m.Workers.Failed = random.Int64N(8), random.Int64(), random.Int64(), random.Int64()
		m.Retention.Deleted, m.Retention.Clean, m.Listener.Notifications, m.Listener.Timeouts = random.Int64(), before(), random.Int64(), random.Int64()
		m.Claimer.Claims, m.Claimer.Claimed, m.Workers.Cancelled, m.Claimer.Returned = random.Int64(), random.Int64(), random.Int64(), random.Int64()
	})
	all["engines"] = engines
	one := golden["engine"].data.(enginePage)
	one.Holds = grown(one.Holds, shownHeld, func(j *view.HeldJob) {
		j.ID, j.Kind, j.Queue, j.Started, j.Ready = stint.ID(random.Int32()), name("kind"), name("queue"), before(), before()
	})
	all["engine"] = one

	changes := golden["changes"].data.(changesPage)
	changes.Changes = grown(changes.Changes, changesOnPage, func(c *store.Change) {
		c.At, c.By, c.Subject, c.Details = before(), name("ann"), name("queue"), json.RawMessage(`{"why":"`+name("why")+`"}`)
	})
	all["database"], all["changes"] = golden["database"].data, changes
	return all
}

// grown repeats rows until there are n, and makes each one another.
func grown[T any](rows []T, n int, vary func(row *T)) []T {
	all := slices.Repeat(rows, n/len(rows)+1)[:n]
	for i := range all {
		vary(&all[i])
	}
	return all
}

// To find out that much ended is to read as much as is read at most, so it is not found out again at once.
func TestThatMuchEndedIsBelievedForAWhile(t *testing.T) {
	t.Parallel()
	f := newFigures(worked(t, 5, "q"), nil)
	for _, c := range []struct {
		readable int
		much     bool
	}{{6, false}, {5, true}, {6, true}} {
		f.readable = c.readable
		if much, err := f.much(t.Context()); err != nil || much != c.much {
			t.Errorf("where %d are read it says %t, error %v", c.readable, much, err)
		}
	}
	f.muchAt.Store(time.Now().Add(-seldomLook).UnixNano())
	if much, err := f.much(t.Context()); err != nil || much {
		t.Errorf("after a while it says %t, error %v", much, err)
	}
}

// Who loads a page is told what is there now; an open page is told what was there lately.
func TestWhatChangesSeldomIsReadSeldomForOpenPagesOnly(t *testing.T) {
	t.Parallel()
	st := worked(t, 0, "q")
	f := newFigures(st, nil)
	for _, c := range []struct {
		enqueue, hurried, old, empty bool
	}{{empty: true}, {enqueue: true, hurried: true, empty: true}, {}, {hurried: true, old: true}} {
		if c.enqueue {
			if _, err := stint.NewClient(st).Enqueue(t.Context(), stint.NewJob{Kind: "k", Args: json.RawMessage("{}")}); err != nil {
				t.Fatal(err)
			}
		}
		ctx := t.Context()
		if c.hurried {
			ctx = sample.Hurried(ctx)
		}
		if c.old {
			f.seldom, f.seldomAt = seldom{Empty: true}, f.seldomAt.Add(-seldomLook)
		}
		if got, err := f.seldomOf(ctx); err != nil || got.Empty != c.empty {
			t.Errorf("of %+v it says %+v, error %v", c, got, err)
		}
	}
}
