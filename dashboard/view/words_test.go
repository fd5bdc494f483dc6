package view_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/retry"
)

func TestARetryingJobSaysWhichAttemptIsDue(t *testing.T) {
	now := time.Now()
	job := stint.JobInfo{State: stint.Retrying, Attempt: 3, Due: now.Add(5 * time.Minute), Faulty: true}
	if got := (view.Crew{}).StateInWords(job, now); got != "is retrying, attempt 3 due in 5m, faulty" {
		t.Errorf("it %s", got)
	}
}

func TestAPolicyByErrorIsReadWhereItIsStoredAsJSON(t *testing.T) {
	stored := retry.ByError(retry.On("timeout", retry.Forever(time.Minute))).String()
	if got := strings.Join(view.RetryInWords(stored), "|"); got != "by_error|timeout: forever:1m|other errors: none" {
		t.Errorf("%s is shown as %s", stored, got)
	}
	if got := view.RetryInWords("of a newer program"); len(got) != 1 || got[0] != "of a newer program" {
		t.Errorf("what cannot be read is shown as %q", got)
	}
}
