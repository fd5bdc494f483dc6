package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint/store"
)

// slot is where one attempt at a time runs: one of the session's slots, or the place of an inline
// run.
type slot struct {
	number  int                     // from 1, as it is recorded
	pos     atomic.Int64            // what it works on; 0 for nothing
	said    int64                   // what the beat on its way says of that; of the beat loop
	told    atomic.Int64            // what the last beat said
	seen    int64                   // what it worked on at the last look of announceLong
	attempt atomic.Pointer[attempt] // while the handler runs
	batch   atomic.Pointer[batch]   // while one runs in it: its tasks have slots of their own
}

// eachSlot yields all slots, then the places of inline runs.
func (s *session) eachSlot(yield func(*slot) bool) {
	for i := range s.slots {
		if !yield(&s.slots[i]) {
			return
		}
		if b := s.slots[i].batch.Load(); b != nil {
			for _, one := range b.slots {
				if !yield(one) {
					return
				}
			}
		}
	}
	s.inlineRuns.slots.Range(func(_, one any) bool { return yield(one.(*slot)) })
}

// attempts yields those that run now.
func (s *session) attempts(yield func(*attempt) bool) {
	for one := range s.eachSlot {
		if a := one.attempt.Load(); a != nil && !yield(a) {
			return
		}
	}
}

// announcements lists what is being worked on, for a beat.
func (s *session) announcements() (list []store.Position) {
	for one := range s.eachSlot {
		if one.said = one.pos.Load(); one.said != 0 {
			list = append(list, store.Position(one.said))
		}
	}
	return list
}

// started says when the handlers began that run, for a beat.
func (s *session) started() map[store.Position]time.Time {
	at := map[store.Position]time.Time{}
	for a := range s.attempts {
		at[a.task.entry.Pos] = a.began
	}
	return at
}

// announced notes that the beat with the last announcements arrived.
func (s *session) announced() {
	for one := range s.eachSlot {
		one.told.Store(one.said)
	}
}

// announceLong sends a beat at once when a handler has run for a while and no beat has said so:
// should the engine die, it is known that the handler had begun. Most handlers are done sooner.
//
// An engine beside another one does it soon: who took the job was there just before that.
func (s *session) announceLong(ctx context.Context) {
	often := s.config.TimeToLive / 24
	if s.config.Beside != nil {
		often = min(often, longestHidden)
	}
	for {
		select {
		case <-s.filled.c:
		case <-ctx.Done():
			return
		}
		everyWhile(ctx, often, func() bool {
			busy, long := s.pools.busy(), false
			for one := range s.eachSlot {
				pos := one.pos.Load()
				long = long || pos != 0 && pos == one.seen && pos != one.told.Load()
				one.seen = pos
			}
			if long {
				s.announceWithin(s.work) // also of a job whose taker has died since
			}
			return busy
		})
	}
}

// longestHidden is about half of how long a job that an engine beside another one runs is not announced.
const longestHidden = 500 * time.Millisecond

// runningPositions lists what is being worked on.
func (s *session) runningPositions() (list []store.Position) {
	for one := range s.eachSlot {
		if pos := one.pos.Load(); pos != 0 {
			list = append(list, store.Position(pos))
		}
	}
	return list
}

// inlineRuns are the runs of a session that callers brought. The numbers of their slots follow those
// of the session's own.
type inlineRuns struct {
	first int      // the first number
	slots sync.Map // by number a *slot

	mu      sync.Mutex
	closed  bool // no more may enter
	running sync.WaitGroup
}

// enter notes a run; false means that the session takes no more.
func (r *inlineRuns) enter(stopping <-chan struct{}) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-stopping:
		return false
	default:
	}
	if !r.closed {
		r.running.Add(1)
	}
	return !r.closed
}

func (r *inlineRuns) leave() { r.running.Done() }

// close lets no more runs in, and waits until all have left.
func (r *inlineRuns) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.running.Wait()
}

// slot takes the first free number.
func (r *inlineRuns) slot() *slot {
	for one := (&slot{number: r.first}); ; one.number++ {
		if _, taken := r.slots.LoadOrStore(one.number, one); !taken {
			return one
		}
	}
}

func (r *inlineRuns) free(one *slot) { r.slots.Delete(one.number) }

// maxSlotNumber is the greatest slot number that a store can record.
const maxSlotNumber = 1<<15 - 1
