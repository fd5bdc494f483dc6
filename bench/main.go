// Command bench measures stint on this machine, beside the least that the same
// database must do for the same promises. It works in a schema of its own, or for
// SQLite in a file of its own in the same directory, and removes it.
//
//	bench burn -n 1000000 --db postgres:///app --runs 5
//
// A measurement is a function that holds bouts of package contest: it has a name,
// its settings with their defaults, and is listed in measurements. Every one has
// the same flags of these names, the same printer and the same --json, which is
// one line.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stint-go/stint/bench/contest"
)

// measurement is something that can be measured.
type measurement struct {
	name, about string
	flags       string // the names of its settings, each with its default
	run         func(ctx context.Context, b *bench) error
}

const compared = " no-limit=false pin-horizon=false open-writers=0 compare=false"

var measurements = []measurement{
	{"burn", "jobs per second at most: enqueued in bulk, then worked off",
		"jobs=100000 batch=5000 producers=2 lanes=1 at-once=0 keys=1 engines=1 slots=0 work=0s one-by-one=false before=0 waiting=0 args=0 sealed=false" + compared, burn},
	{"steady", "whether the speed lasts while jobs keep coming",
		"duration=1m every=5s batch=1000 producers=2 backlog=20000 engines=1 slots=0 jobs=1000000 keep=0s" + compared, steady},
	{"latency", "how long an idle engine takes to start a job, and how late scheduled jobs are",
		"rate=50 duration=10s scheduled=0.2 lanes=1 slots=0", latency},
	{"flows", "how soon a job begins after those that it needs", "jobs=10000 rounds=5 slots=0 work=0s", flows},
	{"gateway", "workers over HTTP: jobs per second, pickup, and what idle ones cost",
		"jobs=100000 batch=5000 workers=4 slots=0 rate=50 duration=20s idle-workers=1000", workersOverHTTP},
	{"single", "one enqueue for each transaction, beside bare inserts of an equal row", "producers=16 duration=10s asleep=false", single},
	{"limit", "what the database could do at most, by hand", "jobs=100000 batch=5000 producers=2", limit},
	{"pages", "what the pages of the dashboard cost",
		"jobs=1000000 batch=5000 producers=2 engines=1 slots=0 before=0 waiting=0 rounds=21 tabs=10 watch=30s runs=6", pages},
}

// settings are what flags say.
type settings struct {
	db                                                               string
	jobs, batch, producers, backlog, engines, slots, before, waiting int
	lanes, atOnce, keys, writers, args, rounds, tabs, runs           int
	workers, idleWorkers                                             int
	work, duration, every, watch, keep                               time.Duration
	rate, scheduled                                                  float64
	oneByOne, noLimit, pin, compare, asleep, json, sealed            bool
}

// options are all flags that there are. Durations are bounded in seconds.
func (s *settings) options() []option {
	return []option{
		{"jobs", &s.jobs, 1, 1e9, "how many jobs"},
		{"batch", &s.batch, 1, 20_000, "how many jobs are enqueued at a time"},
		{"producers", &s.producers, 1, 10_000, "how many enqueue side by side"},
		{"lanes", &s.lanes, 1, 20_000, "how many queues they are spread over"},
		{"at-once", &s.atOnce, 0, 1e6, "the limit that all jobs wait for: how many run at once; 0 is no limit"},
		{"keys", &s.keys, 1, 20_000, "how many keys the limit has, each with a count of its own"},
		{"backlog", &s.backlog, 1, 1e9, "how many jobs wait, about"},
		{"engines", &s.engines, 1, 1000, "how many engines, each with connections of its own"},
		{"workers", &s.workers, 1, 1000, "how many workers take jobs over HTTP"},
		{"idle-workers", &s.idleWorkers, 0, 10_000, "how many workers wait for jobs"},
		{"slots", &s.slots, 0, 100_000, "how many jobs each runs at once; 0 is its default"},
		{"work", &s.work, 0, 60, "how long each job takes"},
		{"one-by-one", &s.oneByOne, 0, 1, "claim one job at a time, as engines do whose jobs take long"},
		{"before", &s.before, 0, 1e9, "how many jobs are worked off beforehand, unmeasured"},
		{"waiting", &s.waiting, 0, 1e9, "how many jobs wait for next year meanwhile"},
		{"args", &s.args, 0, 500_000, "how many bytes of arguments each job has"},
		{"sealed", &s.sealed, 0, 1, "measure it with sealed arguments, too"},
		{"no-limit", &s.noLimit, 0, 1, "do not measure what the database does by hand beside it"},
		{"pin-horizon", &s.pin, 0, 1, "hold a snapshot and an idle write transaction open (SQLite: a read transaction)"},
		{"open-writers", &s.writers, 0, 100_000, "hold so many unrelated write transactions open (PostgreSQL)"},
		{"compare", &s.compare, 0, 1, "measure it with nothing held open, too"},
		{"duration", &s.duration, 0.01, 86_400, "for how long"},
		{"every", &s.every, 0.01, 86_400, "how long an interval is"},
		{"keep", &s.keep, 0, 1e8, "delete jobs that ended so long ago meanwhile, in turns with keeping all of them; 0 keeps all"},
		{"rate", &s.rate, 0.001, 100_000, "jobs per second"},
		{"scheduled", &s.scheduled, 0, 0.9, "the part of the jobs that is scheduled"},
		{"asleep", &s.asleep, 0, 1, "have an idle engine wait, which is to be woken; else nobody waits"},
		{"rounds", &s.rounds, 1, 1e6, "how often each is done"},
		{"tabs", &s.tabs, 1, 100, "how many pages are open while jobs are worked"},
		{"watch", &s.watch, 0.1, 3600, "for how long one page is open, and none"},
		{"runs", &s.runs, 1, 1000, "how many rounds, of which medians are told"},
		{"json", &s.json, 0, 1, "print one line of JSON, with the figures of each round"},
	}
}

func main() { contest.Main("bench", run) }

func run(ctx context.Context, arguments []string, out, errs io.Writer) error {
	if wait := os.Getenv(idleEnv); wait != "" {
		url, n, _ := strings.Cut(wait, " ")
		workers, err := strconv.Atoi(n)
		if err != nil {
			return err
		}
		return beIdle(ctx, url, workers)
	}
	if len(arguments) == 0 || strings.HasPrefix(arguments[0], "-") {
		fmt.Fprintln(errs, "bench NAME [flags] measures; bench NAME --help lists the flags of one. There are:")
		for _, m := range measurements {
			fmt.Fprintf(errs, "  %-8s  %s\n", m.name, m.about)
		}
		return flag.ErrHelp
	}
	i := slices.IndexFunc(measurements, func(m measurement) bool { return m.name == arguments[0] })
	if i < 0 {
		return fmt.Errorf("there is no measurement %q; bench without arguments lists them", arguments[0])
	}
	b := &bench{name: arguments[0], out: out, errs: errs}
	flags, err := b.parse(measurements[i], arguments[1:])
	if err != nil {
		return err
	}
	if err := b.check(); err != nil {
		return err
	}
	if err := measurements[i].run(ctx, b); err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted; nothing was left behind")
		}
		return err
	}
	return b.conclude(ctx, flags)
}

// bench is a measurement under way.
type bench struct {
	settings
	name      string
	out, errs io.Writer
	results   []contest.Result
}

// parse reads the flags of a measurement.
func (b *bench) parse(m measurement, arguments []string) (*flag.FlagSet, error) {
	f := flag.NewFlagSet("bench "+m.name, flag.ContinueOnError)
	f.SetOutput(b.errs)
	f.StringVar(&b.db, "db", "stint.db", "PostgreSQL by URL, or an SQLite file: another one in its directory is measured")
	defaults := map[string]string{"runs": "1", "json": "false"}
	for field := range strings.FieldsSeq(m.flags) {
		name, value, _ := strings.Cut(field, "=")
		defaults[name] = value
	}
	for _, o := range b.options() {
		if value, ok := defaults[o.name]; ok {
			if err := o.Set(value); err != nil {
				return nil, fmt.Errorf("the default of --%s: %w", o.name, err)
			}
			f.Var(o, o.name, o.usage)
		}
	}
	if jobs := f.Lookup("jobs"); jobs != nil {
		f.Var(jobs.Value, "n", "the same as --jobs")
	}
	if err := f.Parse(arguments); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("%q is no flag", f.Arg(0))
	}
	return f, nil
}

// check finds what fits together never.
func (b *bench) check() error {
	switch {
	case b.oneByOne && b.slots > 1:
		return fmt.Errorf("--one-by-one is one job at a time: --slots %d is not for it, but --engines is", b.slots)
	case b.oneByOne && b.work > 0:
		return errors.New("--one-by-one measures claims: --work is not for it")
	case b.oneByOne && b.sealed:
		return errors.New("--one-by-one measures claims: --sealed is not for it")
	case b.writers > 0 && !b.isPostgres():
		return errors.New("--open-writers is for PostgreSQL: an SQLite file has one writer, and everybody would wait for it")
	case b.compare && !b.pin && b.writers == 0:
		return errors.New("--compare: there is nothing to compare with; add --pin-horizon or --open-writers")
	case b.every > b.duration:
		return fmt.Errorf("--every %v is longer than --duration %v", b.every, b.duration)
	case b.backlog > 0 && b.backlog < b.batch:
		return fmt.Errorf("--backlog %d is less than the %d jobs of a --batch", b.backlog, b.batch)
	}
	return nil
}

// hold holds a bout, and prints what came of it.
func (b *bench) hold(ctx context.Context, bout contest.Bout) error {
	r, err := contest.Output{Runs: b.runs, JSON: b.json}.Hold(ctx, bout, b.out, b.errs)
	if err == nil {
		b.results = append(b.results, r)
	}
	return err
}

// conclude tells what the figures were measured with. A figure without that means
// nothing a month later.
func (b *bench) conclude(ctx context.Context, flags *flag.FlagSet) error {
	about := map[string]string{}
	flags.VisitAll(func(f *flag.Flag) {
		if f.Name != "n" && f.Name != "db" && f.Name != "json" {
			about[f.Name] = f.Value.String()
		}
	})
	if err := b.about(ctx, about); err != nil {
		return err
	}
	if b.json {
		e := json.NewEncoder(b.out)
		e.SetEscapeHTML(false)
		return e.Encode(map[string]any{"measurement": b.name, "results": b.results, "settings": about})
	}
	return contest.PrintSettings(b.out, about)
}
