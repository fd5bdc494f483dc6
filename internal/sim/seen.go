package sim

import "github.com/stint-go/stint"

// The roles that an engine gets to see: those that it always does, those that
// SQLite's store lacks, without which its engine polls, and those that old seeds
// knew nothing of.
type (
	common interface {
		stint.Store
		stint.Canceller
		stint.TxFinisher
		stint.Sweeper
	}
	voice interface {
		stint.Listener
		stint.Clock
		stint.Evicter
	}
	later interface {
		stint.Pauser
		stint.Immediate
		stint.Leaser
		stint.Retainer
	}
	latest interface {
		stint.Scheduler
	}
)

// seen is the process as its engine sees it.
func (p *process) seen(deaf bool) stint.Store {
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
