package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/api"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/remote"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

const (
	adminToken  = "token-of-an-admin-0000001"
	viewerToken = "token-of-a-viewer-0000001"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// anyStore is one that engines work on and a server stands in front of.
type anyStore interface {
	store.Store
	store.StepKeeper
	api.Store
}

// onBoth tests with a store of either kind, and the same over a server.
func onBoth(t *testing.T, test func(t *testing.T, store anyStore, server *remote.Store)) {
	t.Run("sqlite", func(t *testing.T) {
		store, server := open(t)
		test(t, store, server)
	})
	t.Run("postgres", func(t *testing.T) {
		store, err := postgres.Open(t.Context(), pgtest.New(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Close)
		test(t, store, over(t, store, adminToken))
	})
}

// open returns a store, and the same over a server with an admin's token.
func open(t *testing.T) (anyStore, *remote.Store) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store, over(t, store, adminToken)
}

// over serves a store, and returns it as who has a token sees it.
func over(t *testing.T, db anyStore, token string) *remote.Store {
	t.Helper()
	g, err := guard.New(guard.Config{Tokens: []guard.Token{
		guard.NewToken("ann", guard.Admin, adminToken), guard.NewToken("vic", guard.Viewer, viewerToken),
	}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(g.Wrap(api.New(db, api.Config{
		Bury: func(ctx context.Context, token store.EngineID, why string) (int, error) {
			return engine.Bury(ctx, db, token, why)
		},
		OnError: func(_ context.Context, operation string, err error) { t.Errorf("%s: %v", operation, err) },
	})))
	t.Cleanup(server.Close)
	s, err := remote.Open(server.URL, remote.Config{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

var (
	mail   = stint.NewKind[map[string]any]("mail", stint.Queue("post"), stint.Tag("of the kind"), stint.Timeout(time.Minute), stint.Retry(retry.Fixed(1, time.Hour)), stint.Priority(7))
	broken = stint.NewKind[struct{}]("broken", stint.Retry(retry.None()))
)

// lively fills a db with a bit of everything.
func lively(t *testing.T, st anyStore) {
	t.Helper()
	ctx := t.Context()
	client := stint.NewClient(st)
	mux := stint.NewMux()
	stint.HandleResult(mux, stint.ResultKind[map[string]any, string]{Kind: mail}, func(context.Context, *stint.Job, map[string]any) (string, error) { return "<sent> & gone", nil })
	stint.Handle(mux, broken, func(context.Context, *stint.Job, struct{}) error { return errors.New("no <paper>") })
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		_, err := mail.Enqueue(ctx, client, map[string]any{"to": "a > b & c", "n": json.Number("12345678901234567890")}, stint.Tag("t"), stint.URN("urn:x"),
			stint.Source("web"), stint.Metadata(json.RawMessage(`{"region":"<eu>"}`)), stint.Correlation([]string{"", "c", ""}[i]))
		check(err)
		_, err = broken.Enqueue(ctx, client, struct{}{})
		check(err)
	}
	e, err := engine.New(st, mux, engine.Config{Instance: "one"})
	check(err)
	n, err := e.RunReady(ctx, nil)
	check(err)
	if n != 6 {
		t.Fatalf("%d jobs ran", n)
	}
	_, err = mail.Enqueue(ctx, client, nil, stint.Delay(time.Hour), stint.StartWithin(time.Hour), stint.MaxLosses(0))
	check(err)
	id, err := mail.Enqueue(ctx, client, nil, stint.RunAt(time.Now().Add(48*time.Hour)))
	check(err)
	_, err = st.Cancel(ctx, []stint.ID{id}, "not <wanted>")
	check(err)
	_, err = st.Pause(ctx, "a/b é", "ann", "it leaks")
	check(err)
	check(client.Schedule(ctx, "ann@h",
		mail.Schedule("nightly", cron.MustParse("30 2 * * *"), map[string]any{"to": "<ops>"}, stint.Zone("Europe/Berlin"), stint.Unique(), stint.MissedAll(3), stint.NotAfter(time.Now().Add(1000*time.Hour))),
		broken.Schedule("by/function", cron.Function("moon"), struct{}{})))
	_, err = st.RunSchedule(ctx, "nightly")
	check(err)
	_, err = st.PauseSchedule(ctx, "by/function", "ann", "no moon")
	check(err)

	// An engine that holds a job.
	check(st.Join(ctx, store.EngineInfo{Token: holder, Instance: "two", Host: "h", Slots: 2, TimeToLive: time.Hour, Kinds: []string{"mail"}, Queues: []string{"post"}}, nil))
	claim, err := st.Claim(ctx, store.ClaimRequest{Engine: holder, Serial: 1, Nonce: 1, Lane: store.LaneOf("post", 7, store.PartNormal, "").ID, Max: 1})
	check(err)
	if len(claim.Positions) != 1 {
		t.Fatalf("the engine took %v", claim)
	}
	_, err = st.Heartbeat(ctx, holder, store.Heartbeat{Number: 1, Running: claim.Positions, Started: map[store.Position]time.Time{claim.Positions[0]: time.Now().Add(-time.Minute)}})
	check(err)
	entries, err := st.Fetch(ctx, claim.Positions)
	check(err)
	for i, result := range []string{`"<c> & d"`, `12345678901234567890`, `null`, `"` + strings.Repeat("x", view.MostResult) + `"`} {
		_, err = st.RecordSteps(ctx, holder, []store.StepRecord{{Claim: claim.ClaimRef, Pos: entries[0].Pos, Job: entries[0].ID, Name: fmt.Sprintf("%d <b>", i), Began: time.Now(), Ended: time.Now(), Result: []byte(result)}})
		check(err)
	}
	for i, value := range []string{`"<c> & d"`, `12345678901234567890`, `null`, `"` + strings.Repeat("x", view.MostResult) + `"`} {
		check(st.Signal(ctx, stint.Tx{}, entries[0].ID, stint.Signal{Name: fmt.Sprintf("%d <b>", i), Value: []byte(value), Key: []string{"", "a", "", "b"}[i]}))
	}
	talk := store.LogRecord{Claim: claim.ClaimRef, Pos: entries[0].Pos, Job: entries[0].ID, RunLog: stint.RunLog{Progress: &stint.Progress{N: 1, At: time.Now(), Fraction: 1.0 / 3, Text: "<a>"}}}
	for i, text := range []string{"<c> & d", "", "ünï", strings.Repeat("x", stint.MaxLine), "e"} {
		talk.Lines = append(talk.Lines, stint.LogLine{N: 2*i + 1, At: time.Now(), Level: slog.Level(4 * i), Text: text})
	}
	_, err = st.Heartbeat(ctx, holder, store.Heartbeat{Number: 1, Running: []store.Position{entries[0].Pos}, Logs: []store.LogRecord{talk}})
	check(err)
	_, err = st.Acquire(ctx, "retention", holder, time.Hour)
	check(err)
	check(st.DeclareLimits(ctx, map[string]stint.LimitRule{"smtp": {AtOnce: 3}}))
	check(st.SetLimit(ctx, "tenant", stint.LimitRule{AtOnce: 2, Starts: 1, Per: time.Hour}, "ann", "it's <slow>"))
	_, err = st.Permits(ctx, holder, store.PermitRequest{Take: []store.Taking{{Gates: []store.TakingGate{{Gate: "smtp"}, {Gate: "tenant=a/b é"}}, Want: 1}}})
	check(err)
	check(st.WriteMetrics(ctx, report.Metrics{Instance: "one", Since: time.Now(), At: time.Now(), Kinds: map[string]report.Durations{"mail": {Count: 1, Total: 5}}}))
}

// holder is a token that no JSON number holds.
const holder store.EngineID = 1<<63 - 5

// asJSON is how people see what comes of a call: what is said of it, or its error. An
// empty list is one, whether it is nil or not.
func asJSON(t *testing.T, v any, err error) string {
	t.Helper()
	if err != nil {
		return "error: " + err.Error()
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	if b.String() == "null\n" {
		return "[]\n"
	}
	return b.String()
}

// call is a question to a store.
type call[S any] func(ctx context.Context, s S) (any, error)

func TestAServerTellsWhatItsStoreTells(t *testing.T) {
	onBoth(t, tellsTheSame)
}

func tellsTheSame(t *testing.T, st anyStore, server *remote.Store) {
	lively(t, st)
	at := time.Now()
	filters := map[string]store.Filter{
		"all": {}, "page": {Limit: 3, Before: 9}, "newer": {After: 3, Before: 9}, "newer ones of a kind": {After: 2, Kind: "mail"}, "states": {States: []stint.State{stint.Completed, stint.Scheduled}}, "kind": {Kind: "mail"}, "queue": {Queue: "post"},
		"tag": {Tag: "t"}, "urn": {URN: "urn:x"}, "source": {Source: "web"}, "correlation": {Correlation: "c"}, "schedule": {Schedule: "nightly"},
		"outcome": {Outcome: stint.OutcomeFailed}, "error": {Error: "<paper>"}, "class": {Class: "errors.errorString"}, "attempts": {Attempts: 1}, "longer": {Longer: time.Nanosecond},
		"created": {Created: store.TimeRange{From: at.Add(-time.Hour), To: at.Add(time.Hour)}}, "due": {Due: store.TimeRange{From: at.Add(time.Minute)}}, "finished": {Finished: store.TimeRange{To: at}},
		"faulty": {Faulty: true}, "flow": {Flow: 4}, "flows": {Flows: true}, "nothing": {Queue: "nowhere"},
	}
	type both interface {
		store.Inspector
		store.Operator
		store.Pauser
		store.ScheduleKeeper
		store.StepReader
		store.Signaler
		store.Questioner
		store.LogReader
		report.LiveStats
		report.ErrorAnalyst
		Engines(ctx context.Context) ([]store.EngineInfo, error)
		EngineMetrics(ctx context.Context) ([]report.Metrics, error)
		Leases(ctx context.Context) ([]store.Lease, error)
		Limits(ctx context.Context) ([]store.LimitInfo, error)
		Gates(ctx context.Context, limit string, most int) ([]store.GateInfo, error)
	}
	questions := map[string]call[both]{
		"Counts":           func(ctx context.Context, s both) (any, error) { return s.Counts(ctx) },
		"Kinds":            func(ctx context.Context, s both) (any, error) { return s.Kinds(ctx) },
		"Job of none":      func(ctx context.Context, s both) (any, error) { return s.Job(ctx, 99) },
		"Steps of none":    func(ctx context.Context, s both) (any, error) { return s.Steps(ctx, 99) },
		"Log of none":      func(ctx context.Context, s both) (any, error) { return s.Log(ctx, 99, store.LogFilter{}) },
		"Progress of none": func(ctx context.Context, s both) (any, error) { return s.Progress(ctx, 99) },
		"Signals of none":  func(ctx context.Context, s both) (any, error) { return s.Signals(ctx, 99) },
		"Signal to one that ended": func(ctx context.Context, s both) (any, error) {
			return nil, s.Signal(ctx, stint.Tx{}, 1, stint.Signal{Name: "late", Value: []byte("1")})
		},
		"Signal to none": func(ctx context.Context, s both) (any, error) {
			return nil, s.Signal(ctx, stint.Tx{}, 99, stint.Signal{Name: "to nobody", Value: []byte("1")})
		},
		"Paused":             func(ctx context.Context, s both) (any, error) { return s.Paused(ctx) },
		"Queues":             func(ctx context.Context, s both) (any, error) { return s.Queues(ctx) },
		"Schedules":          func(ctx context.Context, s both) (any, error) { return s.Schedules(ctx) },
		"Schedule":           func(ctx context.Context, s both) (any, error) { return s.Schedule(ctx, "nightly") },
		"Schedule of slash":  func(ctx context.Context, s both) (any, error) { return s.Schedule(ctx, "by/function") },
		"Schedule of none":   func(ctx context.Context, s both) (any, error) { return s.Schedule(ctx, "x") },
		"Schedule of dots":   func(ctx context.Context, s both) (any, error) { return s.Schedule(ctx, "..") },
		"Schedule of no one": func(ctx context.Context, s both) (any, error) { return s.Schedule(ctx, "") },
		"Run while busy":     func(ctx context.Context, s both) (any, error) { return s.RunSchedule(ctx, "nightly") },
		"Analyze": func(ctx context.Context, s both) (any, error) {
			return s.Analyze(ctx, report.AnalyticsFilter{Queue: "post", Tag: "of the kind", At: at})
		},
		"AnalyzeKinds": func(ctx context.Context, s both) (any, error) {
			return s.AnalyzeKinds(ctx, report.AnalyticsFilter{At: at})
		},
		"DueBy": func(ctx context.Context, s both) (any, error) {
			return s.DueBy(ctx, "args.to", report.AnalyticsFilter{At: at.Add(2 * time.Hour)}, 5000)
		},
		"DueBy nonsense": func(ctx context.Context, s both) (any, error) {
			return s.DueBy(ctx, "colour", report.AnalyticsFilter{}, 0)
		},
		"Engines": func(ctx context.Context, s both) (any, error) { return s.Engines(ctx) },
		"Metrics": func(ctx context.Context, s both) (any, error) { return s.EngineMetrics(ctx) },
		"Leases":  func(ctx context.Context, s both) (any, error) { return s.Leases(ctx) },
		"Limits":  func(ctx context.Context, s both) (any, error) { return s.Limits(ctx) },
		"Gates":   func(ctx context.Context, s both) (any, error) { return s.Gates(ctx, "tenant", 5) },
		"Errors":  func(ctx context.Context, s both) (any, error) { return s.Errors(ctx, report.ErrorFilter{}) },
		"Errors of some": func(ctx context.Context, s both) (any, error) {
			return s.Errors(ctx, report.ErrorFilter{Kind: "mail", Queue: "post", Since: at.Add(-time.Hour), State: report.ErrorsOpen})
		},
		"Errors of a state": func(ctx context.Context, s both) (any, error) {
			return s.Errors(ctx, report.ErrorFilter{State: report.ErrorsMuted})
		},
		"Errors of a key": func(ctx context.Context, s both) (any, error) {
			return s.Errors(ctx, report.ErrorFilter{Key: "0123456789abcdef"})
		},
		"Gates of none": func(ctx context.Context, s both) (any, error) { return s.Gates(ctx, "fax", 5) },
	}
	for id := range stint.ID(10) {
		questions["Job "+(id+1).String()] = func(ctx context.Context, s both) (any, error) { return s.Job(ctx, id+1) }
		questions["Steps of "+(id+1).String()] = func(ctx context.Context, s both) (any, error) { return s.Steps(ctx, id+1) }
		for name, f := range map[string]store.LogFilter{"": {}, "first of ": {Limit: 2}, "last of ": {Limit: 2, Last: true}, "rest of ": {Run: int64(id + 1), N: 3}} {
			questions["Log: "+name+(id+1).String()] = func(ctx context.Context, s both) (any, error) { return s.Log(ctx, id+1, f) }
		}
		questions["Progress of "+(id+1).String()] = func(ctx context.Context, s both) (any, error) { return s.Progress(ctx, id+1) }
		questions["Signals of "+(id+1).String()] = func(ctx context.Context, s both) (any, error) { return s.Signals(ctx, id+1) }
	}
	for name, f := range filters {
		questions["Jobs "+name] = func(ctx context.Context, s both) (any, error) { return s.Jobs(ctx, f) }
		questions["Find "+name] = func(ctx context.Context, s both) (any, error) { return s.Find(ctx, f) }
	}
	for name, ask := range questions {
		t.Run(name, func(t *testing.T) {
			want, err := ask(t.Context(), st)
			got, gotErr := ask(t.Context(), server)
			if diff := cmp.Diff(asJSON(t, want, err), asJSON(t, got, gotErr)); diff != "" {
				t.Errorf("over the server it is another (-store +server):\n%s", diff)
			}
			for _, known := range []error{stint.ErrNotFound, stint.ErrEnded, stint.ErrNoSchedule, stint.ErrInvalid} {
				if errors.Is(err, known) != errors.Is(gotErr, known) {
					t.Errorf("the error is %v, and over the server %v: only one is %v", err, gotErr, known)
				}
			}
		})
	}
}

func TestAServerTellsWhatIsSeenOfAStore(t *testing.T) {
	onBoth(t, showsTheSame)
}

func showsTheSame(t *testing.T, st anyStore, server *remote.Store) {
	lively(t, st)
	ctx := t.Context()
	same := func(name string, want, got any, err, gotErr error) {
		t.Helper()
		if diff := cmp.Diff(asJSON(t, want, err), asJSON(t, got, gotErr)); diff != "" {
			t.Errorf("%s: over the server it is another (-store +server):\n%s", name, diff)
		}
	}
	running, err := st.Find(ctx, store.Filter{States: []stint.State{stint.Running}})
	if err != nil || len(running) != 1 {
		t.Fatal(running, err)
	}
	job, err := view.JobOf(ctx, st, running[0])
	got, gotErr := ops.ShowJob.Call(ctx, server, ops.ShowInput{ID: int64(running[0])})
	same("a job", job, got, err, gotErr)
	if on := got.RunsOn; on == nil || on.Instance != "two" || on.State != view.Working || on.Started.IsZero() || time.Since(on.Started) < 50*time.Second {
		t.Errorf("it runs on %+v", on)
	}
	if len(got.Steps) != 4 || got.Steps[3].Bytes != view.MostResult+2 {
		t.Errorf("its steps are %+v", got.Steps)
	}
	if len(got.Signals) != 4 || got.Signals[3].Bytes != view.MostResult+2 {
		t.Errorf("its signals are %+v", got.Signals)
	}
	if len(got.Log) != 5 || got.LastProgress() == nil || got.LastProgress().Text != "<a>" {
		t.Errorf("it said %+v, and is at %+v", got.Log, got.Progress)
	}
	if none, err := ops.ReadLog.Call(ctx, server, ops.LogInput{JobName: ops.JobName{ID: 99}}); !errors.Is(err, stint.ErrNotFound) {
		t.Errorf("the log of a job that there is not: %v, %v", none, err)
	}
	if none, err := ops.ListSignals.Call(ctx, server, ops.JobName{ID: 99}); !errors.Is(err, stint.ErrNotFound) {
		t.Errorf("the signals of a job that there is not: %v, %v", none, err)
	}
	if none, err := ops.ListSteps.Call(ctx, server, ops.JobName{ID: 99}); !errors.Is(err, stint.ErrNotFound) {
		t.Errorf("the steps of a job that there is not: %v, %v", none, err)
	}
	e, err := view.EngineOf(ctx, st, holder)
	gotEngine, gotErr := ops.ShowEngine.Call(ctx, server, ops.EngineToken{Token: int64(holder)})
	same("an engine", e, view.Engine{EngineInfo: gotEngine.Info(), Holds: gotEngine.Holds}, err, gotErr)
	if _, err := ops.ShowEngine.Call(ctx, server, ops.EngineToken{Token: 5}); !errors.Is(err, store.ErrBuried) {
		t.Errorf("an engine that there is not: %v", err)
	}
	for _, name := range []string{"nightly", "by/function"} {
		s, err := view.ScheduleOf(ctx, st, name)
		told, gotErr := ops.ShowSchedule.Call(ctx, server, ops.ScheduleName{Schedule: name})
		gotSchedule := told.Shown()
		same(name, s, gotSchedule, err, gotErr)
		if errors.Is(s.Problem, cron.ErrUnknownFunc) != errors.Is(gotSchedule.Problem, cron.ErrUnknownFunc) {
			t.Errorf("%s: the problem is %v, and over the server %v", name, s.Problem, gotSchedule.Problem)
		}
	}
	for _, f := range []report.StatsFilter{{}, {Kind: "mail", Every: time.Hour}, {Settled: true}, {To: time.Now().Add(-2 * time.Hour)}, {Queue: "post", From: time.Now().Add(-time.Hour), To: time.Now()}} {
		sums, err := st.Stats(ctx, f)
		in, wrong := ops.StatsOf(f)
		if wrong != nil {
			t.Fatal(wrong)
		}
		kinds, gotErr := ops.Items(ops.Stats.Call(ctx, server, in))
		same("stats", report.StatsByKind(sums), kinds, err, gotErr)
	}
	codes := func(all []report.Finding, err error) []string {
		var codes []string
		for _, f := range all {
			codes = append(codes, f.Code)
		}
		if err != nil {
			t.Fatal(err)
		}
		return codes
	}
	for _, deep := range []bool{false, true} {
		want := codes(report.Diagnose(ctx, st, report.Options{Deep: deep}))
		if got := codes(ops.Items(ops.Diagnose.Call(ctx, server, ops.DoctorInput{Deep: deep}))); !slices.Equal(want, got) {
			t.Errorf("the doctor finds %v, and over the server %v", want, got)
		}
	}
	if now, err := server.Now(ctx); err != nil || time.Since(now).Abs() > time.Minute {
		t.Errorf("it is %v, %v", now, err)
	}
}

func TestWhatIsEnqueuedOverAServerIsAsAStoreWouldHaveIt(t *testing.T) {
	onBoth(t, storesTheSame)
}

func storesTheSame(t *testing.T, store anyStore, server *remote.Store) {
	lively(t, store) // which declares the kinds
	job := func(opts ...stint.Option) stint.NewJob {
		j := stint.NewJob{Kind: "mail", Args: json.RawMessage(`{"a":"<b>","n":12345678901234567890}`)}
		for _, o := range opts {
			o(&j)
		}
		return j
	}
	date := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	for name, j := range map[string]stint.NewJob{
		"nothing said": job(),
		"all said": job(stint.Queue("q"), stint.Priority(-3), stint.Delay(90*time.Minute), stint.Retry(retry.Exponential(3, time.Second).Jitter(0.25)), stint.Timeout(90*time.Second),
			stint.StartWithin(time.Hour), stint.MaxLosses(0), stint.Tag("a", "b"), stint.URN("u"), stint.Source("s"), stint.Metadata(json.RawMessage(`{"m":">"}`)),
			stint.Correlation("c")),
		"dates":       job(stint.RunAt(date), stint.StartBy(date.Add(time.Hour))),
		"of the kind": mail.Declaration().Job(json.RawMessage(`{}`)),
		"by error":    job(stint.Retry(retry.ByError(retry.On("timeout", retry.None()), retry.Otherwise(retry.Forever(time.Minute))))),
	} {
		t.Run(name, func(t *testing.T) {
			var told [2]*stint.JobInfo
			for i, s := range []stint.Enqueuer{store, server} {
				id, err := stint.NewClient(s).Enqueue(t.Context(), j)
				if err != nil {
					t.Fatal(err)
				}
				if told[i], err = store.Job(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				info := told[i]
				if j.Correlation == "" {
					info.Correlation = ""
				}
				if j.RunAt.IsZero() { // then times count from the enqueue
					for _, t := range []*time.Time{&info.Due, &info.StartBy} {
						if !t.IsZero() {
							*t = time.Unix(0, 0).UTC().Add(t.Sub(info.Created))
						}
					}
				}
				info.ID, info.Created = 0, time.Time{}
			}
			if diff := cmp.Diff(asJSON(t, told[0], nil), asJSON(t, told[1], nil)); diff != "" {
				t.Errorf("it is stored differently (-by the store +by the server):\n%s", diff)
			}
		})
	}
}

func TestErrorsOfEnqueuingAreThoseOfAStore(t *testing.T) {
	store, server := open(t)
	ctx := t.Context()
	client := stint.NewClient(server)
	first, err := client.Enqueue(ctx, stint.NewJob{Kind: "a", IdempotencyKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := client.EnqueueReceipt(ctx, stint.NewJob{Kind: "a", IdempotencyKey: "k"}); err != nil || r.ID != first || !r.Duplicate {
		t.Errorf("a repetition is answered with %+v, %v", r, err)
	}
	_, err = client.Enqueue(ctx, stint.NewJob{Kind: "b", IdempotencyKey: "k"})
	_, want := stint.NewClient(store).Enqueue(ctx, stint.NewJob{Kind: "b", IdempotencyKey: "k"})
	conflict, ok := errors.AsType[*stint.KeyConflictError](err)
	if !ok || conflict.ID != first || conflict.Key != "k" || !errors.Is(err, stint.ErrKeyConflict) || err.Error() != want.Error() {
		t.Errorf("a conflict is %v, want %v", err, want)
	}
	// What only the store's clock finds.
	late := stint.NewJob{Kind: "a", Delay: time.Hour, StartBy: time.Now().Add(time.Minute)}
	_, err = client.Enqueue(ctx, late)
	_, want = stint.NewClient(store).Enqueue(ctx, late)
	invalid, ok := errors.AsType[*stint.InvalidError](err)
	wanted, _ := errors.AsType[*stint.InvalidError](want)
	if !ok || *invalid != *wanted {
		t.Errorf("what can never be right is %v, want %v", err, want)
	}
	if _, err := server.Enqueue(ctx, stint.Tx{Handle: 1}, []stint.NewJob{{Kind: "a"}}); !errors.Is(err, stint.ErrInvalid) {
		t.Errorf("a transaction is answered with %v", err)
	}
	if _, err := server.Enqueue(ctx, stint.Tx{}, make([]stint.NewJob, 10_001)); !errors.Is(err, stint.ErrInvalid) {
		t.Errorf("too many jobs are answered with %v", err)
	}
	if _, err := server.Enqueue(ctx, stint.Tx{}, []stint.NewJob{{Kind: "a", Member: &stint.Member{Into: 1, Call: true, Place: -1}}}); !errors.Is(err, stint.ErrInvalid) {
		t.Errorf("a call is answered with %v", err)
	}
	if n, err := store.Counts(ctx); err != nil || n[stint.Available] != 1 {
		t.Errorf("stored are %v, %v", n, err)
	}
}

func TestVerbsDoOverAServerWhatTheySay(t *testing.T) {
	st, server := open(t)
	ctx := t.Context()
	client := stint.NewClient(server)
	jobs := slices.Repeat([]stint.NewJob{{Kind: "a", Delay: time.Hour}}, 1300)
	ids, err := client.EnqueueMany(ctx, jobs)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := server.Find(ctx, store.Filter{Limit: 5000}); err != nil || len(found) != 1300 {
		t.Errorf("%d are found, %v", len(found), err)
	}
	if listed, err := server.Jobs(ctx, store.Filter{Limit: 450}); err != nil || len(listed) != 450 || listed[449].ID != ids[1300-450] {
		t.Errorf("%d are listed, %v", len(listed), err)
	}
	cancelled, err := server.Cancel(ctx, []stint.ID{ids[0], 99_999}, "why <not>")
	if diff := cmp.Diff(map[stint.ID]stint.CancelStatus{ids[0]: stint.CancelledNow, 99_999: stint.CancelNotFound}, cancelled); diff != "" || err != nil {
		t.Errorf("cancelled (-want +got): %s %v", diff, err)
	}
	if j, err := st.Job(ctx, ids[0]); err != nil || j.Reason != "why <not>" {
		t.Errorf("the reason is %q, %v", j.Reason, err)
	}
	cancelChosen := func(f store.Filter) iter.Seq2[ops.Done[stint.CancelStatus], error] {
		return ops.Chosen(f, func(s ops.Selection) (ops.Done[stint.CancelStatus], error) {
			s.Each = true
			return ops.CancelJobs.Call(ctx, server, ops.CancelInput{Body: ops.Cancelling{Selection: s}})
		})
	}
	sum := func(answers map[stint.ID]stint.CancelStatus, into map[stint.CancelStatus]int) {
		for _, a := range answers {
			into[a]++
		}
	}
	counts := map[stint.CancelStatus]int{}
	for some, err := range cancelChosen(store.Filter{Kind: "a", States: []stint.State{stint.Scheduled}, Limit: 1200}) {
		if err != nil {
			t.Fatal(err)
		}
		sum(some.Answers, counts)
	}
	if counts[stint.CancelledNow] != 1200 || len(counts) != 1 {
		t.Errorf("chosen by a filter, %v were cancelled", counts)
	}
	for some, err := range cancelChosen(store.Filter{Before: ids[3]}) {
		if err != nil || len(some.Answers) != 2 || some.Answers[ids[1]] != stint.CancelledNow {
			t.Errorf("before %d: %v, %v", ids[3], some, err)
		}
	}
	again, err := server.Retry(ctx, ids[1299:], stint.RerunOptions{Delay: 10 * time.Hour})
	if err != nil || again[ids[1299]].Answer != stint.RerunRecovered {
		t.Errorf("run again came to %v, %v", again, err)
	}
	if j, err := st.Job(ctx, again[ids[1299]].ID); err != nil || j.Due.Sub(j.Created).Round(time.Minute) != 10*time.Hour {
		t.Errorf("it is due at %v, %v", j.Due, err)
	}
	if once, err := server.Retry(ctx, ids[1299:], stint.RerunOptions{Once: true}); err != nil || once[ids[1299]].Answer != stint.RerunRecoveredBefore {
		t.Errorf("once again came to %v, %v", once, err)
	}
	if twice, err := server.Retry(ctx, ids[1299:], stint.RerunOptions{}); err != nil || twice[ids[1299]].Answer != stint.RerunRecovered {
		t.Errorf("without Once it came to %v, %v", twice, err)
	}
	answers := map[stint.RerunStatus]int{}
	for some, err := range ops.Chosen(store.Filter{States: []stint.State{stint.Cancelled}, Limit: 3}, func(s ops.Selection) (ops.Done[stint.RerunResult], error) {
		s.Each = true
		return ops.RetryJobs.Call(ctx, server, ops.RetryOf(s, stint.RerunOptions{}))
	}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range some.Answers {
			answers[r.Answer]++
		}
	}
	if diff := cmp.Diff(map[stint.RerunStatus]int{stint.RerunRecovered: 2, stint.RerunRecoveredBefore: 1}, answers); diff != "" {
		t.Errorf("by a filter (-want +got):\n%s", diff)
	}
	gone, err := server.Delete(ctx, []stint.ID{ids[0], ids[50]})
	if diff := cmp.Diff(map[stint.ID]store.DeleteStatus{ids[0]: store.DeletedNow, ids[50]: store.DeleteNotFinal}, gone); diff != "" || err != nil {
		t.Errorf("deleted (-want +got): %s %v", diff, err)
	}
	n := 0
	for some, err := range ops.Chosen(store.Filter{}, func(s ops.Selection) (ops.Done[store.DeleteStatus], error) {
		return ops.DeleteJobs.Call(ctx, server, ops.DeleteInput{Body: s})
	}) {
		if err != nil {
			t.Fatal(err)
		}
		n += some.Counts[string(store.DeletedNow)]
	}
	if left, err := st.Counts(ctx); err != nil || n != 1202 || left[stint.Cancelled] != 0 {
		t.Errorf("%d were deleted, left are %v, %v", n, left, err)
	}
}

func TestQueuesSchedulesEnginesAndLeasesAreChanged(t *testing.T) {
	st, server := open(t)
	lively(t, st)
	ctx := t.Context()
	for _, queue := range []string{"x/y é?#%", "..", "plain"} {
		if changed, err := server.Pause(ctx, queue, "nobody", "why"); !changed || err != nil {
			t.Errorf("%s: paused: %v, %v", queue, changed, err)
		}
		if changed, err := server.Pause(ctx, queue, "", ""); changed || err != nil {
			t.Errorf("%s: paused again: %v, %v", queue, changed, err)
		}
		if paused, err := st.Paused(ctx); err != nil || !slices.Contains(paused, queue) {
			t.Errorf("paused are %v, %v", paused, err)
		}
		if changed, err := server.Resume(ctx, queue); !changed || err != nil {
			t.Errorf("%s: resumed: %v, %v", queue, changed, err)
		}
	}
	if _, err := server.Pause(ctx, "*", "", ""); !errors.Is(err, stint.ErrInvalid) {
		t.Errorf("every queue: %v", err)
	}

	rule := stint.LimitRule{AtOnce: 7, Starts: 100, Per: time.Second, Burst: 5}
	for _, limit := range []string{"x/y-é?#%", "..", "smtp"} {
		if err := server.SetLimit(ctx, limit, rule, "nobody", "why"); err != nil {
			t.Errorf("%s: set: %v", limit, err)
		}
		all, err := st.Limits(ctx)
		if i := slices.IndexFunc(all, func(l store.LimitInfo) bool { return l.Name == limit }); err != nil || i < 0 || all[i].Rule != rule.String() || all[i].By != "ann" || all[i].Why != "why" {
			t.Errorf("%s: the limits are %+v, %v", limit, all, err)
		}
		for _, want := range []bool{true, false} {
			if was, err := server.ResetLimit(ctx, limit); was != want || err != nil {
				t.Errorf("%s: reset: %v, %v, want %v", limit, was, err, want)
			}
		}
	}
	for _, gate := range []string{"x/y-é?#%", "tenant=a/b"} {
		if err := server.PauseLimit(ctx, gate, store.Pause{For: 90 * time.Minute, By: "nobody", Why: "why"}); err != nil {
			t.Errorf("%s: paused: %v", gate, err)
		}
		all, err := st.Limits(ctx)
		if l, _ := ops.FindLimit(all, gate); err != nil || l.Paused == nil || l.Paused.By != "ann" || l.Paused.Why != "why" || time.Until(l.Paused.Until) < time.Hour {
			t.Errorf("%s: the limits are %+v, %v", gate, all, err)
		}
		for _, want := range []bool{true, false} {
			if was, err := server.ResumeLimit(ctx, gate); was != want || err != nil {
				t.Errorf("%s: resumed: %v, %v, want %v", gate, was, err, want)
			}
		}
		if skipped, err := server.Unblock(ctx, gate); len(skipped) > 0 || err != nil {
			t.Errorf("%s: unblock: %v, %v", gate, skipped, err)
		}
	}
	if err := server.SetLimit(ctx, "a b", rule, "", ""); !errors.Is(err, stint.ErrInvalid) {
		t.Errorf("a limit that can be none: %v", err)
	}

	// Who asks is who the token says, whatever is said here.
	s := mail.Schedule("daily", cron.MustParse("@daily"), map[string]any{"to": "<x>"}, stint.Zone("Europe/Berlin"), stint.MissedNone)
	in, err := ops.ExactSchedule(s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ops.DeclareSchedule.Call(ctx, server, in); err != nil {
		t.Fatal(err)
	}
	if err := stint.NewClient(st).Schedule(ctx, "ann@api", mail.Schedule("same", cron.MustParse("@daily"), map[string]any{"to": "<x>"}, stint.Zone("Europe/Berlin"), stint.MissedNone)); err != nil {
		t.Fatal(err)
	}
	daily, err := st.Schedule(ctx, "daily")
	if err != nil {
		t.Fatal(err)
	}
	same, err := st.Schedule(ctx, "same")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(same.Stored, daily.Stored); diff != "" || daily.By != "ann@api" || daily.Zone != "Europe/Berlin" || !daily.Next.Equal(same.Next) {
		t.Errorf("declared is %+v, by %s, next %v (-store +server):\n%s", daily, daily.By, daily.Next, diff)
	}
	if changed, err := server.PauseSchedule(ctx, "daily", "somebody", "why"); !changed || err != nil {
		t.Errorf("paused: %v, %v", changed, err)
	}
	if changed, err := server.ResumeSchedule(ctx, "daily"); !changed || err != nil {
		t.Errorf("resumed: %v, %v", changed, err)
	}
	if info, err := st.Schedule(ctx, "daily"); err != nil || info.Next.IsZero() {
		t.Errorf("resumed, it fires next at %v, %v", info.Next, err)
	}
	id, err := server.RunSchedule(ctx, "daily")
	if err != nil {
		t.Fatal(err)
	}
	_, err = server.RunSchedule(ctx, "nightly")
	if busy, ok := errors.AsType[*store.ScheduleBusyError](err); !ok || busy.Schedule != "nightly" || busy.Job == 0 {
		t.Errorf("a schedule that is busy is %v", err)
	}
	if ids, err := server.RemoveSchedule(ctx, "daily", "no more"); err != nil || !slices.Equal(ids, []stint.ID{id}) {
		t.Errorf("removing cancelled %v, %v", ids, err)
	}
	if _, err := server.RemoveSchedule(ctx, "daily", ""); !errors.Is(err, stint.ErrNoSchedule) {
		t.Errorf("removed twice: %v", err)
	}

	wrong, err := server.Errors(ctx, report.ErrorFilter{})
	if err != nil || len(wrong.Groups) == 0 {
		t.Fatalf("the errors are %+v, %v", wrong, err)
	}
	key := wrong.Groups[0].Key
	for _, s := range []report.ErrorState{report.ErrorsMuted, report.ErrorsResolved} {
		m, err := server.MarkErrors(ctx, report.ErrorMark{Key: key, State: s, By: "nobody", Why: "why"})
		if err != nil || m.At.IsZero() || m.Key != key || m.State != s || m.By != "ann" || m.Why != "why" {
			t.Errorf("marked as %s: %+v, %v", s, m, err)
		}
		if r, err := st.Errors(ctx, report.ErrorFilter{State: s}); err != nil || len(r.Groups) != 1 || r.Groups[0].Key != key {
			t.Errorf("%s are %+v, %v", s, r.Groups, err)
		}
	}
	if _, err := server.MarkErrors(ctx, report.ErrorMark{Key: "0123456789abcdef", State: report.ErrorsMuted}); !errors.Is(err, ops.ErrNoErrors) {
		t.Errorf("marking what there is not: %v", err)
	}
	if _, err := server.MarkErrors(ctx, report.ErrorMark{Key: key, State: report.ErrorsOpen}); !errors.Is(err, stint.ErrInvalid) {
		t.Errorf("marking as open: %v", err)
	}
	for _, want := range []bool{true, false} {
		if is, err := server.ReopenErrors(ctx, key); is != want || err != nil {
			t.Errorf("reopened: %v, %v, want %v", is, err, want)
		}
	}

	d, had, err := server.Revoke(ctx, "retention", "somebody", "it swaps")
	if err != nil || !had || d.Engine != holder || d.By != "ann" || d.Why != "it swaps" {
		t.Errorf("released: %+v, %v, %v", d, had, err)
	}
	if _, had, err := server.Revoke(ctx, "retention", "", ""); had || err != nil {
		t.Errorf("released again: %v, %v", had, err)
	}
	if err := server.Drain(ctx, holder); err != nil {
		t.Error(err)
	}
	if b, err := ops.BuryEngine.Call(ctx, server, ops.EngineWhy{EngineToken: ops.EngineToken{Token: int64(holder)}, Body: ops.Why{Why: "it hangs"}}); b.Freed != 1 || err != nil {
		t.Errorf("burying freed %d, %v", b.Freed, err)
	}
	if err := server.Drain(ctx, holder); !errors.Is(err, store.ErrBuried) {
		t.Errorf("an engine that is gone: %v", err)
	}
	former := st.(store.EngineHistory)
	for _, f := range []store.FormerFilter{{}, {Engines: []store.EngineID{5, holder}, Limit: 2}, {Instance: "nobody"}, {Since: time.Now().Add(-time.Hour)}} {
		want, err := former.FormerEngines(ctx, f)
		if err != nil {
			t.Fatal(err)
		}
		got, err := server.FormerEngines(ctx, f)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(store.EngineEnd{}, "LostAt"), cmpopts.IgnoreFields(store.EngineInfo{}, "Low"), cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("gone by %+v (-store +server), %v:\n%s", f, err, diff)
		}
	}
	for _, e := range []store.EngineID{holder, 5} {
		want, err := former.LostAttempts(ctx, e)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := server.LostAttempts(ctx, e); err != nil || !slices.Equal(got, want) || e == 5 && len(got) > 0 {
			t.Errorf("lost with %d are %+v, %v; want %+v", e, got, err, want)
		}
	}
	if _, err := ops.BuryEngine.Call(ctx, server, ops.EngineWhy{EngineToken: ops.EngineToken{Token: int64(holder)}}); !errors.Is(err, store.ErrBuried) {
		t.Errorf("buried twice: %v", err)
	}
}

func TestWhoMayNotIsRefused(t *testing.T) {
	store, _ := open(t)
	for token, status := range map[string]int{viewerToken: http.StatusForbidden, "": http.StatusUnauthorized, "wrong": http.StatusUnauthorized} {
		s := over(t, store, token)
		_, err := s.Pause(t.Context(), "q", "", "")
		if e, ok := errors.AsType[*remote.Error](err); !ok || e.Status != status || e.Detail == "" {
			t.Errorf("with the token %q a change is answered with %v", token, err)
		}
		_, err = ops.Diagnose.Call(t.Context(), s, ops.DoctorInput{Deep: true})
		if e, ok := errors.AsType[*remote.Error](err); !ok || e.Status != status {
			t.Errorf("with the token %q a deep look is answered with %v", token, err)
		}
	}
	if _, err := over(t, store, viewerToken).Queues(t.Context()); err != nil {
		t.Errorf("a viewer may not look: %v", err)
	}
}

// A flow over a server is the one that Go stores: jobs of flows within it need each other in any order, and with no names.
func TestAFlowIsEnqueuedOverAServer(t *testing.T) {
	onBoth(t, func(t *testing.T, st anyStore, server *remote.Store) {
		a, b := stint.NewKind[int]("a"), stint.NewKind[int]("b", stint.Queue("q"), stint.Tag("t"))
		enqueue := func(to stint.Enqueuer) []string {
			f := stint.NewFlow("import", stint.Tag("daily"), stint.IdempotencyKey(fmt.Sprintf("%T", to)))
			in := f.Flow("in", "inner")
			one := b.Add(in, "", 1)
			two := a.Add(f, "two", 2, stint.Needs(one))
			b.Add(in, "three", 3, stint.NeedsEnd(two), stint.Delay(time.Hour))
			a.Add(f, "", 4, stint.NeedsFailure(in.Node()))
			r, err := f.EnqueueReceipt(t.Context(), stint.NewClient(to))
			if err != nil || r.Duplicate || one.ID() != r.ID+2 || two.ID() != r.ID+3 {
				t.Fatalf("%+v, %v, its jobs are %d and %d", r, err, one.ID(), two.ID())
			}
			more := stint.OpenFlow(r.ID)
			again := a.Add(more, "two", 2)
			five := a.Add(more, "five", 5, stint.Needs(again, stint.Existing(one.ID())))
			if id, err := more.Enqueue(t.Context(), stint.NewClient(to)); err != nil || id != r.ID || again.ID() != two.ID() || five.ID() <= r.ID+5 {
				t.Errorf("what is added is %d, %v, and its jobs %d and %d", id, err, again.ID(), five.ID())
			}
			var all []string
			for id := r.ID; id <= five.ID(); id++ {
				j, err := st.Job(t.Context(), id)
				if errors.Is(err, stint.ErrNotFound) {
					continue // what was there when more was added has no new one
				}
				needs, err2 := st.(store.FlowReader).Needed(t.Context(), id, 0, 10)
				if err != nil || err2 != nil {
					t.Fatal(err, err2)
				}
				all = append(all, fmt.Sprint(id-r.ID, j.Kind, j.Queue, j.Tags, string(j.Args), j.State, j.IsFlow, max(0, j.Flow-r.ID), j.Correlation == r.ID.String()))
				for _, n := range needs {
					all = append(all, fmt.Sprint("  needs ", n.ID-r.ID, n.Name, n.Wants))
				}
			}
			return all
		}
		want, got := enqueue(st), enqueue(server)
		if !slices.Equal(got, want) {
			t.Errorf("over the server it is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
