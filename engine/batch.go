package engine

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// maxGathering is how many batches of a pool may wait for more tasks at once. What is claimed
// beyond that begins with what is there.
const maxGathering = 100

// batch is tasks of one kind and queue that one call of their handler gets: [stint.HandleMany]. It
// takes one slot of its pool.
type batch struct {
	pool *pool // nil for inline runs
	key  batchKey

	// Guarded by gathering.mu until a slot, or the returner, takes the batch.
	tasks  []*task
	queued bool // it waits for a slot; until it is full it takes more tasks
	timer  *time.Timer

	slots []*slot      // where its tasks run, one each, all under the number of the batch's slot
	call  *stint.Batch // of those that start
}

// batchKey is what the tasks of a batch have in common.
type batchKey struct {
	runner *kindRunner
	queue  string
}

func keyOf(t *task) batchKey { return batchKey{t.runner, t.entry.Queue} }

// gathers reports whether a task is performed in a batch. Suspects that run alone are not.
func gathers(t *task) bool {
	return t.runner != nil && t.runner.gather.Jobs > 0 && t.entry.Suspect < suspectAlone
}

// gathering is the batches of a pool that take more tasks. What gathers is claimed, but it is not
// announced, has no slot, and takes no room from other work.
type gathering struct {
	most int // tasks of the greatest batch

	mu   sync.Mutex // guards the rest
	open map[batchKey]*batch
	over bool // nothing begins any more
}

func newGathering(most int) *gathering {
	return &gathering{most: most, open: map[batchKey]*batch{}}
}

// mostGathered returns how many tasks the greatest batch has; zero if no kind has batches.
func mostGathered(runners map[string]*kindRunner) (most int) {
	for _, r := range runners {
		most = max(most, r.gather.Jobs)
	}
	return most
}

// room returns for how many more entries than there are slots the open batches are worth a claim.
// Of a lane with several kinds a claim brings others too, which must not all wait here. So it is
// twice what has gathered: little at first, and soon all that is missing.
func (g *gathering) room() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, b := range g.open {
		n += min(b.key.runner.gather.Jobs-len(b.tasks), 2*len(b.tasks))
	}
	return min(n, g.most)
}

// gather adds a task to the batch that is open for it.
func (p *pool) gather(t *task) {
	g, key, how := p.gathering, keyOf(t), t.runner.gather
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.open[key]
	if b == nil {
		b = &batch{pool: p, key: key}
		if how.Wait > 0 && len(g.open) < maxGathering {
			b.timer = time.AfterFunc(how.Wait, func() {
				g.mu.Lock()
				defer g.mu.Unlock()
				p.beginLocked(b)
			})
		}
		g.open[key] = b
	}
	t.batch = b
	if b.tasks = append(b.tasks, t); len(b.tasks) >= how.Jobs {
		p.beginLocked(b)
		delete(g.open, key)
	}
}

// beginBatches lets batches that wait for no more tasks wait for a slot, after a claim.
func (p *pool) beginBatches() {
	g := p.gathering
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, b := range g.open {
		if b.timer == nil {
			p.beginLocked(b)
		}
	}
}

// beginLocked lets a batch wait for a slot. There is always room in the channel.
func (p *pool) beginLocked(b *batch) {
	if b.queued || p.gathering.over {
		return
	}
	if b.queued = true; b.timer != nil {
		b.timer.Stop()
	}
	p.enter(&p.busy)
	p.ready <- b.tasks[0]
}

// take closes a batch that waited for a slot, and returns its tasks.
func (b *batch) take() []*task {
	g := b.pool.gathering
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[b.key] == b {
		delete(g.open, b.key)
	}
	return b.tasks
}

// endGathering returns the tasks of batches that do not wait for a slot. Nothing begins after it.
func (p *pool) endGathering() (tasks []*task) {
	g := p.gathering
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	for _, b := range g.open {
		if !b.queued {
			tasks = append(tasks, b.tasks...)
		}
		if b.timer != nil {
			b.timer.Stop()
		}
	}
	return tasks
}

// returnReady returns a task that waited for a slot, or all of its batch, and says how many.
func (s *session) returnReady(t *task, ended chan<- *task) int {
	b := t.batch
	if b == nil {
		s.sendOutcome(s.returnUnstarted(t), ended)
		return 1
	}
	tasks := b.take()
	for _, t := range tasks {
		s.sendOutcome(s.returnUnstarted(t), ended)
	}
	s.batchEnded(b, 0)
	return len(tasks)
}

// batchEnded notes that a batch no longer takes room.
func (s *session) batchEnded(b *batch, ran time.Duration) {
	if b.pool.taskEnded(ran) {
		s.capacity.notify()
	}
}

// runBatch runs a batch in a slot.
func (s *session) runBatch(b *batch, one *slot, ended chan<- *task) {
	tasks := b.take()
	own := make([]slot, len(tasks))
	for i := range own {
		own[i].number = one.number
		b.slots = append(b.slots, &own[i])
	}
	one.batch.Store(b)
	began := time.Now()
	var good atomic.Int64
	hooked := s.performBatch(b, tasks, func(t *task) { good.Add(int64(goodJobs(t))); s.sendOutcome(t, ended) })
	one.batch.Store(nil)
	ran := time.Since(began)
	if !hooked {
		s.awaitHookRoom()
	}
	if b.pool.auto != nil {
		b.pool.auto.ran(tasks[0].entry.Kind, began, int(good.Load()))
	}
	s.batchEnded(b, ran)
}

// performBatch runs those of a batch's tasks that may start, and passes on each task as it ends. It
// reports whether all of them got permits for their hooks.
func (s *session) performBatch(b *batch, tasks []*task, pass func(*task)) (hooked bool) {
	var start []int
	hooked, wait := true, false
	s.seeCancelled(b, tasks)
	for i, t := range tasks {
		switch {
		case t.entry.Cancelled:
			pass(s.conclude(t, store.Result{Outcome: stint.OutcomeCancelled}))
		case !hooked || !s.reserveHooks(t.entry):
			hooked = false
			pass(s.returnUnstarted(t))
		case !s.announceable(t, b.slots[i]):
			pass(s.concludeUnstarted(t))
		default:
			start, wait = append(start, i), wait || s.mustAnnounce(t)
		}
	}
	announced := wait && s.announce() // one beat for all
	n := 0
	for _, i := range start {
		if t := tasks[i]; s.mayStart(t, b.slots[i], announced || !s.mustAnnounce(t)) {
			start[n] = i
			n++
		} else {
			pass(s.concludeUnstarted(t))
		}
	}
	b.call = stint.NewBatch(n)
	var all sync.WaitGroup
	for _, i := range start[:n] {
		all.Go(func() { s.performOneOf(tasks[i], b.slots[i], pass) })
	}
	all.Wait()
	return hooked
}

// seeCancelled marks what was cancelled while the batch gathered. Should the store not answer, those
// jobs start and are cancelled soon.
func (s *session) seeCancelled(b *batch, tasks []*task) {
	canceller, ok := s.store.(store.Canceller)
	if !ok || b.timer == nil {
		return
	}
	ids := make([]stint.ID, len(tasks))
	for i, t := range tasks {
		ids[i] = t.entry.ID
	}
	limit, cancel := s.limit(s.work)
	defer cancel()
	gone, err := canceller.Cancelling(limit, ids)
	if err != nil {
		s.trouble(s.work, "look for cancelled jobs", err)
	}
	for _, t := range tasks {
		t.entry.Cancelled = t.entry.Cancelled || slices.Contains(gone, t.entry.ID)
	}
}

// performOneOf runs one task of a batch, whose handler may end the goroutine.
func (s *session) performOneOf(t *task, one *slot, pass func(*task)) {
	end := store.Result{Outcome: stint.OutcomeFailed, Err: errGoexit}
	over := false
	defer func() {
		if !over {
			s.conclude(t, end)
		}
		one.pos.Store(0)
		pass(t)
	}()
	s.conclude(t, s.perform(t, one))
	over = true
}

// goesOn reports whether the context of a task that runs in the batch has not ended.
func (b *batch) goesOn() bool {
	return b != nil && slices.ContainsFunc(b.slots, func(one *slot) bool {
		a := one.attempt.Load()
		return a != nil && a.runContext.Err() == nil
	})
}
