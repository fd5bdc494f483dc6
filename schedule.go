package stint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/internal/wire"
)

// Schedule makes jobs by a recurrence. Declare one with [Mux.Schedule], so that
// every engine of the program does, or with [Client.Schedule]; [Kind.Schedule]
// builds it.
//
// A schedule is identified by its name. Declaring it again changes what it does
// and keeps its counters, its pause and its next occurrence, unless
// the recurrence, the zone or the bounds have changed.
//
// Its jobs are due at their occurrence, whenever they are fired, and say what
// made them: see [Origin]. Exactly one is made of each occurrence, whichever engine
// fires and whatever dies meanwhile.
type Schedule struct {
	// Name identifies the schedule. Required.
	Name string

	// Recurrence says when. Required.
	Recurrence cron.Recurrence

	// Zone is the IANA name of the time zone whose clock the recurrence is about,
	// such as Europe/Berlin. Empty means UTC.
	Zone string

	// Job is the job to make. It has no RunAt, Delay, StartBy, IdempotencyKey or Unique;
	// StartWithin counts from the occurrence.
	Job NewJob

	// Unique skips an occurrence, and counts it, while the job of the one before has
	// not ended, whether that is waiting, retrying or running.
	Unique bool

	// Missed says what happens to occurrences that were not fired in time.
	Missed Missed

	// NotBefore and NotAfter bound the occurrences, both inclusively. Zero means
	// no bound.
	NotBefore, NotAfter time.Time

	err error // of Kind.Schedule, for Check
}

// ScheduleOption is an option of a schedule. Options of its jobs are an [Option], as for
// an enqueue.
type ScheduleOption interface{ schedule(s *Schedule) }

func (o Option) schedule(s *Schedule) { o(&s.Job) }

type scheduleOption func(s *Schedule)

func (o scheduleOption) schedule(s *Schedule) { o(s) }

// Zone sets the time zone of the recurrence: see
// [Schedule.Zone].
func Zone(name string) ScheduleOption { return scheduleOption(func(s *Schedule) { s.Zone = name }) }

// Unique fires no occurrence while the job before it has not ended: see
// [Schedule.Unique].
func Unique() ScheduleOption { return scheduleOption(func(s *Schedule) { s.Unique = true }) }

func (m Missed) schedule(s *Schedule) { s.Missed = m }

// NotBefore sets the earliest time of an occurrence.
func NotBefore(t time.Time) ScheduleOption {
	return scheduleOption(func(s *Schedule) { s.NotBefore = t })
}

// NotAfter sets the latest time of an occurrence.
func NotAfter(t time.Time) ScheduleOption {
	return scheduleOption(func(s *Schedule) { s.NotAfter = t })
}

// Schedule makes a schedule of jobs of the kind. An invalid one is refused when it is
// declared.
//
//	SendReport.Schedule("nightly", cron.MustParse("30 2 * * *"), Report{To: "ops"},
//		stint.Zone("Europe/Berlin"), stint.Unique(), stint.Timeout(time.Hour))
func (k Kind[A]) Schedule(name string, when cron.Recurrence, args A, opts ...ScheduleOption) Schedule {
	s := Schedule{Name: name, Recurrence: when}
	s.Job, s.err = k.New(args)
	s.Job.Unique = "" // of the kind: all jobs of a schedule have the same key
	for _, opt := range opts {
		opt.schedule(&s)
	}
	return s
}

// Location returns the time zone of the schedule.
func (s Schedule) Location() (*time.Location, error) {
	if strings.EqualFold(s.Zone, "local") {
		return nil, valid.Invalid("zone", "Local is another one on every machine; name it, such as Europe/Berlin")
	}
	zone, err := cron.Zone(s.Zone) // empty is UTC
	if err != nil {
		return nil, valid.Invalid("zone", "%q is no time zone that this machine knows, such as Europe/Berlin", s.Zone)
	}
	return zone, nil
}

// Check returns the first thing that is invalid about the schedule, as an
// [InvalidError], or nil.
func (s Schedule) Check(l Limits) error {
	if err := valid.Name("schedule", s.Name); err != nil {
		return err
	}
	if s.err != nil {
		return s.err
	}
	if err := s.Recurrence.Validate(); err != nil {
		return valid.Invalid("recurrence", "%s", strings.TrimPrefix(err.Error(), "cron: "))
	}
	switch {
	case s.Recurrence.IsZero():
		return valid.Invalid("recurrence", "it says no time, such as 30 2 * * * or every 5m")
	case !s.NotBefore.IsZero() && !s.NotAfter.IsZero() && s.NotAfter.Before(s.NotBefore):
		return valid.Invalid("not after", "it is before the instant not to be before")
	}
	_, zone := s.Location()
	if err := cmp.Or(checkYear("not before", s.NotBefore), checkYear("not after", s.NotAfter), zone, s.Missed.Check()); err != nil {
		return err
	}
	if field := s.ofOneJob(); field == "unique" {
		return valid.Invalid(field, "the jobs of a schedule have the same arguments: give the schedule Unique instead")
	} else if field != "" {
		return valid.Invalid(field, "it belongs to one job, and a schedule makes many")
	}
	if _, clear := s.Job.InClear(); clear {
		return valid.Invalid("args", "those of a schedule are kept in clear, and the kind %s is sealed", s.Job.Kind)
	}
	return s.Job.Check(l)
}

// ofOneJob names an option that only a single job can have; empty if none is set.
func (s Schedule) ofOneJob() string {
	switch {
	case s.Job.Delay != 0:
		return "delay"
	case !s.Job.RunAt.IsZero():
		return "run at"
	case !s.Job.StartBy.IsZero():
		return "start by"
	case s.Job.IdempotencyKey != "":
		return "idempotency key"
	case tidyUnique(s.Job.Unique) != "":
		return "unique"
	}
	return ""
}

// fill sets the defaults of fields that are not set.
func (s *Schedule) fill() {
	s.Job.Fill()
	if s.Zone == "" {
		s.Zone = "UTC"
	}
	// What databases keep.
	s.NotBefore, s.NotAfter = s.NotBefore.Truncate(time.Microsecond), s.NotAfter.Truncate(time.Microsecond)
}

// Ready returns the schedule as stores take it: with defaults filled in, and checked.
func (s Schedule) Ready(l Limits) (Schedule, error) {
	s.fill()
	if err := s.Check(l); err != nil {
		return s, fmt.Errorf("schedule %q: %w", s.Name, err)
	}
	return s, nil
}

// readySchedules makes schedules ready that have a name each, and none that is taken.
func readySchedules(schedules []Schedule, l Limits, taken map[string]bool) ([]Schedule, error) {
	ready, names := make([]Schedule, len(schedules)), map[string]bool{}
	for i, s := range schedules {
		var err error
		if ready[i], err = s.Ready(l); err != nil {
			return nil, err
		}
		if names[s.Name] || taken[s.Name] {
			return nil, fmt.Errorf("schedule %q: %w", s.Name, valid.Invalid("schedule", "it is there twice"))
		}
		names[s.Name] = true
	}
	return ready, nil
}

// MarshalJSON writes the schedule as the API shows it.
func (s Schedule) MarshalJSON() ([]byte, error) {
	job, err := json.Marshal(s.Job)
	if err != nil {
		return nil, err
	}
	return json.Marshal(wire.Schedule{
		Name: s.Name, Recurrence: s.Recurrence.String(), Zone: s.Zone, Words: s.Recurrence.Words(), Job: job,
		Unique: s.Unique, Missed: s.Missed.String(), NotBefore: s.NotBefore, NotAfter: s.NotAfter,
	})
}

// Missed is a [ScheduleOption] that says what becomes of occurrences that were not fired
// in time, because no engine ran or the database was away: [MissedOne], which is the
// default, [MissedNone] or [MissedAll].
//
// An occurrence is missed when a later one is due as well, or when more than
// [store.MissedAfter] has passed since it was due.
type Missed int

const (
	// MissedOne runs the newest of them, once.
	MissedOne Missed = 0

	// MissedNone runs none of them.
	MissedNone Missed = -1

	maxMissed = 1000
)

// MissedAll runs all of them, in their order, but no more than the newest n: 1
// to 1000.
func MissedAll(n int) Missed {
	if n < 1 {
		return -2 // which Check refuses
	}
	return Missed(n)
}

// Most is how many occurrences may run that are due at once.
func (m Missed) Most() int { return max(1, int(m)) }

// String returns one, none, or all:100.
func (m Missed) String() string {
	switch {
	case m == MissedOne:
		return "one"
	case m == MissedNone:
		return "none"
	default:
		return "all:" + strconv.Itoa(int(m))
	}
}

// Check reports what is wrong with it, or nil.
func (m Missed) Check() error {
	if m < MissedNone || m > maxMissed {
		return valid.Invalid("missed", "the bound of all is from 1 to %d", maxMissed)
	}
	return nil
}

// MarshalText implements [encoding.TextMarshaler].
func (m Missed) MarshalText() ([]byte, error) { return []byte(m.String()), m.Check() }

// UnmarshalText reads what String returns. Errors are [InvalidError]s.
func (m *Missed) UnmarshalText(text []byte) error {
	bound, all := strings.CutPrefix(string(text), "all:")
	n, err := strconv.Atoi(bound)
	switch {
	case string(text) == "one":
		*m = MissedOne
	case string(text) == "none":
		*m = MissedNone
	case string(text) == "all":
		return valid.Invalid("missed", "all needs a bound, such as all:100")
	case !all || err != nil:
		return valid.Invalid("missed", "%q is not one, none or all:100", text)
	case MissedAll(n).Check() != nil:
		return MissedAll(n).Check()
	default:
		*m = MissedAll(n)
	}
	return nil
}
