package stint_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

func TestTheContextOfAHandlerLeadsToItsJobAndAClient(t *testing.T) {
	var k kept
	client, job := stint.NewClient(&k), &stint.Job{ID: 7}
	ctx := (&stint.Run{Job: job, Client: client}).Context(t.Context())
	ctx, cancel := context.WithCancel(ctx) // from further down just as well
	defer cancel()
	if stint.JobFrom(ctx) != job || stint.ClientFrom(ctx) != client {
		t.Errorf("the job is %v, the client %v", stint.JobFrom(ctx), stint.ClientFrom(ctx))
	}
	if _, err := stint.JobFrom(ctx).Previous(ctx); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without an inspector, previous says %v", err)
	}
}

func TestOutsideOfHandlersNothingCanBeReached(t *testing.T) {
	ctx := t.Context()
	if job := stint.JobFrom(ctx); job != nil {
		t.Errorf("the job is %v", job)
	}
	client := stint.ClientFrom(ctx).With(stint.Tx{}).Limit(stint.Limits{}).Use().Declare()
	_, one := client.Enqueue(ctx, stint.NewJob{Kind: "k"})
	_, many := client.EnqueueMany(ctx, nil)
	_, previous := stint.JobFrom(ctx).Previous(ctx)
	for what, err := range map[string]error{
		"enqueue": one, "enqueue many": many, "previous": previous,
		"set result": stint.SetResult(ctx, 1), "set error": stint.SetError(ctx, errors.New("x"), true),
	} {
		if !errors.Is(err, stint.ErrNoAttempt) {
			t.Errorf("%s says %v", what, err)
		}
	}
}

func TestLastIsJudgedAsOfTheStartOfTheAttempt(t *testing.T) {
	due := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		job  stint.Job
		want bool
	}{
		{stint.Job{Attempt: 1}, false}, // the default policy
		{stint.Job{Attempt: 11}, true},
		{stint.Job{Attempt: 1, Retry: retry.None()}, true},
		{stint.Job{Attempt: 1, Retry: retry.Timetable(), Due: due, Started: due.Add(time.Hour)}, false},
		{stint.Job{Attempt: 1, Retry: retry.Timetable(), Due: due, Started: due.Add(25 * time.Hour)}, true},
		{stint.Job{Attempt: 1, Retry: retry.Fixed(1, time.Minute).Only("timeout")}, false}, // a timeout would be tried again
	} {
		if got := c.job.Last(); got != c.want {
			t.Errorf("attempt %d under %v, begun %v after it was due: %v", c.job.Attempt, c.job.Retry, c.job.Started.Sub(c.job.Due), got)
		}
	}
}

// So a handler's test sees what an engine does.
func TestWhatIsEnqueuedInAnAttemptBelongsToItsJob(t *testing.T) {
	var k kept
	ctx := stint.WithCorrelation(t.Context(), "of the caller")
	for _, c := range []struct {
		attempt *stint.Run
		want    string
	}{
		{&stint.Run{Job: &stint.Job{ID: 7, Correlation: "order 7"}, Client: stint.NewClient(&k)}, "order 7"},
		{&stint.Run{Job: &stint.Job{ID: 7}, Client: stint.NewClient(&k)}, "of the caller"},
		{&stint.Run{Client: stint.NewClient(&k)}, "of the caller"},
	} {
		within := c.attempt.Context(ctx)
		if _, err := stint.ClientFrom(within).With(stint.Tx{Handle: 1}).Enqueue(within, stint.NewJob{Kind: "k"}); err != nil {
			t.Fatal(err)
		}
		if got := k.jobs[len(k.jobs)-1].Correlation; got != c.want {
			t.Errorf("of %+v it has the correlation id %q, want %q", c.attempt.Job, got, c.want)
		}
	}
}
