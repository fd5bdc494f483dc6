package storetest

import (
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// cancels cancels jobs at random, one or a few at a time.
func (s *storm) cancels() {
	rng := s.seed.Rand("canceller")
	for s.blows() {
		time.Sleep(time.Duration(rng.IntN(10)) * time.Millisecond)
		c, ok := s.stores[rng.IntN(2)].(store.Canceller)
		if !ok {
			return
		}
		answers, err := c.Cancel(s.ctx, s.unwanted(1+rng.IntN(4)), "storm")
		if err != nil {
			s.Errorf("cancel: %v", err)
			return
		}
		s.mu.Lock()
		for id, answer := range answers {
			s.did["cancellations: "+string(answer)]++
			if s.answers[id] != stint.CancelledNow {
				s.answers[id] = answer
			}
		}
		s.mu.Unlock()
	}
}

// unwanted is a few jobs of any age, and one that may be running.
func (s *storm) unwanted(n int) []stint.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := []stint.ID{s.latest[len(s.committed)%len(s.latest)]}
	if ids[0] == 0 {
		ids = nil
	}
	for _, id := range s.committed {
		if len(ids) == n {
			break
		}
		ids = append(ids, id)
	}
	return ids
}

// settleCancelled holds the end of a job against what was said when it was
// cancelled. (An engine may be handed the job like any other, if it was buried
// since it claimed it: the marker went with that. Nothing it does counts.)
func (s *storm) settleCancelled(j store.LedgerJob) {
	switch answer := s.answers[j.ID]; {
	case answer == stint.CancelNotFound,
		answer == stint.CancelledNow && j.State != stint.Cancelled,
		answer == stint.CancelTooLate && j.State == stint.Cancelled:
		s.Errorf("job %d is %s in the end, and cancelling it was answered with %q", j.ID, j.State, answer)
	}
}
