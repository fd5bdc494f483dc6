package engine

import (
	"errors"
	"slices"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// maxLogBatch is how many bytes of lines one beat carries, so that it stays a short request. What is more
// waits for the next one.
const maxLogBatch = 1 << 20

// logs is what beats carry of what handlers say. Nothing is to be done for one that says nothing. It belongs
// to the loop of beats.
type logs struct {
	from   int  // which attempt is the first to be asked, so that each has its turn
	paused bool // a beat that carried something failed, and none has arrived since
}

// logBatch is what one beat carries.
type logBatch struct {
	attempts []*attempt
	records  []store.LogRecord
}

// unsaid is what an attempt said and the store does not have yet; nil for nothing.
func (a *attempt) unsaid() *store.LogRecord {
	said := a.Run.Log()
	if said.Empty() || !a.s.keepsLogs {
		return nil
	}
	return &store.LogRecord{Claim: a.task.claim.ref, Pos: a.task.entry.Pos, Job: a.task.entry.ID, RunLog: said}
}

// gather collects what running attempts said. After a beat that failed one without it goes first: it must
// not be what keeps the engine from saying that it lives.
func (l *logs) gather(s *session) (b logBatch) {
	if l.paused || !s.keepsLogs {
		return b
	}
	running := slices.Collect(s.attempts)
	bytes := 0
	for i := range running {
		a := running[(l.from+i)%len(running)]
		r := a.unsaid()
		if r == nil {
			continue
		}
		if bytes+r.Bytes > maxLogBatch {
			l.from = (l.from + i) % len(running)
			return b
		}
		bytes += r.Bytes
		b.attempts, b.records = append(b.attempts, a), append(b.records, *r)
	}
	return b
}

// sent notes what became of a beat. What the database refuses as such, a character that its encoding does not
// have, is not sent again.
func (l *logs) sent(b logBatch, err error) {
	l.paused = err != nil && (l.paused || len(b.records) > 0)
	if err != nil && !errors.Is(err, stint.ErrUnstorable) {
		return
	}
	for i, a := range b.attempts {
		a.TakenLog(b.records[i].RunLog)
	}
}
