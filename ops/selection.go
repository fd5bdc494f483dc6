package ops

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/store"
)

const selectionDoc = "Jobs are named by `ids`, and then it is done to all of them or to none, or chosen by a `filter`, the newest first. One request sees to `limit` of those that fit, or " +
	"to fewer when something goes wrong on the way; as long as the answer has a `next`, ask again with that as `before`. With `dry_run` nothing is changed: the answer says how many fit."

// Selection names jobs, or chooses them.
type Selection struct {
	IDs    []stint.ID `json:"ids,omitempty" maxItems:"500" nullable:"false" doc:"The jobs, by name"`
	Filter *Filter    `json:"filter,omitempty" doc:"The jobs that fit; an empty one is every job"`
	Before stint.ID   `json:"before,omitempty" minimum:"1" doc:"Of those that fit only jobs with a lower id: the next of the answer before"`
	Limit  int        `json:"limit,omitempty" minimum:"1" maximum:"10000" default:"10000" doc:"How many of those that fit, at most"`
	DryRun bool       `json:"dry_run,omitempty" doc:"Only tell how many fit, and show the first few"`
	Each   bool       `json:"each,omitempty" doc:"Tell also of each of those that fit what came of it, and not only how many"`
}

func (s Selection) dryRun() bool { return s.DryRun }

// subject is the job that is named alone.
func (s Selection) subject() string {
	if len(s.IDs) == 1 {
		return s.IDs[0].String()
	}
	return ""
}

// SelectionOf returns which jobs the input of a verb of jobs means, to be changed there;
// nil for other inputs.
func SelectionOf(in any) *Selection {
	switch in := in.(type) {
	case *CancelInput:
		return &in.Body.Selection
	case *RetryInput:
		return &in.Body.Selection
	case *DeleteInput:
		return &in.Body
	}
	return nil
}

// Done is what came of it.
type Done[A any] struct {
	// Answers are what came of jobs that were named, by id; with each, also of
	// those that were chosen.
	Answers map[stint.ID]A `json:"answers,omitempty"`

	// Counts are how many of the jobs that were chosen came to what.
	Counts map[string]int `json:"counts,omitempty"`

	// Matched and First are of a dry run: how many jobs fit, and the first of them.
	Matched int             `json:"matched,omitempty"`
	First   []stint.JobInfo `json:"first,omitempty"`

	// Next is there when more may fit: the before of the next request.
	Next stint.ID `json:"next,omitempty"`
}

// More returns the before of the next request; 0 when nothing is left.
func (d Done[A]) More() stint.ID { return d.Next }

// Tried returns how many jobs a dry run is about, and the first of them.
func (d Done[A]) Tried() (int, []stint.JobInfo) { return d.Matched, d.First }

// Tally returns how many jobs got which answer.
func (d Done[A]) Tally() map[string]int {
	if d.Counts != nil {
		return d.Counts
	}
	counts := map[string]int{}
	for _, a := range d.Answers {
		counts[word(a)]++
	}
	return counts
}

// Answered is any [Done].
type Answered interface {
	More() stint.ID
	Tried() (matched int, first []stint.JobInfo)
	Tally() map[string]int
}

// word is an answer in one word.
func word(answer any) string {
	if r, ok := answer.(stint.RerunResult); ok {
		return string(r.Answer)
	}
	return fmt.Sprint(answer)
}

// answersInWords are the answers as people are told of them, after the number of jobs.
var answersInWords = map[string]string{
	string(stint.CancelledNow):    "cancelled",
	string(stint.CancelRequested): "asked to stop",
	string(stint.CancelTooLate):   "had already ended",

	string(stint.RerunReady):           "due now",
	string(stint.RerunScheduled):       "postponed",
	string(stint.RerunRecovered):       "retried as a new job",
	string(stint.RerunRecoveredBefore): "already retried before",
	string(stint.RerunAvailable):       "already ready",
	string(stint.RerunBlocked):         "waiting for other jobs still",
	string(stint.RerunRunning):         "running",
	string(stint.RerunNotUnique):       "refused: another job has the unique key",

	string(store.DeletedNow):     "deleted",
	string(store.DeleteNotFinal): "kept: not ended yet",
	string(store.DeleteNotFound): "not found",
}

// TallyText says how many jobs got which answer: "2 jobs cancelled, 1 job not found".
func TallyText(counts map[string]int) string {
	var all []string
	for _, word := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, words.Counted(counts[word], "job")+" "+cmp.Or(answersInWords[word], word))
	}
	return cmp.Or(strings.Join(all, ", "), "no such job is left")
}

// MostJobs is how many jobs one call sees to that a filter chooses, and MostNamed how
// many can be named.
const (
	MostJobs  = 10_000
	MostNamed = 500
)

const (
	batchSize = 500 // jobs that a transaction changes: nobody waits long for it
	firstFew  = 10  // jobs that a dry run shows
)

// to does something to the jobs that are meant. States are those of the jobs that a
// filter without states chooses.
func to[A any](ctx context.Context, l *Local, s Selection, states []stint.State, do func(ids []stint.ID, chosen bool) (map[stint.ID]A, error)) (Done[A], error) {
	switch {
	case len(s.IDs) > 0 && (s.Filter != nil || s.DryRun || s.Before != 0):
		return Done[A]{}, valid.Invalid("ids", "ids and filters exclude each other")
	case len(s.IDs) == 0 && s.Filter == nil:
		return Done[A]{}, valid.Invalid("filter", "no jobs are named: give ids, or a filter; {} is every job")
	case s.Filter == nil: // in one transaction: a request that failed can be sent again
		answers, err := do(s.IDs, false)
		if err != nil {
			return Done[A]{}, err
		}
		return Done[A]{Answers: answers}, nil
	}
	f, err := l.filter(ctx, *s.Filter, "body.filter")
	if err != nil {
		return Done[A]{}, err
	}
	if len(f.States) == 0 {
		f.States = states
	}
	f.Before, f.Limit = s.Before, cmp.Or(s.Limit, MostJobs)
	if s.DryRun {
		return tellChosen[A](ctx, l, f)
	}
	return toChosen(ctx, l, f, s.Each, do)
}

// toChosen does it in batches. After an error in a later batch the answer says what was
// done before, and the next request finds the rest.
func toChosen[A any](ctx context.Context, l *Local, f store.Filter, each bool, do func(ids []stint.ID, chosen bool) (map[stint.ID]A, error)) (Done[A], error) {
	done := Done[A]{Counts: map[string]int{}}
	if each {
		done.Answers = map[stint.ID]A{}
	}
	n := 0
	for ids, err := range store.FindEach(ctx, l.Store, f, batchSize) {
		var got map[stint.ID]A
		if err == nil {
			got, err = do(ids, true)
		}
		switch {
		case err != nil && n == 0:
			return Done[A]{}, err
		case err != nil:
			return done, nil
		}
		for _, one := range got {
			done.Counts[word(one)]++
		}
		if each {
			maps.Copy(done.Answers, got)
		}
		n += len(ids)
		done.Next = ids[len(ids)-1]
	}
	if n < f.Limit {
		done.Next = 0
	}
	return done, nil
}

// tellChosen is a dry run.
func tellChosen[A any](ctx context.Context, l *Local, f store.Filter) (Done[A], error) {
	var done Done[A]
	for ids, err := range store.FindEach(ctx, l.Store, f, 10*batchSize) {
		if err != nil {
			return Done[A]{}, err
		}
		done.Matched += len(ids)
		done.Next = ids[len(ids)-1]
	}
	if done.Matched < f.Limit {
		done.Next = 0
	}
	f.Limit = min(f.Limit, firstFew)
	first, err := l.Store.Jobs(ctx, f)
	if err != nil {
		return Done[A]{}, err
	}
	done.First = l.seen(ctx, first)
	return done, nil
}

// Chosen does something to all jobs that a filter chooses, in as many calls as it takes,
// the newest first, and yields what came of each call. The filter's Limit bounds all of
// them together; 0 is no bound. After an error, what was yielded was done, and little
// more.
func Chosen[A any](f store.Filter, call func(Selection) (Done[A], error)) iter.Seq2[Done[A], error] {
	return func(yield func(Done[A], error) bool) {
		filter := FilterOf(f)
		s := Selection{Filter: &filter, Before: f.Before, Limit: MostJobs}
		for left := f.Limit; ; {
			if left > 0 {
				s.Limit = min(left, MostJobs)
			}
			done, err := call(s)
			if !yield(done, err) || err != nil || done.Next == 0 {
				return
			}
			if left > 0 {
				if left -= done.seen(); left <= 0 {
					return
				}
			}
			s.Before = done.Next
		}
	}
}

// seen is how many jobs it is about.
func (d Done[A]) seen() int {
	n := d.Matched
	for _, counted := range d.Counts {
		n += counted
	}
	return n
}

// CancelJobs cancels jobs.
var CancelJobs = declare(&Op[CancelInput, Done[stint.CancelStatus]]{
	Decl: Decl{
		Name: "jobs cancel", Method: http.MethodPost, Path: "/jobs/cancel", Needs: guard.Operator, Summary: "Cancel jobs, also running ones",
		Doc: "What waits or is available is cancelled with the answer. A running job is asked to stop. " + selectionDoc +
			" A filter without states chooses among the jobs that have not ended.",
	},
	do: func(ctx context.Context, l *Local, in *CancelInput) (Done[stint.CancelStatus], error) {
		return to(ctx, l, in.Body.Selection, view.Cancellable, func(ids []stint.ID, _ bool) (map[stint.ID]stint.CancelStatus, error) {
			return l.Store.Cancel(ctx, ids, in.Body.Why.Why)
		})
	},
})

// CancelInput says which jobs to cancel, and why.
type CancelInput struct {
	Body Cancelling
}

// Cancelling says which jobs to cancel, and why.
type Cancelling struct {
	Selection
	Why
}

// RetryJobs runs jobs again.
var RetryJobs = declare(&Op[RetryInput, Done[stint.RerunResult]]{
	Decl: Decl{
		Name: "jobs retry", Method: http.MethodPost, Path: "/jobs/retry", Needs: guard.Operator, Summary: "Run jobs again: what waits now, what ended as a new job",
		Doc: "A job that ended is recovered as a new one, which names the old one: `retry_of` of its `origin`. What was recovered before is left alone, and the answer names the job that it was recovered as; " +
			"with `force` jobs that are named are recovered once more. " + selectionDoc + " A filter without states chooses the jobs that are failed or retrying. " +
			"A flow that ended is done again as a new flow of what did not complete, and so is the flow of a job that is in one that ended: with this job and what depends on it.",
	},
	do: func(ctx context.Context, l *Local, in *RetryInput) (Done[stint.RerunResult], error) {
		again, err := in.Body.again()
		if err != nil {
			return Done[stint.RerunResult]{}, err
		}
		return to(ctx, l, in.Body.Selection, view.Retriable, func(ids []stint.ID, chosen bool) (map[stint.ID]stint.RerunResult, error) {
			again.Once = chosen || !in.Body.Force
			return l.Store.Retry(ctx, ids, again)
		})
	},
})

// RetryInput says which jobs to run again, and when.
type RetryInput struct {
	Body Retrying
}

// Retrying says which jobs to run again, and when.
type Retrying struct {
	Selection
	Rerun
}

// Rerun says when jobs run again, and what of them.
type Rerun struct {
	RunAt When `json:"run_at,omitempty" doc:"Not to be started before: an instant, or +90s and +2h from now by the database's clock"`
	Whole bool `json:"whole,omitempty" doc:"Of a flow that ended all of its jobs, and not only those that did not complete"`
	Force bool `json:"force,omitempty" doc:"Recover jobs that are named also when they were before: each becomes one more job. Otherwise the answer names the job that runs it again already"`
}

// RetryOf says of which jobs that are to run again, and when, as a request has it.
func RetryOf(s Selection, again stint.RerunOptions) RetryInput {
	return RetryInput{Retrying{s, Rerun{RunAt: runAt(again), Force: !again.Once, Whole: again.Whole}}}
}

func runAt(again stint.RerunOptions) When {
	if again.Delay != 0 {
		return When("+" + durationText(again.Delay))
	}
	return At(again.RunAt)
}

func (r Rerun) again() (again stint.RerunOptions, err error) {
	again.Whole = r.Whole
	if later, plus := strings.CutPrefix(string(r.RunAt), "+"); plus {
		again.Delay, err = ReadDuration("run at", later)
	} else if r.RunAt != "" {
		if again.RunAt, err = time.Parse(time.RFC3339, string(r.RunAt)); err != nil {
			err = valid.Invalid("run at", "%q is neither an instant such as 2026-03-01T09:00:00Z nor a time from now such as +15m", r.RunAt)
		}
	}
	return again, inError("body", cmp.Or(err, again.Check()))
}

// DeleteJobs deletes jobs that have ended.
var DeleteJobs = declare(&Op[DeleteInput, Done[store.DeleteStatus]]{
	Decl: Decl{
		Name: "jobs delete", Method: http.MethodPost, Path: "/jobs/delete", Needs: guard.Operator, Summary: "Delete jobs that have ended",
		Doc: "With all of their attempts. " + selectionDoc + " A filter without states chooses among the jobs that have ended.", Confirm: true,
	},
	do: func(ctx context.Context, l *Local, in *DeleteInput) (Done[store.DeleteStatus], error) {
		return to(ctx, l, in.Body, view.Deletable, func(ids []stint.ID, _ bool) (map[stint.ID]store.DeleteStatus, error) {
			return l.Store.Delete(ctx, ids)
		})
	},
})

// DeleteInput says which jobs to delete.
type DeleteInput struct {
	Body Selection
}
