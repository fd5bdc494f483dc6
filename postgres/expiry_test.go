package postgres

import (
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

// By when they are to begin is counted and stored for jobs that say so.
func TestJobsThatMayBeginAtAnyTimePayNothingForIt(t *testing.T) {
	s := newStore(t)
	job := func(opts ...stint.Option) stint.NewJob {
		return stint.KindInfo{Name: "k", Queue: "q"}.Job([]byte(`{}`), opts...)
	}
	for _, c := range []struct {
		jobs  []stint.NewJob
		bound bool
	}{
		{[]stint.NewJob{job()}, false},
		{[]stint.NewJob{job(), job()}, false},
		{[]stint.NewJob{job(), job(stint.Retry(retry.None()))}, false},
		{[]stint.NewJob{job(stint.StartWithin(time.Hour)), job()}, true},
		{[]stint.NewJob{job(), job(stint.StartBy(time.Now()))}, true},
	} {
		stmts, _ := s.enqueueStatements(c.jobs, nil, dictionary{}, false)
		if bound := strings.Contains(stmts[0].text, "start_by"); len(stmts) != 1 || bound != c.bound {
			t.Errorf("%+v are enqueued by %d statements, the first\n%s", c.jobs, len(stmts), stmts[0].text)
		}
	}
}
