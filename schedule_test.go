package stint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

type letterArgs struct{ To string }

var sendReport = stint.NewKind[letterArgs]("send_report", stint.Queue("mail"), stint.Retry(retry.None()))

func at(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil {
		panic(err)
	}
	return t
}

// hourly is a schedule that was declared at noon and has fired at one.
func hourly(missed stint.Missed) *store.ScheduleInfo {
	return &store.ScheduleInfo{
		Schedule:       stint.Schedule{Name: "s", Recurrence: cron.MustParse("0 * * * *"), Missed: missed},
		After:          at("2026-03-01 13:00:00"),
		Next:           at("2026-03-01 14:00:00"),
		LastOccurrence: at("2026-03-01 13:00:00"),
	}
}

func TestAKindMakesSchedulesWithItsDefaults(t *testing.T) {
	s := sendReport.Schedule("nightly", cron.MustParse("30 2 * * *"), letterArgs{"ops"},
		stint.Zone("Europe/Berlin"), stint.Unique(), stint.MissedAll(3), stint.Tag("x"), stint.Timeout(time.Hour),
		stint.NotBefore(at("2026-01-01 00:00:00")), stint.NotAfter(at("2027-01-01 00:00:00")))
	if err := s.Check(stint.Limits{}); err != nil {
		t.Fatal(err)
	}
	j := s.Job
	if s.Name != "nightly" || s.Zone != "Europe/Berlin" || !s.Unique || s.Missed != 3 || s.NotBefore.Year() != 2026 || s.NotAfter.Year() != 2027 {
		t.Errorf("it is %+v", s)
	}
	if j.Kind != "send_report" || j.Queue != "mail" || j.Retry != retry.None() || string(j.Args) != `{"To":"ops"}` || j.Tags[0] != "x" || j.Timeout != time.Hour {
		t.Errorf("its job is %+v", j)
	}
}

func TestWhatCanNeverBeRightAboutAScheduleIsNamed(t *testing.T) {
	good := func() stint.Schedule { return sendReport.Schedule("s", cron.Every(time.Minute), letterArgs{}) }
	for name, c := range map[string]struct {
		change func(s *stint.Schedule)
		field  string
	}{
		"no name":                 {func(s *stint.Schedule) { s.Name = "" }, "schedule"},
		"no recurrence":           {func(s *stint.Schedule) { s.Recurrence = cron.Recurrence{} }, "recurrence"},
		"a recurrence too often":  {func(s *stint.Schedule) { s.Recurrence = cron.Every(time.Millisecond) }, "recurrence"},
		"an unknown zone":         {func(s *stint.Schedule) { s.Zone = "Europe/Nowhere" }, "zone"},
		"a zone of this machine":  {func(s *stint.Schedule) { s.Zone = "Local" }, "zone"},
		"too many missed":         {func(s *stint.Schedule) { s.Missed = stint.MissedAll(1001) }, "missed"},
		"none of all missed":      {func(s *stint.Schedule) { s.Missed = stint.MissedAll(0) }, "missed"},
		"an end before the begin": {func(s *stint.Schedule) { s.NotBefore, s.NotAfter = time.Unix(2, 0), time.Unix(1, 0) }, "not after"},
		"a delay":                 {func(s *stint.Schedule) { s.Job.Delay = 1 }, "delay"},
		"a time":                  {func(s *stint.Schedule) { s.Job.RunAt = time.Unix(1, 0) }, "run at"},
		"an instant to begin by":  {func(s *stint.Schedule) { s.Job.StartBy = time.Unix(1, 0) }, "start by"},
		"a key":                   {func(s *stint.Schedule) { s.Job.IdempotencyKey = "k" }, "idempotency key"},
		"no kind":                 {func(s *stint.Schedule) { s.Job.Kind = "" }, "kind"},
	} {
		s := good()
		c.change(&s)
		var invalid *stint.InvalidError
		if err := s.Check(stint.Limits{}); !errors.As(err, &invalid) || invalid.Field != c.field {
			t.Errorf("%s: the error is %v, want one about %q", name, err, c.field)
		}
	}
	bad := stint.NewKind[func()]("k").Schedule("s", cron.Every(time.Minute), nil)
	if err := bad.Check(stint.Limits{}); err == nil {
		t.Error("arguments that are not JSON are accepted")
	}
}

func TestAMuxRefusesSchedulesThatAreWrongOrThereTwice(t *testing.T) {
	mux := stint.NewMux()
	s := sendReport.Schedule("s", cron.Every(time.Minute), letterArgs{})
	mux.Schedule(s)
	for name, f := range map[string]func(){
		"twice": func() { mux.Schedule(s) },
		"wrong": func() { mux.Schedule(stint.Schedule{Name: "t"}) },
		"two of one name": func() {
			u := sendReport.Schedule("u", cron.Every(time.Minute), letterArgs{})
			mux.Schedule(u, u)
		},
		"a function twice": func() {
			never := func(time.Time, *time.Location) (time.Time, bool) { return time.Time{}, false }
			mux.Recurrence("f", never)
			mux.Recurrence("f", never)
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: it did not panic", name)
				}
			}()
			f()
		}()
	}
	if all := mux.Schedules(); len(all) != 1 || all[0].Zone != "UTC" || string(all[0].Job.Args) != `{"To":""}` {
		t.Errorf("it has %+v", all)
	}
}

func TestAScheduleMoreCostsTheSameHoweverManyThereAre(t *testing.T) {
	costs := func(there int) float64 {
		mux, n := stint.NewMux(), 0
		add := func() {
			n++
			mux.Schedule(sendReport.Schedule(fmt.Sprint("s", n), cron.Every(time.Minute), letterArgs{}, stint.Zone("Europe/Berlin")))
		}
		for range there {
			add()
		}
		return testing.AllocsPerRun(20, add)
	}
	if few, many := costs(0), costs(500); many > few+10 {
		t.Errorf("beside many it takes %v allocations, beside few %v", many, few)
	}
	s := sendReport.Schedule("s", cron.Every(time.Minute), letterArgs{}, stint.Zone("Europe/Berlin"))
	if n := testing.AllocsPerRun(20, func() { _, _ = s.Location() }); n > 5 {
		t.Errorf("finding the zone again takes %v allocations, as if its file was read", n)
	}
}

func TestASchedulesJobSurvivesBeingStored(t *testing.T) {
	s := sendReport.Schedule("s", cron.MustParse("0 3 * * *"), letterArgs{"a"}, stint.Priority(-5), stint.MaxLosses(0), stint.Tag("x", "y"), stint.URN("u"),
		stint.Source("src"), stint.Metadata(json.RawMessage(`{"a":1}`)), stint.Correlation("c"), stint.Retry(retry.Fixed(3, time.Second)),
		stint.Timeout(90*time.Second), stint.StartWithin(36*time.Hour))
	text, err := store.TextsOf(s)
	if err != nil {
		t.Fatal(err)
	}
	var info store.ScheduleInfo
	if info.Read(text); info.Problem != nil {
		t.Fatal(info.Problem)
	}
	if got, want := fmt.Sprintf("%+v", info.Job), fmt.Sprintf("%+v", s.Job); strings.ReplaceAll(got, fmt.Sprint(info.Job.MaxLosses), fmt.Sprint(s.Job.MaxLosses)) != want {
		t.Errorf("it is\n%s\nwant\n%s", got, want)
	}
	for name, broken := range map[string]store.ScheduleTexts{
		"a recurrence": {Recurrence: "every blue moon", Missed: "one", Job: text.Job},
		"a policy":     {Recurrence: "every 1m", Missed: "half", Job: text.Job},
		"a job":        {Recurrence: "every 1m", Missed: "one", Job: json.RawMessage(`{"retry":{"policy":"later"}}`)},
	} {
		var info store.ScheduleInfo
		if info.Read(broken); info.Problem == nil {
			t.Errorf("%s that cannot be read is no problem", name)
		}
		if _, err := store.NewPlanner(nil).Plan(&info, time.Now()); err == nil {
			t.Errorf("with %s that cannot be read it is planned", name)
		}
	}
}

func TestMissedOccurrencesRunAsThePolicySays(t *testing.T) {
	for name, c := range map[string]struct {
		missed stint.Missed
		now    string
		run    []string
		passed int
	}{
		"in time":                         {stint.MissedOne, "14:00:00", []string{"14"}, 0},
		"late, one":                       {stint.MissedOne, "14:30:00", []string{"14"}, 0},
		"late, none":                      {stint.MissedNone, "14:30:00", nil, 1},
		"a little late, none":             {stint.MissedNone, "14:00:59", []string{"14"}, 0},
		"many, one":                       {stint.MissedOne, "18:10:00", []string{"18"}, 4},
		"many, none":                      {stint.MissedNone, "18:10:00", nil, 5},
		"many, none, the last is in time": {stint.MissedNone, "18:00:10", []string{"18"}, 4},
		"many, all":                       {stint.MissedAll(100), "18:10:00", []string{"14", "15", "16", "17", "18"}, 0},
		"many, all up to three":           {stint.MissedAll(3), "18:10:00", []string{"16", "17", "18"}, 2},
	} {
		s := hourly(c.missed)
		now := at("2026-03-01 " + c.now)
		p, err := store.NewPlanner(nil).Plan(s, now)
		if err != nil {
			t.Fatal(err)
		}
		var run []string
		for _, o := range p.Occurrences {
			run = append(run, o.Format("15"))
		}
		next := now.Truncate(time.Hour).Add(time.Hour)
		if !slices.Equal(run, c.run) || p.Passed != c.passed || !p.Next.Equal(next) || !p.After.Equal(next.Add(-time.Hour)) || p.Ended {
			t.Errorf("%s: it runs %v, passes over %d, up to %v, next %v; want %v, %d, next %v", name, run, p.Passed, p.After, p.Next, c.run, c.passed, next)
		}
	}
}

func TestAUniqueScheduleRunsOneOfManyMissedOccurrences(t *testing.T) {
	s := hourly(stint.MissedAll(10))
	s.Unique = true
	p, err := store.NewPlanner(nil).Plan(s, at("2026-03-01 18:10:00"))
	if err != nil || len(p.Occurrences) != 1 || p.Occurrences[0].Hour() != 18 || p.Skipped != 4 || p.Passed != 0 {
		t.Errorf("it plans %+v, error %v", p, err)
	}
}

// A year of seconds that nobody fired must be caught up with in steps that are
// short, since each is a transaction.
func TestALongOutageIsCaughtUpWithInSteps(t *testing.T) {
	for _, missed := range []stint.Missed{stint.MissedOne, stint.MissedNone, stint.MissedAll(7)} {
		began := at("2026-01-01 00:00:00")
		s := &store.ScheduleInfo{
			Schedule: stint.Schedule{Name: "s", Recurrence: cron.Every(time.Second), Missed: missed},
			After:    began, Next: began.Add(time.Second),
		}
		const seconds = 45_000
		now := began.Add(seconds * time.Second)
		steps, passed := 0, 0
		var run []time.Time
		for !s.Next.After(now) {
			p, err := store.NewPlanner(nil).Plan(s, now)
			if err != nil {
				t.Fatal(err)
			}
			if !p.Next.After(p.After) || !p.Next.After(s.Next) || p.After.Before(s.After) {
				t.Fatalf("from %v it goes to %v, and all is dealt with up to %v", s.Next, p.Next, p.After)
			}
			steps++
			passed += p.Passed
			run = append(run, p.Occurrences...)
			s.After, s.Next = p.After, p.Next
		}
		if steps < 4 || steps > 6 || len(run) != missed.Most() || passed+len(run) != seconds || !run[len(run)-1].Equal(now) {
			t.Errorf("%v: in %d steps %d ran, %d were passed over, and the last was %v", missed, steps, len(run), passed, run)
		}
	}
}

func TestManyMissedOccurrencesRunInTurns(t *testing.T) {
	s := hourly(stint.MissedAll(500))
	s.Recurrence = cron.Every(time.Minute)
	now := s.Next.Add(799 * time.Minute)
	var run []time.Time
	for passed := 0; !s.Next.After(now); {
		p, err := store.NewPlanner(nil).Plan(s, now)
		if err != nil || len(p.Occurrences) > 100 {
			t.Fatalf("%d occurrences at once, error %v", len(p.Occurrences), err)
		}
		if passed += p.Passed; passed != 300 {
			t.Errorf("%d were passed over, want 300", passed)
		}
		run = append(run, p.Occurrences...)
		s.After, s.Next = p.After, p.Next
	}
	if len(run) != 500 || run[499].Sub(run[0]) != 499*time.Minute || !run[499].Equal(now) {
		t.Errorf("%d ran, from %v to %v", len(run), run[0], run[len(run)-1])
	}
}

func TestATurnStaysShortWhateverIsDue(t *testing.T) {
	now := at("2026-03-01 14:00:00")
	var due []store.ScheduleInfo
	for range 5000 {
		due = append(due, *hourly(stint.MissedOne))
	}
	plan := store.NewPlanner(nil).Plan
	if n := len(store.NewFireBatch(due, now, plan).Plans); n > 1000 || n < 100 {
		t.Errorf("it has %d plans", n)
	}
	long := make(json.RawMessage, 1<<20)
	for i := range due {
		due[i].Job.Args = long
	}
	if n := len(store.NewFireBatch(due, now, plan).Plans); n > 9 || n < 1 {
		t.Errorf("with long arguments it has %d plans", n)
	}
	slow := func(s *store.ScheduleInfo, now time.Time) (store.Plan, error) {
		time.Sleep(400 * time.Millisecond)
		return plan(s, now)
	}
	synctest.Test(t, func(t *testing.T) {
		if n := len(store.NewFireBatch(due[:100], now, slow).Plans); n > 3 || n < 1 {
			t.Errorf("when planning is slow it has %d plans", n)
		}
	})
}

func TestATurnReadsNoSchedulesThatAreNotDue(t *testing.T) {
	now := at("2026-03-01 14:00:00")
	table := []store.ScheduleInfo{*hourly(stint.MissedOne), *hourly(stint.MissedOne), *hourly(stint.MissedOne)} // new, due, later
	table[0].Next, table[2].Next = time.Time{}, now.Add(time.Minute)
	for _, f := range []struct {
		store.FireRequest
		rows []int // that each look reads
	}{
		{store.FireRequest{Limit: 10}, []int{1, 2}},
		{store.FireRequest{Limit: 10, OnlyNew: true}, []int{1}},
	} {
		var rows []int
		turn, _, err := store.PlanDue(f.FireRequest, store.NewPlanner(nil).Plan, func(until time.Time, limit int) (due []store.ScheduleInfo, _ time.Time, _ error) {
			for _, s := range table {
				if (s.Next.IsZero() || !s.Next.After(until)) && len(due) < limit {
					due = append(due, s)
				}
			}
			rows = append(rows, len(due))
			return due, now, nil
		})
		if want := f.rows[len(f.rows)-1]; err != nil || !slices.Equal(rows, f.rows) || len(turn.Plans) != want {
			t.Errorf("%+v: it reads %v and plans %d, want %v; error %v", f.FireRequest, rows, len(turn.Plans), f.rows, err)
		}
	}
}

func TestWhatIsNewOrResumedIsPlannedFromThenOn(t *testing.T) {
	p := store.NewPlanner(nil)
	s := hourly(stint.MissedOne)
	s.Next, s.After = time.Time{}, at("2026-03-05 11:30:00")
	plan, err := p.Plan(s, at("2026-03-05 16:00:00"))
	if err != nil || !plan.Next.Equal(at("2026-03-05 12:00:00")) || len(plan.Occurrences) != 0 {
		t.Errorf("it plans %+v, error %v", plan, err)
	}
	// The database's clock was put back: what fired does not fire again.
	s.After = at("2026-03-01 10:30:00")
	if plan, _ = p.Plan(s, at("2026-03-01 10:30:00")); !plan.Next.Equal(at("2026-03-01 14:00:00")) {
		t.Errorf("after 13:00 fired, its next is %v", plan.Next)
	}
	// An interval keeps its beat through a pause.
	s.Recurrence, s.After = cron.Every(7*time.Hour), at("2026-03-05 11:30:00")
	if plan, _ = p.Plan(s, s.After); plan.Next.Sub(s.LastOccurrence)%(7*time.Hour) != 0 || plan.Next.Sub(s.After) > 7*time.Hour {
		t.Errorf("every seven hours from %v on, its next is %v", s.LastOccurrence, plan.Next)
	}
}

func TestOccurrencesStayWithinTheirBounds(t *testing.T) {
	p := store.NewPlanner(nil)
	s := hourly(stint.MissedAll(10))
	s.Next, s.LastOccurrence = time.Time{}, time.Time{}
	s.NotBefore, s.NotAfter = at("2026-03-02 10:00:00"), at("2026-03-02 12:00:00")
	for _, r := range []cron.Recurrence{s.Recurrence, cron.Every(time.Hour)} {
		s.Recurrence, s.Next, s.Ended = r, time.Time{}, time.Time{}
		times, err := p.Upcoming(s, 10)
		if err != nil || len(times) != 3 || !times[0].Equal(s.NotBefore) || !times[2].Equal(s.NotAfter) {
			t.Errorf("%s: it occurs at %v, error %v", r, times, err)
		}
		plan, err := p.Plan(s, at("2026-03-01 00:00:00"))
		if err != nil || !plan.Next.Equal(s.NotBefore) {
			t.Errorf("%s: it begins with %+v, error %v", r, plan, err)
		}
		s.Next = plan.Next
		if plan, _ = p.Plan(s, at("2026-03-03 00:00:00")); len(plan.Occurrences) != 3 || !plan.Ended || !plan.Next.IsZero() {
			t.Errorf("%s: it ends with %+v", r, plan)
		}
		s.Next, s.Ended = time.Time{}, s.NotAfter
		if times, _ := p.Upcoming(s, 3); len(times) != 0 {
			t.Errorf("%s: ended, it occurs at %v", r, times)
		}
		s.Ended, s.After = time.Time{}, at("2026-03-02 12:00:00")
		if plan, _ = p.Plan(s, s.After); !plan.Ended {
			t.Errorf("%s: after its bound it plans %+v", r, plan)
		}
		s.After = at("2026-03-01 13:00:00")
	}
}

// Whoever says "not before now" where clocks are as one, as in a test's bubble, says
// the very instant up to which everything is dealt with.
func TestAScheduleMayBeginAtTheInstantAtWhichItIsDeclared(t *testing.T) {
	for _, r := range []cron.Recurrence{cron.MustParse("0 * * * *"), cron.Every(time.Hour)} {
		s := hourly(stint.MissedOne)
		s.Recurrence, s.Next, s.LastOccurrence = r, time.Time{}, time.Time{}
		s.After = at("2026-03-02 10:00:00")
		s.NotBefore = s.After
		turn := store.NewFireBatch([]store.ScheduleInfo{*s}, s.After, store.NewPlanner(nil).Plan)
		if len(turn.Plans) != 1 || !turn.Plans[0].Next.Equal(s.After.Add(time.Hour)) {
			t.Errorf("%s: it plans %+v, problems %v", r, turn.Plans, turn.Problems)
		}
	}
}

func TestAScheduleGoesByTheClockOfItsZone(t *testing.T) {
	s := hourly(stint.MissedOne)
	s.Recurrence, s.Zone, s.Next, s.After, s.LastOccurrence = cron.MustParse("30 2 * * *"), "Europe/Berlin", time.Time{}, at("2026-03-27 12:00:00"), time.Time{}
	times, err := store.NewPlanner(nil).Upcoming(s, 3)
	var got []string
	for _, at := range times {
		got = append(got, at.Format("01-02 15:04 -07"))
	}
	// On the 29th there is no half past two.
	if want := []string{"03-28 02:30 +01", "03-29 03:00 +02", "03-30 02:30 +02"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("it occurs at %v, error %v; want %v", got, err, want)
	}
}

func TestFunctionsThatFailAreAnErrorAndNoMore(t *testing.T) {
	var funcs cron.Registry
	for name, f := range map[string]cron.Func{
		"panics":    func(time.Time, *time.Location) (time.Time, bool) { panic("no") },
		"goes back": func(after time.Time, _ *time.Location) (time.Time, bool) { return after, true },
		"works":     func(after time.Time, _ *time.Location) (time.Time, bool) { return after.Add(time.Hour), true },
		"ends":      func(time.Time, *time.Location) (time.Time, bool) { return time.Time{}, false },
	} {
		if err := funcs.Register(name, f); err != nil {
			t.Fatal(err)
		}
	}
	p := store.NewPlanner(&funcs)
	if got := p.Functions(); len(got) != 4 {
		t.Errorf("it has the functions %v", got)
	}
	now := at("2026-03-01 14:00:00")
	for name, fails := range map[string]bool{"panics": true, "goes back": true, "unknown": true, "works": false, "ends": false} {
		s := hourly(stint.MissedOne)
		s.Recurrence = cron.Function(name)
		plan, err := p.Plan(s, now)
		if (err != nil) != fails || name == "works" && !plan.Next.Equal(at("2026-03-01 15:00:00")) || name == "ends" && !plan.Ended {
			t.Errorf("%s: it plans %+v, error %v", name, plan, err)
		}
	}
}

func TestMissedIsWrittenAsWords(t *testing.T) {
	for text, want := range map[string]stint.Missed{"one": stint.MissedOne, "none": stint.MissedNone, "all:1": 1, "all:1000": 1000} {
		var m stint.Missed
		if err := m.UnmarshalText([]byte(text)); err != nil || m != want || m.String() != text {
			t.Errorf("%s is %v, error %v", text, m, err)
		}
	}
	for _, text := range []string{"", "all", "all:0", "all:-1", "all:1001", "all:x", "5", "One"} {
		var m stint.Missed
		if err := m.UnmarshalText([]byte(text)); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("%q is %v, error %v", text, m, err)
		}
	}
}

func TestAClientOfAStoreWithoutSchedulesSaysSo(t *testing.T) {
	c := stint.NewClient(noStore{})
	if err := c.Schedule(t.Context(), "", sendReport.Schedule("s", cron.Every(time.Minute), letterArgs{})); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "keeps no schedules") {
		t.Errorf("the error is %v", err)
	}
}

type noStore struct{}

func (noStore) Enqueue(context.Context, stint.Tx, []stint.NewJob) ([]stint.Receipt, error) {
	return nil, nil
}

// All jobs of a schedule have the same unique key, so that of the kind is for producers.
func TestAScheduleHasAUniquenessOfItsOwn(t *testing.T) {
	kind := stint.NewKind[struct{}]("k", stint.UniqueUntilEnded())
	s := kind.Schedule("s", cron.MustParse("every 5m"), struct{}{})
	if ready, err := s.Ready(stint.Limits{}); err != nil || ready.Job.Unique != "" {
		t.Errorf("of a unique kind it makes %+v, error %v", ready.Job, err)
	}
	s.Job.Unique = "until-ended"
	if _, err := s.Ready(stint.Limits{}); !errors.Is(err, stint.ErrInvalid) || !strings.Contains(err.Error(), "give the schedule Unique") {
		t.Errorf("a unique job gives %v", err)
	}
}
