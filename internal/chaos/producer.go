//go:build unix

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/check"
	"github.com/stint-go/stint/postgres"
)

// Producer enqueues the workload, in every way that a program can.
type Producer struct {
	Name    string
	Store   *postgres.Store
	Pool    *pgxpool.Pool // for transactions of its own
	History *check.Writer
	Rand    *rand.Rand
	Mixed   bool // jobs that fail, panic, snooze, wait and take time; otherwise all are quick

	Slow bool // some of the mixed jobs take a second or two
	// Pause is how long it rests between transactions on average.
	Pause time.Duration

	number int // of the next key
}

// Run enqueues n jobs that commit, and returns how many did; fewer when ctx
// ends, which is no error. A transaction whose commit is unknown is noted and
// not repeated.
func (p *Producer) Run(ctx context.Context, n int) (int, error) {
	client := stint.NewClient(p.Store)
	committed := 0
	for committed < n && ctx.Err() == nil {
		size := 1
		switch p.Rand.IntN(4) {
		case 0:
			size = 1 + p.Rand.IntN(500)
		case 1:
			size = 1 + p.Rand.IntN(20)
		}
		size = min(size, n-committed)
		keys, jobs := make([]string, size), make([]stint.NewJob, size)
		for i := range jobs {
			keys[i] = fmt.Sprintf("%s-%d", p.Name, p.number)
			p.number++
			job, err := Kind.New(p.args(keys[i]), p.options()...)
			if err != nil {
				return committed, err
			}
			jobs[i] = job
		}
		intent := p.History.Intend(keys...)
		ids, err := p.send(ctx, client, jobs)
		switch {
		case err == errRolledBack:
			intent.RolledBack()
		case err != nil:
			intent.Unknown()
			p.rest(ctx, 50*time.Millisecond)
		default:
			intent.Committed(ids...)
			committed += len(ids)
		}
		if p.Pause > 0 {
			p.rest(ctx, time.Duration(p.Rand.Int64N(int64(2*p.Pause))))
		}
	}
	return committed, p.History.Err()
}

func (p *Producer) rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

var errRolledBack = fmt.Errorf("rolled back on purpose")

// send enqueues at once, or in a transaction of the producer's that stalls,
// rolls back, or commits.
func (p *Producer) send(ctx context.Context, client *stint.Client, jobs []stint.NewJob) ([]int64, error) {
	if p.Rand.IntN(3) > 0 {
		return numbers(client.EnqueueMany(ctx, jobs))
	}
	tx, err := p.Pool.BeginTx(ctx, pgx.TxOptions{})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	ids, err := numbers(client.With(postgres.Tx(tx)).EnqueueMany(ctx, jobs))
	if err != nil {
		return nil, err
	}
	if p.Rand.IntN(4) == 0 {
		time.Sleep(time.Duration(p.Rand.IntN(30)) * time.Millisecond)
	}
	if p.Rand.IntN(3) == 0 {
		if err := tx.Rollback(ctx); err != nil {
			return nil, err
		}
		return nil, errRolledBack
	}
	return ids, tx.Commit(ctx)
}

func numbers(ids []stint.ID, err error) ([]int64, error) {
	list := make([]int64, len(ids))
	for i, id := range ids {
		list[i] = int64(id)
	}
	return list, err
}

func (p *Producer) args(key string) Args {
	a := Args{Key: key}
	if !p.Mixed {
		return a
	}
	switch p.Rand.IntN(10) {
	case 0:
		a.Fail = 1 + p.Rand.IntN(3)
	case 1:
		a.Oops = 1
	case 2:
		a.Nap = true
	case 3, 4:
		a.Work = p.Rand.IntN(20)
	case 5:
		a.Tx = true
	case 6:
		if p.Slow && p.Rand.IntN(10) == 0 {
			a.Work = 500 + p.Rand.IntN(1500)
		}
	}
	return a
}

func (p *Producer) options() []stint.Option {
	if !p.Mixed {
		return nil
	}
	var list []stint.Option
	switch p.Rand.IntN(10) {
	case 0:
		list = append(list, stint.In(time.Duration(p.Rand.IntN(2000))*time.Millisecond))
	case 1:
		list = append(list, stint.Priority(p.Rand.IntN(5)-2))
	case 2:
		list = append(list, stint.Queue("other"))
	}
	return list
}
