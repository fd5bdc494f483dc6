package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
)

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

// readSchedules reads all schedules of a file.
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
	kind, args := "", jsonValue{}
	known := pflag.NewFlagSet("schedule", pflag.ContinueOnError)
	flags.addToFile(known, &kind, &args)
	if err := e.fill(known, "kind"); err != nil {
		return f, err
	}
	f.args, f.place = args.raw, fmt.Sprintf("%s:%d", e.file.path, e.line)
	if f.schedule, err = flags.schedule(e.name, known); err != nil {
		return f, e.refuse(errors.New(strings.ReplaceAll(err.Error(), "--", "")))
	}
	if f.opts, err = flags.job.options(known); err == nil {
		f.schedule.Job = stint.KindInfo{Name: kind}.Job(f.args, f.opts...)
		err = f.schedule.Check(stint.Limits{})
	}
	if err == nil {
		err = checkSteps(kind, f.args)
	}
	return f, e.misplaced(err)
}

// addToFile adds what may stand in the table of a schedule: what flags there are,
// and what is an argument or given many times on a command line.
func (f *scheduleFlags) addToFile(known *pflag.FlagSet, kind *string, args *jsonValue) {
	given := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.add(given)
	given.VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "force" && flag.Name != "tag" && flag.Name != "metadata" {
			known.AddFlag(flag)
		}
	})
	known.StringVar(kind, "kind", "", "")
	known.Var(args, "args", "")
	known.Var(nameList(&f.job.tags, "tags"), "tags", "")
	known.Var(&jsonValue{into: &f.job.metadata}, "metadata", "")
}

// misplaced gives an error the line of the part that it is about.
func (e entry) misplaced(err error) error {
	if invalid, ok := errors.AsType[*stint.InvalidError](err); ok {
		name := strings.ReplaceAll(invalid.Field, " ", "-")
		if at := below(e.at, name); e.file.lines[at] > 0 {
			e.line, e.key, e.name, err = e.file.lines[at], below(e.key, name), name, errors.New(invalid.Problem)
		}
	}
	return e.refuse(err)
}

// jsonValue is a setting that is any value in a file: what TOML can say and JSON
// too. As a string it is the text of JSON.
type jsonValue struct {
	raw  json.RawMessage
	into *string
}

// SetAny takes a value as TOML has it.
func (v *jsonValue) SetAny(value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return errors.New("it cannot be written as JSON")
	}
	return v.Set(string(raw))
}

func (v *jsonValue) Set(text string) error {
	if !json.Valid([]byte(text)) {
		return errors.New("it is not JSON")
	}
	v.raw = json.RawMessage(text)
	if v.into != nil {
		*v.into = text
	}
	return nil
}

func (v *jsonValue) Type() string   { return "json" }
func (v *jsonValue) String() string { return string(v.raw) }

// declareSchedules has the engine of a mux declare the schedules of the file. Their
// kinds may be those of other programs that have not started yet; more often they
// are misspelt, and what such a schedule makes waits for ever.
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
		strange []fileSchedule
	)
	for _, f := range a.schedules {
		kind := f.schedule.Job.Kind
		declared, err := a.declaration(ctx, db, kind, true)
		if err != nil {
			return err
		}
		if own := mux.Declaration(kind); own.Name != "" {
			declared = own // also where the database knows nothing of it yet
		} else if knows(known, kind) != nil {
			strange = append(strange, f)
		}
		s := f.schedule
		s.Job = declared.Job(f.args, f.opts...)
		if err := s.Check(stint.Limits{}); err != nil {
			return &usageError{fmt.Errorf("%s: schedules.%s: %w", f.place, s.Name, err)}
		}
		all = append(all, s)
	}
	for _, f := range strange {
		a.log.Warn("a schedule is of a kind that neither this engine nor any other ever declared: its jobs wait until one does",
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
