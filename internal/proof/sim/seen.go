package sim

import "github.com/stint-go/stint/store"

// The roles that an engine gets to see: those that it always does, those that
// SQLite's store lacks, without which its engine polls, and those that old seeds
// knew nothing of.
type (
	common interface {
		store.Store
		store.Canceller
		store.TxFinisher
		store.OrphanRecoverer
	}
	voice interface {
		store.Listener
		store.Clock
		store.SessionTerminator
	}
	later interface {
		store.Pauser
		store.ClaimedEnqueuer
		store.Leaser
		store.Retainer
	}
	latest interface {
		store.Scheduler
	}
)

// seen is the process as its engine sees it.
func (p *process) seen(deaf bool) store.Store {
	switch old := p.w.seed.Age > Single; {
	case old && deaf:
		return struct{ common }{p}
	case old:
		return struct {
			common
			voice
		}{p, p}
	case p.w.calendar == nil && deaf:
		return struct {
			common
			later
		}{p, p}
	case p.w.calendar == nil:
		return struct {
			common
			voice
			later
		}{p, p, p}
	case deaf:
		return struct {
			common
			later
			latest
		}{p, p, p}
	}
	return p
}
