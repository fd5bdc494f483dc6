package sim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/sqlite"
)

// produce enqueues n jobs over a time, in batches, in transactions of its
// own too, and logs what became of each.
func (p *process) produce(d dice, db *sql.DB, n int, over time.Duration) {
	var second sync.WaitGroup // thoughts
	defer second.Wait()
	pause := 3 * over / time.Duration(n) // a batch has nearly three jobs
	for number := 0; number < n; {
		time.Sleep(d.between(0, 2*pause))
		size := 1
		if d.chance(40) {
			size = 1 + d.IntN(9)
		}
		size = min(size, n-number)
		keys, jobs, whims := make([]string, size), make([]stint.NewJob, size), make([]*whim, size)
		for i := range jobs {
			keys[i] = fmt.Sprintf("%s-%d", p.name, number+i)
			if jobs[i], whims[i] = draw(p.w.seed, keys[i]); size == 1 {
				jobs[i], whims[i] = drawUnique(p.w.seed, keys[i])
			}
			p.w.expect(keys[i], whims[i])
		}
		number += size
		if !p.awake() {
			return
		}
		var intent check.Intent
		p.log(func(w *check.Writer) { intent = w.Intend(keys...) })
		var receipts []stint.Receipt
		ids, err := p.sendJobs(d, db, func(ctx context.Context, c *stint.Client) ([]stint.ID, error) {
			var err error
			receipts, err = c.EnqueueReceipts(ctx, jobs)
			return ids(receipts), err
		})
		if err == nil && receipts[0].Duplicate {
			err = errRolledBack // it is another job that stands for it
		}
		p.hears(intent, ids, err)
		if err == nil {
			p.thinkAgain(&second, whims, jobs, ids)
		}
	}
}

// hears notes what became of an enqueue.
func (p *process) hears(intent check.Intent, ids []stint.ID, err error) {
	p.log(func(*check.Writer) {
		switch {
		case errors.Is(err, errRolledBack):
			intent.RolledBack()
		case err != nil:
			intent.Unknown()
		default:
			intent.Committed(numbers(ids)...)
		}
	})
}

// thinkAgain has a client do what it wants of some of its jobs, when the moment comes.
func (p *process) thinkAgain(second *sync.WaitGroup, whims []*whim, jobs []stint.NewJob, ids []stint.ID) {
	for i, id := range ids {
		if h := whims[i]; h != nil {
			second.Go(func() {
				if h.comes(p.w, jobs[i].Delay) {
					h.comeTrue(p, id, ids)
				}
			})
		}
	}
}

var errRolledBack = errors.New("sim: rolled back on purpose")

// sendJobs enqueues one batch: now and then in a transaction of the
// producer's own, which holds up everybody who writes, or is rolled back.
func (p *process) sendJobs(d dice, db *sql.DB, send func(ctx context.Context, c *stint.Client) ([]stint.ID, error)) ([]stint.ID, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d.between(time.Second, 20*time.Second))
	defer cancel()
	client := stint.NewClient(p)
	if !d.chance(20) {
		return send(ctx, client)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRolledBack, err)
	}
	defer tx.Rollback()
	ids, err := send(ctx, stint.NewClient(p.store).With(sqlite.Tx(tx)))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRolledBack, err)
	}
	if d.chance(30) {
		time.Sleep(d.between(0, 300*time.Millisecond)) // everybody who writes waits
	}
	if d.chance(30) {
		return nil, errors.Join(errRolledBack, tx.Rollback())
	}
	err = tx.Commit()
	p.w.note(p.name, numbers(ids), "enqueue in a transaction: %v", err)
	return ids, err
}
