package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

const limited = "smtp\ntenant=acme"

func limitedJob(options ...stint.Option) stint.NewJob {
	j := stint.NewJob{Kind: "k", Queue: "q", Args: []byte(`{"tenant": "acme"}`), Limits: []string{"tenant by /tenant", "smtp"}}
	for _, o := range options {
		o(&j)
	}
	return j
}

// look shows which lane has the only job that is ready, and takes it.
func look(t *testing.T, s *Store, w *storetest.Worker, when string, part store.Part) store.Entry {
	t.Helper()
	heads, err := s.Look(t.Context(), store.LaneHints{})
	if err != nil || len(heads) != 1 {
		t.Fatalf("%s there are %+v, error %v; want one lane", when, heads, err)
	}
	want := store.LimitedLane("q", 0, part, "k", limited)
	if heads[0].Lane != want.ID || heads[0].Limits != limited {
		t.Errorf("%s it is in lane %+v, want %+v", when, heads[0], want)
	}
	e := w.One()
	if e.Limits != limited {
		t.Errorf("%s its limits are %q", when, e.Limits)
	}
	if job, err := s.Job(t.Context(), e.ID); err != nil || !slices.Equal(job.Limits, []string{"smtp", "tenant=acme"}) {
		t.Errorf("%s it shows as %+v, error %v", when, job, err)
	}
	return e
}

func TestAJobKeepsItsLimitsWhateverBecomesOfIt(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	client, w := stint.NewClient(s), storetest.Join(t, s, "k")
	fail := store.Result{Outcome: stint.OutcomeFailed, Err: errors.New("no")}
	again := func(id stint.ID, o stint.RerunOptions, want stint.RerunStatus) {
		t.Helper()
		got, err := s.Retry(t.Context(), []stint.ID{id}, o)
		if err != nil || got[id].Answer != want {
			t.Fatalf("retry says %+v, error %v", got, err)
		}
	}
	promote := func() {
		t.Helper()
		until(t, "it is promoted", time.Minute, func() bool {
			p, err := s.Promote(t.Context(), time.Time{}, 10)
			if err != nil {
				t.Fatal(err)
			}
			return p.Moved == 1
		})
	}
	enqueue(t, s, []stint.NewJob{limitedJob(stint.Retry(retry.Function("f")))})
	w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartKind}, look(t, s, w, "at first", store.PartNormal))
	w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartFront}, look(t, s, w, "for its kind", store.PartKind))
	w.Finish(store.Result{Outcome: stint.OutcomeSnoozed, Snooze: time.Millisecond}, look(t, s, w, "returned", store.PartFront))
	promote()
	look(t, s, w, "after a snooze", store.PartNormal)
	w.Leave()
	w = storetest.Join(t, s, "k")
	w.Finish(fail, look(t, s, w, "after a burial", store.PartFront))
	all, err := s.Undecided(t.Context(), []string{"f"}, 0, 10)
	if err != nil || len(all) != 1 {
		t.Fatalf("undecided is %+v, error %v", all, err)
	}
	var funcs retry.Registry
	if err := funcs.Register("f", func(error, retry.Failure) retry.Decision { return retry.Again(time.Hour) }); err != nil {
		t.Fatal(err)
	}
	x, err := all[0].Conclude(&funcs, time.Now(), 0.5)
	if err == nil {
		_, err = s.Decide(t.Context(), w.Info.Token, []store.Completion{x})
	}
	if err != nil {
		t.Fatal(err)
	}
	again(x.Job, stint.RerunOptions{}, stint.RerunReady)
	w.Finish(store.Result{Outcome: stint.OutcomeCancelled}, look(t, s, w, "run now", store.PartNormal))
	again(x.Job, stint.RerunOptions{}, stint.RerunRecovered)
	e := look(t, s, w, "recovered", store.PartNormal)
	w.Complete(e)
	again(e.ID, stint.RerunOptions{Delay: time.Millisecond}, stint.RerunRecovered)
	promote()
	w.Complete(look(t, s, w, "recovered for later", store.PartNormal))

	if err := client.Schedule(t.Context(), "me", stint.Schedule{Name: "s", Recurrence: cron.MustParse("@yearly"), Job: limitedJob()}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RunSchedule(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	w.Complete(look(t, s, w, "of a schedule", store.PartNormal))

	tx, err := database(t, s.path).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.With(Tx(tx)).Enqueue(t.Context(), limitedJob(stint.Delay(time.Hour))); err != nil {
		t.Fatal(err)
	}
	id, err := client.With(Tx(tx)).Enqueue(t.Context(), limitedJob())
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	w.Complete(look(t, s, w, "of a transaction", store.PartNormal))
	if _, err := s.Cancel(t.Context(), []stint.ID{id - 1}, ""); err != nil {
		t.Fatal(err)
	}
	if job, err := s.Job(t.Context(), id-1); err != nil || len(job.Limits) != 2 {
		t.Errorf("cancelled it shows as %+v, error %v", job, err)
	}
	storetest.Verify(t, s)
}

func TestJobsWithLimitsAreNotRunByTheCallersProcess(t *testing.T) {
	s := open(t, Memory)
	w := storetest.Join(t, s, "k")
	_, err := s.EnqueueClaimed(t.Context(), limitedJob(), store.ClaimRequest{Engine: w.Info.Token, Serial: 1, Nonce: 1})
	if invalid, ok := errors.AsType[*stint.InvalidError](err); !ok || invalid.Field != "limits" {
		t.Errorf("it says %v", err)
	}
	if all, err := s.Jobs(t.Context(), store.Filter{}); err != nil || len(all) != 0 {
		t.Errorf("there are %+v, error %v", all, err)
	}
}

func TestLimitsOfAnyNamesAreShown(t *testing.T) {
	s := open(t, Memory)
	want := []string{`a\n"b"=\`, `c=",", \\n`, "ü=\u2028"}
	named := func(j *stint.NewJob) { j.Limits = want }
	enqueue(t, s, []stint.NewJob{limitedJob(named), limitedJob(named, stint.Delay(time.Hour))})
	all, err := s.Jobs(t.Context(), store.Filter{})
	if err != nil || len(all) != 2 {
		t.Fatalf("there are %+v, error %v", all, err)
	}
	for _, job := range all {
		if !slices.Equal(job.Limits, want) {
			t.Errorf("%s it has the limits %q, want %q", job.State, job.Limits, want)
		}
	}
}

// heard listens until the test ends, and returns what is heard but for signals that say
// nothing.
func heard(t *testing.T, s *Store) func() []store.News {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	var all []store.News
	begun, done := make(chan struct{}), make(chan error, 1)
	go func() {
		once := sync.OnceFunc(func() { close(begun) })
		done <- s.Listen(ctx, func(n store.News) {
			mu.Lock()
			defer mu.Unlock()
			if once(); n != (store.News{}) {
				all = append(all, n)
			}
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-begun
	return func() []store.News {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func asks(gate string, want int) store.PermitRequest {
	return store.PermitRequest{Take: []store.Taking{{Gates: []store.TakingGate{{Gate: gate}}, Want: want}}}
}

func keeps(gate string, n int) store.PermitRequest {
	return store.PermitRequest{Keep: []store.Keeping{{Gate: gate, Permits: n}}}
}

func held(t *testing.T, s *Store, engine store.EngineID, req store.PermitRequest) int {
	t.Helper()
	holds, err := s.Permits(t.Context(), engine, req)
	if err != nil || len(holds) != 1 {
		t.Fatalf("%+v gives %+v, error %v", req, holds, err)
	}
	return holds[0].Permits
}

func TestEnginesOfTheProcessHearWhomPermitsConcern(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	if err := s.SetLimit(t.Context(), "smtp", stint.LimitRule{AtOnce: 1}, "me", ""); err != nil {
		t.Fatal(err)
	}
	one, two := storetest.Join(t, s).Info.Token, storetest.Join(t, s).Info.Token
	first, second := heard(t, s), heard(t, s)
	if n := held(t, s, one, asks("smtp", 1)); n != 1 {
		t.Fatalf("it holds %d", n)
	}
	if n := held(t, s, two, asks("smtp", 1)); n != 0 {
		t.Fatalf("the second one holds %d", n)
	}
	held(t, s, one, keeps("smtp", 0))
	if err := s.SetLimit(t.Context(), "smtp", stint.LimitRule{AtOnce: 2}, "me", ""); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what is declared again as it was concerns nobody, nor what is declared under what people set
		if err := s.DeclareLimits(t.Context(), map[string]stint.LimitRule{"smtp": {AtOnce: 3}, "db": {AtOnce: 4}}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := s.ResetLimit(t.Context(), "smtp"); err != nil {
			t.Fatal(err)
		}
	}
	want := []store.News{{Permits: "smtp"}, {Permits: "smtp", Engine: two}, {Permits: "smtp"}, {Permits: "db"}, {Permits: "smtp"}}
	for _, news := range []func() []store.News{first, second} {
		until(t, "the news are heard", time.Minute, func() bool { return len(news()) >= len(want) })
		if got := news(); !slices.Equal(got, want) {
			t.Errorf("heard is %+v, want %+v", got, want)
		}
	}
}

func TestNewsThatNobodyComesToBecomeOne(t *testing.T) {
	var all inboxes
	b := all.open()
	for i := range 3 * mostNews {
		all.put([]store.News{{Permits: fmt.Sprint(i)}})
	}
	<-b.some
	news := b.take()
	if news[0] != (store.News{}) || len(news) > mostNews {
		t.Errorf("it gets %d news, at first %+v", len(news), news[0])
	}
	all.close(b)
	all.put(news)
	if b.take() != nil {
		t.Error("a closed one gets news")
	}
}

func TestWhatChangesNothingOfAGateIsNotWritten(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	rules := map[string]stint.LimitRule{"smtp": {AtOnce: 3}}
	engine := storetest.Join(t, s).Info.Token
	if err := s.DeclareLimits(t.Context(), rules); err != nil {
		t.Fatal(err)
	}
	held(t, s, engine, asks("smtp", 2))
	var version int64
	db := database(t, s.path)
	db.SetMaxOpenConns(1)
	changed := func() bool {
		before := version
		if err := db.QueryRow(`pragma data_version`).Scan(&version); err != nil {
			t.Fatal(err)
		}
		return version != before
	}
	changed()
	if err := s.DeclareLimits(t.Context(), rules); err != nil {
		t.Fatal(err)
	}
	if n := held(t, s, engine, keeps("smtp", 2)); n != 2 {
		t.Errorf("it holds %d", n)
	}
	if n, err := s.TidyPermits(t.Context()); n != 0 || err != nil {
		t.Errorf("it forgets %d, error %v", n, err)
	}
	if changed() {
		t.Error("something was written")
	}
	if held(t, s, engine, keeps("smtp", 1)); !changed() {
		t.Error("nothing was written")
	}
}

func TestPermitsAreForgottenSomeAtATimeAndNotWhileTheyMatter(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	w := storetest.Join(t, s)
	storetest.Join(t, s)
	engine := w.Info.Token
	for name, rule := range map[string]stint.LimitRule{"none": {AtOnce: -1}, "rate": {Starts: 1, Per: time.Hour}} {
		if err := s.SetLimit(t.Context(), name, rule, "", ""); err != nil {
			t.Fatal(err)
		}
	}
	held(t, s, engine, asks("none=asked", 1))
	held(t, s, engine, asks("none=long ago", 1))
	held(t, s, engine, asks("rate", 1))
	held(t, s, engine, keeps("rate", 0))
	held(t, s, engine, asks("held", 1))
	req := store.PermitRequest{}
	for i := range mostTidied {
		req.Take = append(req.Take, asks(fmt.Sprintf("key=%d", i), 1).Take...)
	}
	if _, err := s.Permits(t.Context(), engine, req); err != nil {
		t.Fatal(err)
	}
	for _, k := range req.Gates() {
		req.Keep = append(req.Keep, keeps(k, 0).Keep...)
	}
	if _, err := s.Permits(t.Context(), engine, store.PermitRequest{Keep: req.Keep}); err != nil {
		t.Fatal(err)
	}
	alter(t, s, `update stint_permits set used = json_set(used, '$[0].since', 1) where gate = 'none=long ago'`)
	for _, want := range []int{mostTidied, 1, 0} {
		if n, err := s.TidyPermits(t.Context()); n != want || err != nil {
			t.Errorf("it forgets %d, error %v; want %d", n, err, want)
		}
	}
	left := func() (gates []string) {
		err := s.read(t.Context(), func(c *conn) (err error) {
			gates, err = allRows(c, firstText[string], `select gate from stint_permits order by gate`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return gates
	}
	if got := left(); !slices.Equal(got, []string{"held", "none=asked", "rate"}) {
		t.Errorf("left are %q", got)
	}
	w.Leave()
	alter(t, s, `update stint_permits set next_start = 1 where gate = 'rate'`)
	if n, err := s.TidyPermits(t.Context()); n != 3 || err != nil {
		t.Errorf("it forgets %d, error %v", n, err)
	}
}

func TestPeopleSeeAndSetWhatLimitsAllow(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	one, two := storetest.Join(t, s).Info, storetest.Join(t, s).Info
	list := func(want ...store.LimitInfo) {
		t.Helper()
		got, err := s.Limits(t.Context())
		ignore := cmpopts.EquateApproxTime(time.Minute)
		if diff := cmp.Diff(want, got, ignore); err != nil || diff != "" {
			t.Errorf("error %v, (-want +got):\n%s", err, diff)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	list()
	must(s.DeclareLimits(t.Context(), map[string]stint.LimitRule{"tenant": {AtOnce: 2}, "smtp": {AtOnce: 10, Starts: 100, Per: time.Minute, Burst: 5}}))
	list(store.LimitInfo{Name: "smtp", Rule: "10,100/1m,burst=5", Declared: "10,100/1m,burst=5"}, store.LimitInfo{Name: "tenant", Rule: "2", Declared: "2"})
	must(s.SetLimit(t.Context(), "tenant", stint.LimitRule{AtOnce: -1}, "me", "tidying"))
	must(s.SetLimit(t.Context(), "new", stint.LimitRule{}, "", ""))
	must(s.SetLimit(t.Context(), "newer", stint.LimitRule{AtOnce: 7}, "", ""))
	must(s.DeclareLimits(t.Context(), map[string]stint.LimitRule{"tenant": {AtOnce: 3}}))
	held(t, s, one.Token, asks("tenant=a", 2))
	held(t, s, one.Token, asks("tenant=b", 1))
	held(t, s, two.Token, asks("tenant=b", 1))
	held(t, s, two.Token, asks("tenant-x", 1))
	held(t, s, two.Token, asks("tenants", 4))
	held(t, s, two.Token, asks("tenant", 1))
	now := time.Now()
	others := []store.LimitInfo{{Name: "tenant-x", Rule: "any", Gates: 1, Held: 1, Engines: 1}, {Name: "tenants", Rule: "any", Gates: 1, Held: 4, Engines: 1}}
	newer := store.LimitInfo{Name: "newer", Rule: "7", Set: "7", SetAt: now}
	list(append([]store.LimitInfo{{Name: "new", Rule: "any", Set: "any", SetAt: now}, newer,
		{Name: "smtp", Rule: "10,100/1m,burst=5", Declared: "10,100/1m,burst=5"},
		{Name: "tenant", Rule: "0", Declared: "3", Set: "0", SetAt: now, By: "me", Why: "tidying", Gates: 3, Asked: 5, Engines: 2}}, others...)...)
	holding := func(e store.EngineInfo, asked int) store.GateHolding {
		return store.GateHolding{Engine: e.Token, Instance: e.Instance, Asked: asked, Since: now}
	}
	want := []store.GateInfo{
		{Gate: "tenant=a", Key: "a", Rule: "0", Asked: 2, Holds: []store.GateHolding{holding(one, 2)}},
		{Gate: "tenant=b", Key: "b", Rule: "0", Asked: 2, Holds: []store.GateHolding{holding(one, 1), holding(two, 1)}},
	}
	want = append(want, store.GateInfo{Gate: "tenant", Rule: "0", Asked: 1, Holds: []store.GateHolding{holding(two, 1)}})
	for _, most := range []int{2, 100} {
		gates, err := s.Gates(t.Context(), "tenant", most)
		if diff := cmp.Diff(want[:min(most, 3)], gates, cmpopts.EquateApproxTime(time.Minute)); err != nil || diff != "" {
			t.Errorf("error %v, (-want +got):\n%s", err, diff)
		}
	}
	for name, want := range map[string][]bool{"tenant": {true, false}, "new": {true, false}, "smtp": {false}, "unknown": {false}} {
		for _, want := range want {
			if was, err := s.ResetLimit(t.Context(), name); err != nil || was != want {
				t.Errorf("reset of %s says %v, error %v", name, was, err)
			}
		}
	}
	list(append([]store.LimitInfo{newer, {Name: "smtp", Rule: "10,100/1m,burst=5", Declared: "10,100/1m,burst=5"},
		{Name: "tenant", Rule: "3", Declared: "3", Gates: 3, Asked: 5, Engines: 2}}, others...)...)
	if n := held(t, s, two.Token, asks("tenant=b", 3)); n != 2 {
		t.Errorf("it gets %d permits of 3, of which another one waits for 1", n)
	}
}

func TestARuleThatNobodyCanReadLetsNothingStartAndHoldsUpNoOtherLimit(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	engine := storetest.Join(t, s).Info.Token
	alter(t, s, `insert into stint_limits (name, fixed, set_at) values ('smtp', 'many', 1)`)
	holds, err := s.Permits(t.Context(), engine, store.PermitRequest{Take: slices.Concat(asks("db", 2).Take, asks("smtp", 1).Take)})
	if err != nil || len(holds) != 2 || holds[0].Permits != 2 || holds[1].Permits != 0 {
		t.Errorf("it holds %+v, error %v", holds, err)
	}
}

func TestPermitsAreLostWithTheirEnginesPlace(t *testing.T) {
	s := open(t, Memory)
	if err := s.SetLimit(t.Context(), "smtp", stint.LimitRule{AtOnce: 3}, "", ""); err != nil {
		t.Fatal(err)
	}
	dead, heir := storetest.Join(t, s), storetest.Join(t, s)
	if n := held(t, s, dead.Info.Token, asks("smtp", 5)); n != 3 {
		t.Errorf("it holds %d", n)
	}
	dead.Leave()
	if _, err := s.Permits(t.Context(), dead.Info.Token, store.PermitRequest{}); !errors.Is(err, store.ErrBuried) {
		t.Errorf("the dead gets %v", err)
	}
	if n := held(t, s, heir.Info.Token, asks("smtp", 2)); n != 2 {
		t.Errorf("its heir holds %d", n)
	}
}
