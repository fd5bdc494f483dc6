package gateway

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/store"
)

// care does something for a worker that this gateway does not have, one call at a time.
func (g *Gateway) care(ctx context.Context, id store.EngineID, do func(engine.Caretaker, store.EngineInfo) error) error {
	lock := &g.caring[uint64(id)%uint64(len(g.caring))]
	lock.Lock()
	defer lock.Unlock()
	roster, err := g.store.Engines(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(roster, func(e store.EngineInfo) bool { return e.Token == id })
	if i < 0 || !roster[i].ByBeats() {
		return ErrLost
	}
	if err := mayWorkOn(guard.Of(ctx), roster[i].Queues, roster[i].Kinds); err != nil {
		return err
	}
	err = do(engine.Caretaker{Store: g.store, Engine: id}, roster[i])
	if errors.Is(err, store.ErrBuried) || errors.Is(err, store.ErrMoved) { // nobody knows what a new server has of its claims
		err = ErrLost
	}
	return err
}

func (g *Gateway) finishElsewhere(ctx context.Context, id store.EngineID, endings []Ending) (answers []Recorded, err error) {
	answers = []Recorded{}
	err = g.care(ctx, id, func(c engine.Caretaker, _ store.EngineInfo) error {
		for i := range endings {
			a, err := finishWith(ctx, c, &endings[i])
			if err != nil {
				return err
			}
			answers = append(answers, a)
		}
		return nil
	})
	return answers, err
}

func finishWith(ctx context.Context, c engine.Caretaker, x *Ending) (Recorded, error) {
	hold, err := ParseReceipt(x.Receipt)
	if err != nil {
		return Recorded{Invalid, err.Error()}, nil
	}
	result, end := x.end()
	if isInvalid(end) {
		return Recorded{Invalid, end.Error()}, nil
	}
	recorded, err := c.Finish(ctx, engine.Ended{Hold: hold, Result: result, Err: end})
	switch {
	case err != nil:
		return Recorded{}, err
	case !recorded:
		return Recorded{Fenced, "the worker does not hold the job"}, nil
	}
	return Recorded{Status: OK}, nil
}

func (g *Gateway) beatElsewhere(ctx context.Context, id store.EngineID, running []Running, moved time.Duration) (news News, err error) {
	err = g.care(ctx, id, func(c engine.Caretaker, info store.EngineInfo) error {
		var holds []engine.Hold
		receipts := map[store.Position]string{}
		for _, one := range running {
			if hold, err := ParseReceipt(one.Receipt); err == nil {
				holds = append(holds, hold)
				receipts[hold.Pos] = one.Receipt
			}
		}
		// The engine of a gateway that the worker has not spoken to for that long has ended itself.
		entries, err := c.Beat(ctx, holds, moved > info.TimeToLive)
		if err != nil {
			return err
		}
		news = newNews(false)
		news.Cancel, err = g.cancelled(ctx, entries, receipts)
		return err
	})
	return news, err
}

// cancelled tells which of the jobs that a worker runs were cancelled, and which it has lost.
func (g *Gateway) cancelled(ctx context.Context, entries []store.Entry, receipts map[store.Position]string) (_ []Cancel, err error) {
	list := []Cancel{}
	var ids []stint.ID
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	var gone []stint.ID
	if len(ids) > 0 {
		if gone, err = g.store.Cancelling(ctx, ids); err != nil {
			return nil, err
		}
	}
	for _, e := range entries {
		if slices.Contains(gone, e.ID) {
			list = append(list, Cancel{receipts[e.Pos], ReasonCancelled})
		}
		delete(receipts, e.Pos)
	}
	for _, receipt := range receipts {
		list = append(list, Cancel{receipt, ReasonLost})
	}
	return list, nil
}

func (g *Gateway) leaveElsewhere(ctx context.Context, id store.EngineID) error {
	err := g.care(ctx, id, func(c engine.Caretaker, _ store.EngineInfo) error { return c.Leave(ctx) })
	if errors.Is(err, ErrLost) {
		return nil
	}
	return err
}
