package store

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stint-go/stint"
)

// States lists every state, in the order of a job's life.
var States = []stint.State{stint.Scheduled, stint.Retrying, stint.Blocked, stint.Available, stint.Running, stint.Completed, stint.Failed, stint.Cancelled}

// Filter chooses jobs: those that fit all of its fields. A zero field does not
// restrict.
//
// What it costs to find them depends on the fields. By Tag, URN, Correlation,
// Schedule, Flow, Flows, Faulty, Attempts and Longer, by what went wrong (Outcome, Class, Error) and by the states scheduled,
// retrying, failed and cancelled a store looks only at jobs that may fit, so that
// a long history costs nothing. With none of these it goes through all jobs, from
// the newest on, until Limit is reached.
type Filter struct {
	States []stint.State // any of these
	Kind   string
	Queue  string // where the job is, or was last
	Tag    string
	URN    string // what the job is about; "order:47*" is all that begins with order:47: see [Filter.URNRange]
	Source string
	Faulty bool // only jobs that count as faulty: see [stint.JobInfo]

	// NotRetried leaves out jobs that ended and that a newer job repeats: see
	// [stint.JobInfo.RetriedAs].
	NotRetried bool

	// Schedule shows the jobs that the schedule of this name made, also after
	// it was removed.
	Schedule string

	// Correlation shows the jobs that come from each other: those that were
	// given this one, and the job of this ID when it was given none.
	Correlation string

	// Flow shows the jobs of the flow of this ID, without those of the flows within it. Flows shows flows only.
	Flow  stint.ID
	Flows bool

	Created  TimeRange // when it was enqueued
	Due      TimeRange // when it became ready or is to
	Finished TimeRange // when its last attempt ended

	// The next three are about one attempt of the job, be it the last one or
	// not: one that ended so. A job that was lost with its engine is found by
	// [stint.OutcomeLost] whatever became of it, and by the class and the text of
	// the error that stands for that.
	Outcome stint.Outcome
	Class   string // one of the error's: see [stint.Failure]
	Error   string // part of the error's message, upper and lower case told apart

	// Attempts are how many a job has had more than, the one that waits or goes
	// on included: 1 shows those that were tried again.
	Attempts int

	// Longer shows jobs with an attempt that took longer than this. From
	// [LongAttempt] on a store looks only at those.
	Longer time.Duration

	Before stint.ID // only jobs with a lower ID: the way to the next page
	After  stint.ID // only jobs with a higher ID
	Limit  int      // how many at most; 0 means 100
}

// LongAttempt is how long an attempt takes that counts as slow.
const LongAttempt = 5 * time.Second

// TimeRange is the time from one instant up to another, exclusively. A zero end is
// open.
type TimeRange struct{ From, To time.Time }

// IsZero reports whether the span is all of time.
func (s TimeRange) IsZero() bool { return s.From.IsZero() && s.To.IsZero() }

// Holds reports whether the span holds an instant. The zero time, which stands
// for something that has not happened, is in none but all of time.
func (s TimeRange) Holds(t time.Time) bool {
	return s.IsZero() || !t.IsZero() && !t.Before(s.From) && (s.To.IsZero() || t.Before(s.To))
}

// All reports whether the filter chooses every job.
func (f Filter) All() bool {
	return len(f.States) == 0 && f.Kind == "" && f.Queue == "" && f.Tag == "" && f.URN == "" && f.Source == "" && f.Correlation == "" && f.Schedule == "" && f.Flow == 0 && !f.Flows && !f.Faulty && !f.NotRetried &&
		f.Created.IsZero() && f.Due.IsZero() && f.Finished.IsZero() && f.Outcome == 0 && f.Class == "" && f.Error == "" && f.Attempts == 0 && f.Longer == 0 && f.Before == 0 && f.After == 0
}

// Walks reports whether a store that looks for the jobs of the filter goes through
// all jobs, however few of them fit.
func (f Filter) Walks() bool {
	if f.Tag != "" || f.URN != "" || f.Correlation != "" || f.Schedule != "" || f.Flow != 0 || f.Flows || f.Faulty || f.Attempts > 0 || f.Longer >= LongAttempt ||
		f.Class != "" || f.Error != "" || f.Outcome != 0 && f.Outcome != stint.OutcomeCompleted {
		return false
	}
	anywhere := func(s stint.State) bool { return s == stint.Available || s == stint.Completed }
	if len(f.States) > 0 && !slices.ContainsFunc(f.States, anywhere) {
		return false
	}
	return len(f.States) > 0 || f.Kind != "" || f.Queue != "" || f.Source != "" || f.NotRetried || f.Longer > 0 || f.Outcome != 0 ||
		!f.Created.IsZero() || !f.Due.IsZero() || !f.Finished.IsZero()
}

// URNRange returns between which texts the URNs of the jobs are, in the order of their bytes: from
// one up to another, exclusively. That is so if URN ends with an asterisk, and then it is what they
// begin with; otherwise ok is false. An empty to is no bound.
func (f Filter) URNRange() (from, to string, ok bool) {
	from, ok = strings.CutSuffix(f.URN, "*")
	if !ok {
		return "", "", false
	}
	for r := []rune(from); len(r) > 0; r = r[:len(r)-1] {
		if last := &r[len(r)-1]; *last < utf8.MaxRune {
			if *last++; *last == 0xd800 { // those up to 0xdfff are no characters
				*last = 0xe000
			}
			return from, string(r), true
		}
	}
	return from, "", true
}

// Is reports whether one of the filter's states is s; without any, each is.
func (f Filter) Is(s stint.State) bool { return len(f.States) == 0 || slices.Contains(f.States, s) }

// FindEach goes through the jobs that a filter chooses, by falling ID, in
// batches of at most size. Each batch is looked up when it is asked for, so
// what is done to one may change what the next ones hold, but no job comes
// twice, and jobs that are enqueued meanwhile do not come. Limit bounds all of
// them together; 0 is no bound.
func FindEach(ctx context.Context, o Operator, f Filter, size int) iter.Seq2[[]stint.ID, error] {
	return func(yield func([]stint.ID, error) bool) {
		left := f.Limit
		for {
			f.Limit = size
			if left > 0 {
				f.Limit = min(size, left)
			}
			ids, err := o.Find(ctx, f)
			if err != nil || len(ids) == 0 {
				if err != nil {
					yield(nil, err)
				}
				return
			}
			if !yield(ids, nil) || len(ids) < f.Limit || left > 0 && left == len(ids) {
				return
			}
			left = max(0, left-len(ids))
			f.Before = ids[len(ids)-1]
		}
	}
}
