//go:build unix

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/retry"
)

// Producer enqueues the workload, in every way that a program can.
type Producer struct {
	Name    string
	Ground  *Ground
	History *check.Writer
	Rand    *rand.Rand
	Mixed   bool // jobs that fail, panic, snooze, wait and take time; otherwise all are quick
	Varied  bool // of the mixed jobs some have policies, bounds, keys, limits and labels of their own
	Deadly  bool // and a few end their process each time

	Slow bool // some of the mixed jobs take a second or two
	// Pause is how long it rests between transactions on average.
	Pause time.Duration
	// Ahead is how many jobs may be open before it waits for those who work, on a
	// machine that is slower than its pauses; 0 is any number.
	Ahead int

	counted time.Time // when it looked last how many are open

	number int // of the next key
	keyed  []keyed
}

// keyed is a job that was stored under an idempotency key.
type keyed struct {
	job stint.NewJob
	id  stint.ID
}

// Run enqueues n jobs that commit, and returns how many did; fewer when ctx
// ends, which is no error. A transaction whose commit is unknown is noted and
// not repeated.
func (p *Producer) Run(ctx context.Context, n int) (int, error) {
	client := stint.NewClient(p.Ground.Store)
	committed := 0
	for committed < n && ctx.Err() == nil {
		p.wait(ctx)
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
			keys[i] = p.key()
			var err error
			if jobs[i], err = p.job(keys[i]); err != nil {
				return committed, err
			}
		}
		committed += p.enqueue(ctx, client, keys, jobs)
		if p.Pause > 0 {
			p.rest(ctx, time.Duration(p.Rand.Int64N(int64(2*p.Pause))))
		}
	}
	return committed, p.History.Err()
}

// wait waits while too many jobs are open. It looks once in a while.
func (p *Producer) wait(ctx context.Context) {
	if p.Ahead == 0 || time.Since(p.counted) < time.Second {
		return
	}
	for ctx.Err() == nil {
		counts, err := p.Ground.Store.Counts(ctx)
		p.counted = time.Now()
		if err != nil || open(counts) <= int64(p.Ahead) {
			return
		}
		p.rest(ctx, 100*time.Millisecond)
	}
}

// open is how many jobs have not ended.
func open(counts map[stint.State]int64) (n int64) {
	for state, of := range counts {
		if !state.Final() {
			n += of
		}
	}
	return n
}

// enqueue enqueues jobs and writes down what is known of that. It returns how many
// were committed.
func (p *Producer) enqueue(ctx context.Context, client *stint.Client, keys []string, jobs []stint.NewJob) int {
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
		p.remember(jobs, ids)
		return len(ids)
	}
	return 0
}

// Poison enqueues a job that does a kind of harm, and says whether it is known to
// be there.
func (p *Producer) Poison(ctx context.Context, poison string) (there bool, err error) {
	key := p.key()
	job, err := Kind.New(Args{Key: key, Poison: poison, Grant: 2},
		stint.Retry(retry.Fixed(1, 10*time.Millisecond)), stint.Timeout(300*time.Millisecond), stint.MaxLosses(1))
	if err != nil || p.enqueue(ctx, stint.NewClient(p.Ground.Store), []string{key}, []stint.NewJob{job}) == 0 {
		return false, err
	}
	return true, p.History.Err()
}

// key is a new one.
func (p *Producer) key() string {
	p.number++
	return fmt.Sprintf("%s-%d", p.Name, p.number-1)
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
	tx, err := p.Ground.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.rollback(context.WithoutCancel(ctx)) }()
	ids, err := numbers(client.With(tx.Tx).EnqueueMany(ctx, jobs))
	if err != nil {
		return nil, err
	}
	if p.Rand.IntN(4) == 0 {
		time.Sleep(time.Duration(p.Rand.IntN(30)) * time.Millisecond)
	}
	if p.Rand.IntN(3) == 0 {
		if err := tx.rollback(ctx); err != nil {
			return nil, err
		}
		return nil, errRolledBack
	}
	return ids, tx.commit(ctx)
}

func numbers(ids []stint.ID, err error) ([]int64, error) {
	list := make([]int64, len(ids))
	for i, id := range ids {
		list[i] = int64(id)
	}
	return list, err
}

func (p *Producer) job(key string) (stint.NewJob, error) {
	args := p.args(key)
	options := p.options()
	if p.Varied && p.Rand.IntN(2) == 0 {
		var more []stint.Option
		more, args.Grant = p.variety(key)
		options = append(options, more...)
		args.Exit = p.Deadly && p.Rand.IntN(150) == 0
		switch p.Rand.IntN(6) {
		case 0:
			args.Limit = "few"
		case 1:
			args.Limit = fmt.Sprintf("each=%d", p.Rand.IntN(20))
		}
		if args.Limit != "" {
			options = append(options, stint.Limited(args.Limit))
		}
	}
	return Kind.New(args, options...)
}

// remember notes the jobs with keys.
func (p *Producer) remember(jobs []stint.NewJob, ids []int64) {
	for i, job := range jobs {
		if job.IdempotencyKey != "" {
			p.keyed = append(p.keyed, keyed{job, stint.ID(ids[i])})
		}
	}
}

// Repeat enqueues a job again that was stored under a key, whatever became of it,
// and says what it did. It is an error if that stores another one.
func (p *Producer) Repeat(ctx context.Context) (string, error) {
	if len(p.keyed) == 0 {
		return "", nil
	}
	k := p.keyed[p.Rand.IntN(len(p.keyed))]
	receipt, err := stint.NewClient(p.Ground.Store).EnqueueReceipt(ctx, k.job)
	if err == nil && receipt != (stint.Receipt{ID: k.id, Duplicate: true}) {
		return "", fmt.Errorf("job %d was enqueued again under the key %s, and the answer is %+v", k.id, k.job.IdempotencyKey, receipt)
	}
	return fmt.Sprintf("repeat job %d: %v", k.id, err), nil
}

// variety is something else to say of a job, and how many attempts its policy
// grants then: 0 for that of the workload, negative where that depends.
func (p *Producer) variety(key string) (options []stint.Option, grant int) {
	add := func(o ...stint.Option) { options = append(options, o...) }
	switch p.Rand.IntN(8) {
	case 0:
		n := p.Rand.IntN(4)
		add(stint.Retry(retry.Fixed(n, time.Duration(p.Rand.IntN(1000))*time.Millisecond)))
		grant = n + 1
	case 1:
		add(stint.Retry(retry.Exponential(3, 50*time.Millisecond).Jitter(0.5)))
		grant = 4
	case 2:
		add(stint.Retry(retry.None()))
		grant = -1 // none but for losses
	case 3:
		add(stint.MaxLosses(p.Rand.IntN(3)))
	case 4:
		add(stint.StartWithin(time.Duration(1+p.Rand.IntN(2000)) * time.Millisecond))
	case 5:
		add(stint.Timeout(time.Duration(5+p.Rand.IntN(500)) * time.Millisecond))
	case 6:
		add(stint.RunAt(time.Now().Add(time.Duration(p.Rand.IntN(3000)-500) * time.Millisecond)))
	}
	if p.Rand.IntN(3) == 0 {
		add(stint.IdempotencyKey(key))
	}
	if p.Rand.IntN(3) == 0 {
		add(stint.Tag("varied", key), stint.URN("urn:"+key), stint.Source("chaos"),
			stint.Correlation("about "+key), stint.Metadata([]byte(`{"varied":true}`)))
	}
	if p.Rand.IntN(4) == 0 {
		add(stint.Queue("third"))
	}
	return options, grant
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
		list = append(list, stint.Delay(time.Duration(p.Rand.IntN(2000))*time.Millisecond))
	case 1:
		list = append(list, stint.Priority(p.Rand.IntN(5)-2))
	case 2:
		list = append(list, stint.Queue("other"))
	}
	return list
}
