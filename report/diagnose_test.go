package report_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// patient is a store that says of itself what a test wants.
type patient struct {
	store.Inspector
	store.Roster
	store.Migrator
	store.ScheduleKeeper
	store.Limiter

	ahead   time.Duration // of this machine
	slow    time.Duration // each answer
	schema  store.SchemaInfo
	kinds   []stint.KindInfo
	engines []store.EngineInfo
	signs   report.Facts
	err     error
	hangs   bool // questions about tables

	attempts  [2][]report.Stats // of the last minutes, and of the day with them
	unsummed  int
	settled   bool // what was asked for last
	schedules []store.ScheduleInfo
	limits    []store.LimitInfo
	gates     []store.GateInfo // of each
}

func (p *patient) Limits(context.Context) ([]store.LimitInfo, error) { return p.limits, p.err }
func (p *patient) Gates(context.Context, string, int) ([]store.GateInfo, error) {
	return p.gates, p.err
}

// limited has mails wait under a limit of which engine 7 holds all permits.
func (p *patient) limited(rule string) (*store.LimitInfo, *store.GateInfo) {
	p.kinds[0].Limits = []string{"smtp"}
	p.signs.Backlogs[0].Oldest, p.signs.Backlogs[0].Limited = time.Now().Add(-time.Hour), true
	p.limits = []store.LimitInfo{{Name: "smtp", Rule: rule, Declared: rule, Gates: 1, Held: 10, Asked: 3, Engines: 1}}
	p.gates = []store.GateInfo{{Gate: "smtp", Rule: rule, Held: 10, Asked: 3, Holds: []store.GateHolding{{Engine: 7, Instance: "one", Held: 10, Asked: 3}}}}
	return &p.limits[0], &p.gates[0]
}

func (p *patient) SumUp(context.Context) (bool, error) { return false, p.err }
func (p *patient) Unsummed(_ context.Context, most int) (int, error) {
	return min(p.unsummed, most), p.err
}
func (p *patient) Stats(_ context.Context, f report.StatsFilter) ([]report.Stats, error) {
	p.settled = f.Settled
	if f.Every == time.Minute {
		return p.attempts[0], p.err
	}
	return p.attempts[1], p.err
}

// ended has so many attempts of mails complete and fail in the last minutes, and in the day before.
func (p *patient) ended(completed, failed, completedBefore, failedBefore int64) {
	of := func(completed, failed int64) []report.Stats {
		some := func(o stint.Outcome, n int64) report.Stats {
			return report.Stats{Kind: "mail", Queue: "default", Outcome: o, Totals: report.Totals{Attempts: n}}
		}
		// Half of what failed was lost, and what was snoozed counts for nothing.
		return []report.Stats{some(stint.OutcomeCompleted, completed), some(stint.OutcomeFailed, failed-failed/2), some(stint.OutcomeLost, failed/2), some(stint.OutcomeSnoozed, 1000)}
	}
	p.attempts = [2][]report.Stats{of(completed, failed), of(completed+completedBefore, failed+failedBefore)}
}

func (p *patient) Schedules(context.Context) ([]store.ScheduleInfo, error) { return p.schedules, p.err }

// scheduled gives a schedule of mails that is well, but for a change.
func (p *patient) scheduled(change func(s *store.ScheduleInfo)) {
	now := time.Now()
	s := store.ScheduleInfo{Declared: now.Add(-time.Hour), After: now.Add(-time.Minute), Next: now.Add(time.Minute)}
	s.Name, s.Job.Kind = "nightly", "mail"
	change(&s)
	p.schedules = append(p.schedules, s)
}

func (p *patient) Now(context.Context) (time.Time, error) {
	time.Sleep(p.slow)
	return time.Now().Add(-p.ahead), p.err
}
func (p *patient) Schema(context.Context) (store.SchemaInfo, error) { return p.schema, p.err }
func (p *patient) Kinds(ctx context.Context) ([]stint.KindInfo, error) {
	return p.kinds, errors.Join(p.err, p.hang(ctx))
}
func (p *patient) Engines(ctx context.Context) ([]store.EngineInfo, error) {
	return p.engines, errors.Join(p.err, p.hang(ctx))
}

// hang keeps an answer back for as long as the question may take.
func (p *patient) hang(ctx context.Context) error {
	if !p.hangs {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}
func (p *patient) Examine(context.Context, report.Options) (report.Facts, error) {
	return p.signs, p.err
}

// working is a patient in the best of health.
func working() *patient {
	now := time.Now()
	return &patient{
		schema: store.SchemaInfo{Where: "stint", Installed: 3, Known: 3, Oldest: 1},
		kinds:  []stint.KindInfo{{Name: "mail", Timeout: time.Minute}},
		engines: []store.EngineInfo{{
			Token: 7, Instance: "one", Host: "h", PID: 42, Version: "v1", Kinds: []string{"mail"}, Queues: []string{"*"}, TimeToLive: 6 * time.Second, Beat: now,
		}},
		signs: report.Facts{Backlogs: []report.Backlog{{Queue: "default", Kind: "mail", Jobs: 5, Oldest: now.Add(-5 * time.Minute)}}},
	}
}

// Each finding is here with what provokes it, how much it matters and a part of
// what to do.
func TestWhatIsWrongIsFoundWithItsRemedy(t *testing.T) {
	hour := time.Date(1999, 12, 31, 23, 0, 0, 0, time.UTC) // in a bubble, an hour ago
	mail := func(p *patient) *report.Backlog { return &p.signs.Backlogs[0] }
	one := func(p *patient) *store.EngineInfo { return &p.engines[0] }
	for name, c := range map[string]struct {
		provoke  func(p *patient)
		severity report.Severity
		code     string
		problem  string
		remedy   string
	}{
		"this machine is ahead": {func(p *patient) { p.ahead = time.Hour }, report.SeverityWarning, "clock_difference", "1h0m0s ahead of the database's", "NTP"},
		"this machine is behind": {func(p *patient) {
			p.ahead = -time.Hour
			one(p).Beat, mail(p).Oldest = time.Now().Add(time.Hour), time.Now().Add(time.Hour)
		}, report.SeverityWarning, "clock_difference", "1h0m0s behind the database's", "NTP"},
		"nothing is installed":   {func(p *patient) { p.schema.Installed, p.schema.Oldest = 0, 0 }, report.SeverityProblem, "schema_missing", "not installed", "stint migrate up"},
		"an older schema":        {func(p *patient) { p.schema.Installed = 2 }, report.SeverityProblem, "schema_too_old", "version 2", "stint migrate up"},
		"a newer schema":         {func(p *patient) { p.schema.Installed = 4 }, report.SeverityNote, "schema_newer", "may still work", "newer stint"},
		"a schema that refuses":  {func(p *patient) { p.schema.Installed, p.schema.Oldest = 9, 9 }, report.SeverityProblem, "schema_too_new", "refuses", "newer stint"},
		"a kind without timeout": {func(p *patient) { p.kinds = append(p.kinds, stint.KindInfo{Name: "fax"}) }, report.SeverityNote, "kind_without_timeout", "holds its slot", "stint.Timeout"},
		"an engine is dead": {func(p *patient) {
			p.engines = append(p.engines, store.EngineInfo{Token: 9, Instance: "two", Version: "v1", TimeToLive: 6 * time.Second, Beat: hour})
			p.signs.Holds = map[store.EngineID]int{9: 3}
		}, report.SeverityProblem, "engine_dead", "it holds 3 jobs", "stint engines bury 9"},
		"an engine that is dead and holds nothing": {func(p *patient) {
			p.engines = append(p.engines, store.EngineInfo{Token: 9, Instance: "two", Version: "v1", TimeToLive: 6 * time.Second, Beat: hour})
		}, report.SeverityWarning, "engine_dead", "no heartbeat for 1h0m0s", "stint engines bury 9"},
		"an engine died just now": {func(p *patient) {
			p.engines = append(p.engines, store.EngineInfo{Token: 9, Instance: "two", Version: "v1", TimeToLive: 6 * time.Second, Beat: time.Now().Add(-7 * time.Second)})
			p.signs.Holds = map[store.EngineID]int{9: 3}
		}, report.SeverityWarning, "engine_dead", "it holds 3 jobs", "when it has watched it for 6s"},
		"an engine is silent whose session may live on": {func(p *patient) {
			p.engines = append(p.engines, store.EngineInfo{Token: 9, Instance: "two", Version: "v1", TimeToLive: 6 * time.Second, MaxOutage: 30 * time.Second, Beat: time.Now().Add(-30 * time.Second)})
			p.signs.Holds = map[store.EngineID]int{9: 3}
		}, report.SeverityWarning, "engine_dead", "it holds 3 jobs", "when it has watched it for 6s to 40s"},
		"a process is gone": {func(p *patient) {
			p.engines = append(p.engines, store.EngineInfo{Token: 9, Instance: "two", Version: "v1", TimeToLive: 6 * time.Second, Beat: time.Now(), Gone: true})
		}, report.SeverityWarning, "engine_dead", "its process is gone", "in a moment: start one if none does; by hand, stint engines bury 9"},
		"a process is stopped": {func(p *patient) {
			p.engines = append(p.engines, store.EngineInfo{Token: 9, Instance: "two", Host: "h", PID: 4, Version: "v1", TimeToLive: 6 * time.Second, Beat: hour, Held: true})
			p.signs.Holds = map[store.EngineID]int{9: 1}
		}, report.SeverityProblem, "engine_stuck", "its process lives", "process 4 on h"},
		"an engine is draining":   {func(p *patient) { one(p).Draining, one(p).Running = true, []store.Position{1} }, report.SeverityNote, "engine_draining", "still runs 1 job", "stint engines bury 7"},
		"engines of two versions": {func(p *patient) { p.engines = append(p.engines, p.engines[0]); p.engines[1].Version = "v2" }, report.SeverityNote, "engine_versions", "v1 (one), v2 (one)", "rolled out"},
		"an engine of no version": {func(p *patient) { p.engines = append(p.engines, p.engines[0]); p.engines[1].Version = "" }, report.SeverityNote, "engine_versions", ": unknown (one), v1 (one)", "rolled out"},
		"nobody is there":         {func(p *patient) { p.engines = nil }, report.SeverityProblem, "no_engine", "5 jobs, the first for 5m0s", "stint work"},
		"nobody is there yet":     {func(p *patient) { p.engines = nil; mail(p).Oldest = time.Now() }, report.SeverityWarning, "no_engine", "5 jobs", "stint work"},
		"a kind nobody knows":     {func(p *patient) { mail(p).Kind = "fax" }, report.SeverityProblem, "kind_unknown", "no running engine handles this kind", "--kind fax"},
		"a kind of a dead engine": {func(p *patient) {
			one(p).Beat = hour
			p.engines = append(p.engines, p.engines[0])
			one(p).Beat, one(p).Kinds = time.Now(), nil
		}, report.SeverityProblem, "kind_unknown", "ready and not begun: 5 jobs", "start an engine"},
		"a queue nobody works on":         {func(p *patient) { one(p).Queues = []string{"other"} }, report.SeverityProblem, "queue_unattended", "no engine that handles mail works on it", "--queues default"},
		"a paused queue":                  {func(p *patient) { mail(p).Paused, mail(p).By, mail(p).Why = hour, "ann", "mails bounce" }, report.SeverityNote, "queue_paused", "UTC by ann (mails bounce); ready and not begun: 5 jobs", "stint queues resume default"},
		"a queue that is paused for long": {func(p *patient) { mail(p).Paused, mail(p).Oldest = hour, hour }, report.SeverityWarning, "queue_paused", "ready and not begun: 5 jobs, the first for 1h0m0s", "stint queues resume default"},
		"a queue that is late":            {func(p *patient) { mail(p).Oldest = hour }, report.SeverityWarning, "queue_late", "do not keep up: 5 jobs could begin and have not, the first for 1h0m0s", "more slots"},
		"a kind that fails since lately": {func(p *patient) { p.ended(30, 20, 970, 30) },
			report.SeverityWarning, "kind_failing", "20 of the 50 attempts that ended in the last 15m failed or were lost (40%); in the day before that 3%", "stint jobs list --state failed,retrying --kind mail"},
		"a kind that fails for a day":  {func(p *patient) { p.ended(2, 28, 100, 900) }, report.SeverityWarning, "kind_failing", "(93%); in the day before that 90%", "stint queues pause"},
		"a kind that is new and fails": {func(p *patient) { p.ended(10, 10, 0, 0) }, report.SeverityWarning, "kind_failing", "(50%); in the day before that there were too few to compare", "stint queues pause"},
		"notes that nobody looks at":   {func(p *patient) { p.signs.Flows = report.FlowFacts{Open: 1, Blocked: 3, Noted: hour} }, report.SeverityProblem, "notes_unread", "no engine has looked at it for 1h", "what the engines log"},
		"notes that lie for a while":   {func(p *patient) { p.signs.Flows.Noted = time.Now().Add(-45 * time.Second) }, report.SeverityWarning, "notes_unread", "for 45s", "what the engines log"},
		"notes where no engine runs":   {func(p *patient) { p.engines, p.signs.Backlogs, p.signs.Flows.Noted = nil, nil, hour }, report.SeverityProblem, "notes_unread", "no engine runs that could look", "stint work"},
		"jobs that come too late":      {func(p *patient) { mail(p).Late = 2 }, report.SeverityWarning, "start_by_missed", "2 jobs of kind mail", "more engines"},
		"a missing retry function": {func(p *patient) {
			p.signs.Undecided = []report.UndecidedBacklog{{Func: "billing", Jobs: 2, Oldest: hour}}
		},
			report.SeverityProblem, "retry_function_missing", "no running engine has it", "Mux.RetryFunc"},
		"failures that any engine may judge": {func(p *patient) {
			p.signs.Undecided = []report.UndecidedBacklog{{Func: store.AnyEngine, Jobs: 2, Oldest: hour}}
		},
			report.SeverityProblem, "retry_policy_waits", "of 2 failed jobs of workers by SQL", "start an engine"},
		"a missing recurrence function": {func(p *patient) {
			p.scheduled(func(s *store.ScheduleInfo) { s.After, s.Next, s.Recurrence = hour, time.Time{}, cron.Function("nofn") })
		}, report.SeverityProblem, "schedule_unplanned", "has the recurrence function nofn, or it fails there, for 1h0m0s", "Mux.Recurrence"},
		"a schedule that nobody fires": {func(p *patient) {
			p.engines, p.signs.Backlogs = nil, nil
			p.scheduled(func(s *store.ScheduleInfo) { s.Next = hour })
		}, report.SeverityProblem, "schedule_unplanned", "no engine runs that could make its jobs, for 1h0m0s", "stint work"},
		"a schedule that no engine fires": {func(p *patient) {
			p.scheduled(func(s *store.ScheduleInfo) { s.Next = hour })
		}, report.SeverityProblem, "schedule_unplanned", "overdue, though engines run, for 1h0m0s", "time zones"},
		"a schedule that missed occurrences": {func(p *patient) {
			p.scheduled(func(s *store.ScheduleInfo) {
				s.Passed, s.PassedAt, s.LastOccurrence = 3, hour, hour.Add(-time.Minute)
			})
		}, report.SeverityWarning, "schedule_missed", "as was found at 1999-12-31 23:00:00 UTC", "stint schedules run-now nightly"},
		"a schedule of a kind that nobody knows": {func(p *patient) {
			p.scheduled(func(s *store.ScheduleInfo) { s.Job.Kind = "fax" })
		}, report.SeverityWarning, "schedule_unknown_kind", "schedule nightly makes jobs of it", "start an engine that does, or: stint schedules remove nightly"},
		"a schedule from when the clock was ahead": {func(p *patient) {
			p.scheduled(func(s *store.ScheduleInfo) {
				s.After = time.Now().Add(100 * time.Hour)
				s.Next = s.After.Add(time.Hour)
			})
		}, report.SeverityProblem, "schedule_ahead", "4d4h from now: the database's clock was ahead", "stint schedules remove nightly, and add it again"},
		"a limit without a rule": {func(p *patient) {
			p.limits = []store.LimitInfo{{Name: "smtp", Rule: "any", Gates: 1, Held: 3}}
		}, report.SeverityNote, "limit_without_rule", "they bound nothing", "stint limits set smtp 10"},
		"a limit of a kind without a rule": {func(p *patient) { p.kinds[0].Limits = []string{"tenant by /tenant", "erp=x"} },
			report.SeverityNote, "limit_without_rule", "they bound nothing", "stint limits set erp 10"},
		"a limit that lets none start": {func(p *patient) {
			l, _ := p.limited("0")
			l.Declared, l.Set, l.SetAt, l.By, l.Why = "10", "0", hour, "ann", "mails bounce"
			mail(p).Oldest = time.Now()
		}, report.SeverityNote, "limit_stopped", "its rule is 0, set 1999-12-31 23:00:00 UTC by ann (mails bounce): no job of it starts", "stint limits reset smtp"},
		"a limit that has let none start for long": {func(p *patient) { p.limited("0") },
			report.SeverityWarning, "limit_stopped", "its rule is 0: no job of it starts", "stint limits set smtp 10"},
		"a limit that is paused": {func(p *patient) {
			l, _ := p.limited("10")
			l.Paused, mail(p).Oldest = &store.Paused{Until: time.Now().Add(time.Minute), By: "ann", Why: "mails bounce"}, time.Now()
		}, report.SeverityNote, "limit_paused", "no job of it starts until 2000-01-01 00:01:00 UTC, paused by ann (mails bounce)", "stint limits resume smtp"},
		"a limit whose jobs have waited for long behind a pause": {func(p *patient) {
			l, _ := p.limited("10")
			l.Paused = &store.Paused{Until: time.Now().Add(time.Minute)}
		}, report.SeverityWarning, "limit_paused", "no job of it starts", "stint limits resume smtp"},
		"a limit of which nothing runs": {func(p *patient) {
			l, g := p.limited("10")
			l.Held, g.Held, g.Holds = 0, 0, []store.GateHolding{{Engine: 7, Instance: "one", Asked: 3}}
		}, report.SeverityWarning, "limit_idle", "jobs wait for it, the first for 1h0m0s, and none of it runs", "stint limits show smtp"},
		"a limit whose jobs say it themselves, and of which nothing runs": {func(p *patient) {
			l, g := p.limited("10")
			l.Held, g.Held, p.kinds[0].Limits = 0, 0, nil
		}, report.SeverityWarning, "limit_idle", "the first for 1h0m0s", "stint limits show smtp"},
		"a limit whose rate lets none start for long": {func(p *patient) {
			l, g := p.limited("any,1/1h")
			l.Held, g.Held, g.Next = 0, 0, time.Now().Add(50*time.Minute)
		}, report.SeverityWarning, "limit_idle", "none of it runs; under its rate the next may start at 2000-01-01 00:50:00 UTC", "stint limits set smtp 10"},
		"a limit that is halted": {func(p *patient) {
			l, g := p.limited("1,in-order,halt")
			l.Asked, l.Name, g.Gate, g.Key, g.Failed, p.kinds[0].Limits[0] = 0, "account", "account=7", "7", 12, "account by /account"
		}, report.SeverityWarning, "limit_halted", "a job failed, and those after it stand still: account=7", "stint jobs retry 12; or go on without it: stint limits unblock account=7"},
		"a limit that is full for long": {func(p *patient) { p.limited("10,100/1m") },
			report.SeverityNote, "limit_full", "10 of 10 are in use by one (10), and the first of the jobs that wait has done so for 1h0m0s", "stint limits set smtp 20,100/1m"},
		"a key that is full for long": {func(p *patient) {
			l, g := p.limited("10")
			l.Name, g.Gate, g.Key, p.kinds[0].Limits[0] = "tenant", "tenant=acme", "acme", "tenant by /tenant"
		}, report.SeverityNote, "limit_full", "10 of 10 for the key acme are in use by one (10)", "stint limits set tenant 20"},
		"a limit that a dead engine holds": {func(p *patient) {
			_, g := p.limited("10")
			mail(p).Oldest = time.Now()
			p.engines = append(p.engines, store.EngineInfo{Token: 9, Instance: "two", Version: "v1", TimeToLive: 6 * time.Second, Beat: time.Now().Add(-7 * time.Second)})
			g.Holds[0].Held, g.Holds = 4, append(g.Holds, store.GateHolding{Engine: 9, Instance: "two", Held: 6})
		}, report.SeverityWarning, "limit_held_by_dead", "engine two holds 6 of them, and sends no heartbeat", "stint engines bury 9"},
		"something of the store's own": {func(p *patient) {
			p.signs.Findings = []report.Finding{{Severity: report.SeverityWarning, Code: "x", Problem: "y", Remedy: "z"}}
		}, report.SeverityWarning, "x", "y", "z"},
		"a store that does not answer": {func(p *patient) { p.err = errors.New("no route to host") }, report.SeverityProblem, "schema_unreadable", "no route to host", "see whether"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := working()
				c.provoke(p)
				all := diagnose(t, p)
				i := slices.IndexFunc(all, func(f report.Finding) bool { return f.Code == c.code })
				if i < 0 {
					t.Fatalf("there is no %s among %v", c.code, all)
				}
				f := all[i]
				if f.Severity != c.severity || !strings.Contains(f.Problem, c.problem) || !strings.Contains(f.Remedy, c.remedy) {
					t.Errorf("found is %+v\nwant a %s with %q and %q", f, c.severity, c.problem, c.remedy)
				}
				if len(all) > 1 && p.err == nil && len(p.engines) < 2 {
					t.Errorf("more is found: %v", all)
				}
				for i := range all[1:] {
					if rank := []report.Severity{"problem", "warning", "note"}; slices.Index(rank, all[i].Severity) > slices.Index(rank, all[i+1].Severity) {
						t.Errorf("%s comes before %s", all[i].Code, all[i+1].Code)
					}
				}
			})
		})
	}
}

func diagnose(t *testing.T, p *patient) []report.Finding {
	t.Helper()
	all, err := report.Diagnose(t.Context(), p, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Under load the attempts that are not in the sums yet are not read: there may be any number.
func TestUnderLoadOnlySumsAreRead(t *testing.T) {
	for unsummed, settled := range map[int]bool{0: false, 19_999: false, 20_000: true, 1_000_000: true} {
		p := working()
		p.ended(0, 50, 0, 0)
		if p.unsummed = unsummed; len(diagnose(t, p)) != 1 || p.settled != settled {
			t.Errorf("with %d attempts that are not summed up it asks for settled sums: %v, want %v", unsummed, p.settled, settled)
		}
	}
}

// A finding leads to the page of what it is about.
func TestFindingsNameTheirPages(t *testing.T) {
	hour := time.Now().Add(-time.Hour)
	for page, provoke := range map[string]func(p *patient){
		"/engines/7":        func(p *patient) { p.engines[0].Beat = hour },
		"/kinds/a%2Fb":      func(p *patient) { p.signs.Backlogs[0].Kind = "a/b" },
		"/queues/default":   func(p *patient) { p.signs.Backlogs[0].Oldest = hour },
		"/errors?kind=mail": func(p *patient) { p.ended(0, 50, 0, 0) },
		"/limits/smtp":      func(p *patient) { p.limited("0") },
		"/engines":          func(p *patient) { p.engines = nil },
		"/schedules/nightly": func(p *patient) {
			p.scheduled(func(s *store.ScheduleInfo) { s.PassedAt = hour })
		},
		"/schedules": func(p *patient) {
			for _, name := range []string{"a", "b"} {
				p.scheduled(func(s *store.ScheduleInfo) { s.Name, s.PassedAt = name, hour })
			}
		},
	} {
		p := working()
		provoke(p)
		if all := diagnose(t, p); !slices.ContainsFunc(all, func(f report.Finding) bool { return f.Page == page }) {
			t.Errorf("none leads to %s: %+v", page, all)
		}
	}
}

func TestNothingIsFoundWhereAllIsWell(t *testing.T) {
	p := working()
	p.signs.Flows = report.FlowFacts{Open: 7, Blocked: 1000, Noted: time.Now().Add(-20 * time.Second)} // an engine is about to look
	p.signs.Undecided = []report.UndecidedBacklog{{Func: "billing", Jobs: 1, Oldest: time.Now()}}      // an engine is about to decide
	p.scheduled(func(s *store.ScheduleInfo) {})
	p.scheduled(func(s *store.ScheduleInfo) { s.Declared, s.Next = time.Now(), time.Time{} })              // declared just now
	p.scheduled(func(s *store.ScheduleInfo) { s.Next, s.Paused = time.Now().Add(-time.Hour), time.Now() }) // nobody is to fire it
	p.scheduled(func(s *store.ScheduleInfo) { s.Job.Kind, s.Ended = "fax", time.Now() })
	p.limited("10")
	p.signs.Backlogs[0].Oldest = time.Now().Add(-time.Minute) // it is full, and not for long
	if all := diagnose(t, p); len(all) > 0 {
		t.Errorf("found is %v", all)
	}
	p.signs.Backlogs[0].Oldest = time.Now().Add(-time.Hour)
	p.gates[0].Held = 9 // it lets one start
	if all := diagnose(t, p); len(all) > 0 {
		t.Errorf("found is %v", all)
	}
	for name, change := range map[string]func(p *patient){
		"a queue whose jobs wait for a while": func(p *patient) { p.signs.Backlogs[0].Oldest = time.Now().Add(-9 * time.Minute) },
		"few attempts that fail":              func(p *patient) { p.ended(0, 19, 0, 0) },
		"a kind that often fails":             func(p *patient) { p.ended(50, 50, 700, 300) },
		"a kind that fails now and then":      func(p *patient) { p.ended(90, 10, 10_000, 0) },
		"a schedule that has fired since": func(p *patient) {
			p.scheduled(func(s *store.ScheduleInfo) {
				s.Passed, s.PassedAt, s.LastOccurrence = 3, time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
			})
		},
		"a schedule that missed occurrences long ago": func(p *patient) {
			p.scheduled(func(s *store.ScheduleInfo) { s.Passed, s.PassedAt = 3, time.Now().Add(-25*time.Hour) })
		},
		"a rate that lets one start soon": func(p *patient) {
			l, g := p.limited("any,1/1m")
			l.Held, g.Held, g.Next = 0, 0, time.Now().Add(50*time.Second)
		},
		"a job that comes again before others": func(p *patient) {
			l, g := p.limited("1,in-order")
			l.Held, g.Held, g.Again = 0, 0, 12
		},
		"a limit that jobs wait for since a moment": func(p *patient) {
			l, g := p.limited("10")
			l.Held, g.Held, p.signs.Backlogs[0].Oldest = 0, 0, time.Now().Add(-time.Minute)
		},
	} {
		p := working()
		change(p)
		if all := diagnose(t, p); len(all) > 0 {
			t.Errorf("%s: found is %v", name, all)
		}
	}
}

// What waits for somebody who is known is not waited for, and its remedy is
// theirs.
func TestWhereSomebodyIsBlockedLittleIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for code, remedy := range map[string]string{report.CodeBlocked: "session 7 (blocked)", report.CodeNotChecked: "whether the database answers"} {
			p := working()
			p.hangs = true
			p.signs.Findings = []report.Finding{{Severity: report.SeverityWarning, Code: code, Subject: "session 7"}}
			began := time.Now()
			all := diagnose(t, p)
			if took := time.Since(began); took > time.Second {
				t.Errorf("after %s, it took %v", code, took)
			}
			i := slices.IndexFunc(all, func(f report.Finding) bool { return f.Subject == "the roster of engines" })
			if i < 0 || !strings.Contains(all[i].Remedy, remedy) {
				t.Errorf("after %s, found is %+v", code, all)
			}
		}
	})
}

// What a job of the command is to do, only whoever enqueues it knows, and so
// for how long.
func TestKindsWhoseJobsAreBoundedOneByOneAreNotNoted(t *testing.T) {
	p := working()
	p.kinds = []stint.KindInfo{{Name: "sh"}, {Name: "fax"}}
	all, err := report.Diagnose(t.Context(), p, report.Options{Bounded: []string{"sh"}})
	if err != nil || len(all) != 1 || all[0].Subject != "kinds fax" {
		t.Errorf("found is %v, error %v", all, err)
	}
}

// A slow answer tells less, and must not be taken for a difference.
func TestASlowConnectionIsNoDifferenceOfClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for slow, found := range map[time.Duration]int{250 * time.Millisecond: 0, 20 * time.Millisecond: 1} {
			p := working()
			p.ahead, p.slow = 2200*time.Millisecond, slow
			if all := diagnose(t, p); len(all) != found {
				t.Errorf("with answers after %v, found is %v", slow, all)
			}
		}
	})
}

func TestManyOfOneReasonAreOneFinding(t *testing.T) {
	p := working()
	p.engines = nil
	p.signs.Backlogs = nil
	for i := range 30 {
		p.signs.Backlogs = append(p.signs.Backlogs, report.Backlog{Queue: fmt.Sprint("q", i), Kind: "mail", Jobs: report.BacklogLimit, Oldest: time.Now().Add(-time.Hour)})
	}
	if all := diagnose(t, p); len(all) != 1 || !strings.Contains(all[0].Problem, "at least 300000 jobs") {
		t.Errorf("found is %v", all)
	}
}

func TestAnEndedContextIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := report.Diagnose(ctx, working(), report.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

func ExampleDiagnose() {
	store := working()                                 // postgres.Open or sqlite.Open
	store.engines[0].Beat = time.Now().Add(-time.Hour) // nobody beats any more
	findings, err := report.Diagnose(context.Background(), store, report.Options{})
	if err != nil {
		panic(err)
	}
	for _, f := range findings {
		fmt.Printf("%s: %s, %s\n  %s\n", f.Severity, f.Code, f.Subject, f.Remedy)
	}
	// Output:
	// problem: no_engine, the roster
	//   start one: stint work, or the program that has your kinds
	// warning: engine_dead, engine one (7)
	//   an engine buries it when it has watched it for 6s: start one if none runs; by hand, stint engines bury 7 frees what it holds
}
