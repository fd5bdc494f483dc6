//go:build unix

package chaos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// Jobs ask questions, which several people answer at the same time, and call other jobs, while engines are killed and
// sessions ended: each question has one answer, which is the one that was accepted and the one that the job got, and
// each job is called once.
func TestQuestionsAndCallsSurviveKills(t *testing.T) {
	t.Parallel()
	const talks, people = 4, 6
	w := newWorld(t, pgtest.New(t))
	keepers := w.keepFour(10)
	var keys []string
	for i := range jobs(t, 60) * talks {
		keys = append(keys, chaos.CalledKey(fmt.Sprint("talking-", i/talks), i%talks))
	}
	w.History.Intend(keys...)
	ids := w.enqueue("talking", 0, jobs(t, 60), func(int) chaos.Args {
		return chaos.Args{Talks: talks, Work: 2, Grant: -1}
	}, stint.Retry(retry.Forever(20*time.Millisecond)), stint.MaxLosses(1000))

	s, pool := w.connect(w.url)
	said := answers{accepted: map[string][]string{}, unknown: map[string]bool{}}
	ctx, stop := context.WithCancel(t.Context())
	var answering sync.WaitGroup
	for n := range people {
		own := rand.New(rand.NewPCG(w.seed, uint64(n)))
		answering.Go(func() { said.give(ctx, s, pool, fmt.Sprint("person ", n), own) })
	}
	kills := w.killUntilCompleted(keepers)
	stopAll(keepers)
	stop()
	answering.Wait()
	s, _ = w.connect(w.url) // whose sessions nobody ends
	for _, id := range ids {
		steps, err := s.Steps(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		said.compare(t, id, steps, talks)
	}
	called := w.number(`select count(*) from stint.jobs`) - len(ids)
	t.Logf("%d kills; %d jobs asked %d questions each; of %d answers %d were refused", kills, len(ids), talks, said.given.Load(), said.refused.Load())
	if want := len(ids) * talks; called != want {
		t.Errorf("%d jobs were called, want %d", called, want)
	}
	if kills < 2 || said.refused.Load() == 0 {
		t.Error("too little happened to prove anything")
	}
	w.apart()
}

// answers are those that people gave, by question.
type answers struct {
	given, refused atomic.Int32

	mu       sync.Mutex
	accepted map[string][]string // who were told that theirs counts
	unknown  map[string]bool     // somebody was told nothing
}

// give answers open questions until ctx ends, also some that others answer at the same time.
func (a *answers) give(ctx context.Context, s *postgres.Store, pool *pgxpool.Pool, who string, dice *rand.Rand) {
	for ; ctx.Err() == nil; time.Sleep(time.Duration(dice.IntN(20)) * time.Millisecond) {
		open, err := s.Questions(ctx, store.QuestionFilter{Limit: 20})
		if err != nil || len(open) == 0 {
			continue
		}
		q := open[dice.IntN(min(3, len(open)))]
		what := fmt.Sprint(q.Job, " ", q.Name)
		err = nowOrLater(ctx, s, pool, dice, func(client *stint.Client) error {
			return client.Answer(ctx, q.Job, q.Name, stint.Answer{Choice: "yes", By: who})
		})
		a.given.Add(1)
		a.mu.Lock()
		if _, answered := errors.AsType[*stint.AnsweredError](err); answered || errors.Is(err, stint.ErrEnded) {
			a.refused.Add(1)
		} else if err != nil {
			a.unknown[what] = true
		} else {
			a.accepted[what] = append(a.accepted[what], who)
		}
		a.mu.Unlock()
	}
}

// compare compares what people were told with what a job's steps have.
func (a *answers) compare(t *testing.T, id stint.ID, steps []stint.RecordedStep, talks int) {
	t.Helper()
	recorded := map[string]stint.RecordedStep{}
	for _, s := range steps {
		recorded[s.Name] = s
	}
	for i := range talks {
		var counts stint.Answer
		var got string
		name := fmt.Sprint("ask ", i)
		if err := errors.Join(json.Unmarshal(recorded[name].Result, &counts), json.Unmarshal(recorded[fmt.Sprint("got ", i)].Result, &got)); err != nil {
			t.Errorf("job %d has the steps %v: %v", id, steps, err)
			continue
		}
		what := fmt.Sprint(id, " ", name)
		told := a.accepted[what]
		if len(told) > 1 || len(told) == 1 && told[0] != counts.By || len(told) == 0 && !a.unknown[what] || got != counts.By {
			t.Errorf("the answer to %s of job %d is by %q, the job got that of %q, and it was accepted from %q", name, id, counts.By, got, told)
		}
	}
}
