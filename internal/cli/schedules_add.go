package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
)

const schedulesAddHelp = `add SCHEDULE KIND [ARGS]: Declare a schedule

Add declares a schedule: a job of KIND, made again and again. ARGS are as for
enqueue. A schedule that is there already is changed, and keeps its counters and its
next occurrence, unless it recurs otherwise. What a program or a file declares, an
engine declares again when it starts, which undoes the change: make it there instead.

--cron takes five fields (minute, hour, day of month, month, day of week) or @hourly,
@daily, @weekly, @monthly, @yearly, by the clock of --zone. A fixed local time that
the clock skips runs right after the gap, one that it shows twice runs once; a wildcard
runs whenever the clock shows a time that fits.

An occurrence is missed when a later one is due as well, or when it is more than a
minute late: no engine ran, or the database was away. --missed one runs the newest of
these, all:100 all of them up to a hundred, and none runs none.

Examples:
  stint schedules add report --cron '30 2 * * *' --zone Europe/Berlin --unique send_report
  stint schedules add ping --every 5m --retry none http '{"url":"https://example.com"}'
  stint schedules add close_books --cron '0 6 1 * *' --missed all:12 close_books`

// scheduleFlags are the options of a schedule and of its jobs.
type scheduleFlags struct {
	cron                cron.Recurrence
	every               time.Duration
	function, zone      string
	unique              bool
	missed              stint.Missed
	notBefore, notAfter time.Time
	job                 jobFlags
}

func (f *scheduleFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.Var(recurrences.in(&f.cron), "cron", "when: '30 2 * * MON-FRI', or @hourly, @daily, @weekly, @monthly, @yearly")
	durationFlag(flags, &f.every, "every", 0, "or how often: 90s, 5m, 12h")
	flags.StringVar(&f.function, "function", "", "or the name of a recurrence function, which a program of yours has")
	flags.StringVar(&f.zone, "zone", "UTC", "the time zone whose clock that is about: Europe/Berlin")
	flags.BoolVar(&f.unique, "unique", false, "skip an occurrence while the job of the one before has not ended")
	flags.Var(missedRules.in(&f.missed), "missed", "what runs of the occurrences that were missed: one, all:100, none")
	flags.Var(instants.in(&f.notBefore), "not-before", "the earliest occurrence that there may be, a time as for enqueue --run-at")
	flags.Var(instants.in(&f.notAfter), "not-after", "the last occurrence that there may be")
	f.job.addLasting(flags)
}

// recurrence is given by one of three flags.
func (f *scheduleFlags) recurrence(flags *pflag.FlagSet) (cron.Recurrence, error) {
	ways := 0
	for _, name := range []string{"cron", "every", "function"} {
		if flags.Changed(name) {
			ways++
		}
	}
	switch {
	case ways != 1:
		return cron.Recurrence{}, usagef("say when by one of --cron, --every and --function")
	case flags.Changed("every"):
		return saidBy("every", cron.Every(f.every))
	case flags.Changed("function"):
		return saidBy("function", cron.Function(f.function))
	}
	return f.cron, nil
}

// saidBy checks the recurrence of a flag.
func saidBy(flag string, r cron.Recurrence) (cron.Recurrence, error) {
	if err := r.Validate(); err != nil {
		return r, settingf(flag, "%s", strings.TrimPrefix(err.Error(), "cron: "))
	}
	return r, nil
}

// schedule is that of the flags, without its job.
func (f *scheduleFlags) schedule(name string, flags *pflag.FlagSet) (stint.Schedule, error) {
	when, err := f.recurrence(flags)
	return stint.Schedule{
		Name: name, Recurrence: when, Zone: f.zone, Unique: f.unique, Missed: f.missed,
		NotBefore: f.notBefore, NotAfter: f.notAfter,
	}, err
}

func (a *app) schedulesAddCommand() *cobra.Command {
	var flags scheduleFlags
	cmd := a.withJSON(a.does(page(schedulesAddHelp), func(ctx context.Context, cmd *cobra.Command, args []string) error {
		s, err := flags.schedule(args[0], cmd.Flags())
		if err != nil {
			return err
		}
		raw, err := a.jsonArgument("args", args[2:])
		if err != nil {
			return err
		}
		opts, err := flags.job.options(cmd.Flags())
		if err != nil {
			return byFlag(cmd.Flags(), err)
		}
		s.Job = stint.KindInfo{Name: args[1]}.Job(raw, opts...)
		if err := s.Check(stint.Limits{}); err != nil {
			return hintInput(byFlag(cmd.Flags(), err))
		}
		return a.accept(ctx, args[1], raw, flags.job.force, opts, func(db *database, job stint.NewJob) error {
			s.Job = job
			s.Job.Unique = "" // the kind's is for producers
			return a.addSchedule(ctx, db, s)
		})
	}))
	flags.add(cmd.Flags())
	cmd.Flags().Lookup("force").Usage = "add it even if no engine ever declared the kind"
	return cmd
}

func (a *app) addSchedule(ctx context.Context, db *database, s stint.Schedule) error {
	before, err := db.Schedule(ctx, s.Name)
	isNew := errors.Is(err, stint.ErrNoSchedule)
	if err != nil && !isNew {
		return err
	}
	in, err := ops.ExactSchedule(s)
	if err != nil {
		return err
	}
	info, err := ops.DeclareSchedule.Call(ctx, db, in)
	if err != nil {
		return err
	}
	if !isNew {
		a.noteDeclared(before, "this change is undone")
	}
	if a.json {
		return a.printJSON(info)
	}
	changed := " is changed"
	if isNew {
		changed = ""
	}
	now, err := db.now(ctx)
	if err != nil {
		return err
	}
	next := "next " + nextInWords(info, now)
	if info.State() == "ended" {
		next = "which never fires: no occurrence is left before " + moment(info.NotAfter)
		if info.NotAfter.IsZero() {
			next = "which never fires: no occurrence is left"
		}
	}
	fmt.Fprintf(a.out, "schedule %s%s: %s, %s\n", words.Visible(s.Name), changed, view.WhenInWords(info), next)
	return nil
}

// recurrences are times of cron.
var recurrences = syntax[cron.Recurrence]{name: "cron", form: `a string: "30 2 * * *"`, format: cron.Recurrence.String, parse: func(text string) (cron.Recurrence, error) {
	r, err := cron.Parse(text)
	if err != nil {
		err = errors.New(strings.TrimPrefix(err.Error(), "cron: "))
	}
	return r, err
}}

// missedRules say what becomes of missed occurrences.
var missedRules = syntax[stint.Missed]{name: "which", form: `a string: "all:100"`, parse: func(text string) (m stint.Missed, err error) {
	err = m.UnmarshalText([]byte(text))
	return m, err
}, format: stint.Missed.String}

// schedulesKey is the table of a file in which each table is a schedule.
const schedulesKey = "schedules"

// fileSchedule is a schedule of a file. Its kind's defaults are looked up when an
// engine starts.
type fileSchedule struct {
	schedule stint.Schedule
	args     json.RawMessage
	opts     []stint.Option
	place    string // file and line
}

func readSchedules(e entry) ([]fileSchedule, error) {
	tables, err := e.parts()
	var all []fileSchedule
	for _, one := range tables {
		s, err := readSchedule(one)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, err
}

// readSchedule reads a schedule by the flags of stint schedules add.
func readSchedule(e entry) (f fileSchedule, err error) {
	var flags scheduleFlags
	kind := ""
	known := pflag.NewFlagSet("schedule", pflag.ContinueOnError)
	flags.addToFile(known, &kind, &f.args)
	if err := e.fill(known, "kind"); err != nil {
		return f, err
	}
	f.place = fmt.Sprintf("%s:%d", e.file.path, e.line)
	if f.schedule, err = flags.schedule(e.name, known); err != nil {
		return f, e.refuse(errors.New(strings.ReplaceAll(err.Error(), "--", "")))
	}
	if f.opts, err = flags.job.options(known); err == nil {
		f.schedule.Job = stint.KindInfo{Name: kind}.Job(f.args, f.opts...)
		err = f.schedule.Check(stint.Limits{})
	}
	if err == nil {
		err = checkArgs(kind, f.args)
	}
	return f, e.misplaced(err)
}

// addToFile adds what the table of a schedule may hold: the flags, and what is an argument
// or given many times on a command line.
func (f *scheduleFlags) addToFile(known *pflag.FlagSet, kind *string, args *json.RawMessage) {
	given := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.add(given)
	given.VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "force" && flag.Name != "tag" && flag.Name != "limit" && flag.Name != "metadata" {
			known.AddFlag(flag)
		}
	})
	known.StringVar(kind, "kind", "", "the kind of its jobs")
	known.Var(fileOnly(func(e entry) (err error) {
		*args, err = e.json()
		return err
	}), "args", "their arguments: a table, an array or another value, as JSON")
	known.Var(nameList(&f.job.tags, "tags"), "tags", "labels to find them by")
	known.Var(nameList(&f.job.limits, "limits"), "limits", "limits that they wait for, beside those of the kind")
	known.Var(fileOnly(func(e entry) error {
		raw, err := e.json()
		f.job.opts = append(f.job.opts, stint.Metadata(raw))
		return err
	}), "metadata", "a table that is kept beside the arguments")
}

// misplaced gives an error the line of its part.
func (e entry) misplaced(err error) error {
	if invalid, ok := errors.AsType[*stint.InvalidError](err); ok {
		name := strings.ReplaceAll(invalid.Field, " ", "-")
		if at := below(e.at, name); e.file.lines[at] > 0 {
			e.line, e.key, e.name, err = e.file.lines[at], below(e.key, name), name, errors.New(invalid.Problem)
		}
	}
	return e.refuse(err)
}

// json is the value as JSON.
func (e entry) json() (json.RawMessage, error) {
	raw, err := json.Marshal(e.value)
	if err != nil {
		return nil, e.refuse(errors.New("it cannot be written as JSON"))
	}
	return raw, nil
}

// declareSchedules adds the schedules of the file to those that the engine of a mux
// declares. It warns of kinds that no engine declared: programs with them may start later,
// but more often the kind is misspelt, and its jobs wait for ever.
func (a *app) declareSchedules(ctx context.Context, db *database, mux *stint.Mux) error {
	if len(a.schedules) == 0 {
		return nil
	}
	known, err := db.Kinds(ctx)
	if err != nil {
		return err
	}
	var (
		all     []stint.Schedule
		unknown []fileSchedule
	)
	for _, f := range a.schedules {
		kind := f.schedule.Job.Kind
		declared, err := a.declaration(ctx, db, kind, true)
		if err != nil {
			return err
		}
		if own := mux.Declaration(kind); own.Name != "" {
			declared = own // also if the database does not have it yet
		} else if knows(known, kind) != nil {
			unknown = append(unknown, f)
		}
		s := f.schedule
		s.Job = declared.Job(f.args, f.opts...)
		s.Job.Unique = "" // the kind's is for producers
		if err := s.Check(stint.Limits{}); err != nil {
			return &usageError{fmt.Errorf("%s: schedules.%s: %w", f.place, s.Name, err)}
		}
		all = append(all, s)
	}
	for _, f := range unknown {
		a.log.Warn("a schedule is of a kind that neither this engine nor any other declared: its jobs wait until an engine does",
			"schedule", f.schedule.Name, "kind", f.schedule.Job.Kind, "at", f.place)
	}
	mux.Schedule(all...)
	return nil
}

// shown is the schedule as stint config shows it.
func (f fileSchedule) shown() shownSetting {
	s := f.schedule
	return shownSetting{below(schedulesKey, s.Name), fmt.Sprintf("%s in %s: %s", s.Recurrence, cmp.Or(s.Zone, "UTC"), s.Job.Kind), f.place}
}
