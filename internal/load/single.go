package load

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
)

// SingleOptions say how [Single] measures. Producers, Duration and Insert are
// required.
type SingleOptions struct {
	Producers int
	Duration  time.Duration // of both together
	Insert    Insert        // a bare row, to compare with

	// Asleep has an idle engine wait for work, which is to be woken. Otherwise
	// the only engine has its slot full, and nobody sleeps.
	Asleep bool

	Meter *Meter
}

// SingleResult is what [Single] measured.
type SingleResult struct {
	Producers int       `json:"producers"`
	Asleep    bool      `json:"asleep"`
	Enqueue   CallRates `json:"enqueue"`
	Insert    CallRates `json:"insert"`
	Ratio     float64   `json:"ratio"` // of the first to the second, per second
}

// CallRates are figures of one call that producers make again and again.
type CallRates struct {
	N         int       `json:"n"`
	PerSecond float64   `json:"per_s"`
	Took      Quantiles `json:"took_ms"`
}

// Single has producers enqueue one job for each transaction, and insert one bare
// row for each, by turns in short slices of time: what else keeps the machine
// busy is the same for both.
func Single(ctx context.Context, store stint.Store, o SingleOptions) (SingleResult, error) {
	r := SingleResult{Producers: o.Producers, Asleep: o.Asleep}
	f, release, err := attend(ctx, store, o.Asleep)
	if err != nil {
		return r, err
	}
	calls := [2]caller{newCaller(o.Producers), newCaller(o.Producers)}
	err = o.alternate(ctx, f, stint.NewClient(store), &calls)
	release()
	if stopped := f.stop(); err == nil {
		err = stopped
	}
	r.Enqueue, r.Insert = calls[0].rates(), calls[1].rates()
	if r.Insert.PerSecond > 0 {
		r.Ratio = r.Enqueue.PerSecond / r.Insert.PerSecond
	}
	return r, err
}

// single is a kind that the engine of [Single] does not work on. Its policy is the
// default one, which no row names: the bare ones have none either.
var single = stint.Declaration{Name: "load_single"}

// slicePairs is how many slices of time each of the two has, and one more that
// is not measured.
const slicePairs = 10

// alternate gives each of the two calls its slices of time.
func (o SingleOptions) alternate(ctx context.Context, f *fleet, client *stint.Client, calls *[2]caller) error {
	meter := o.Meter.or()
	enqueue := func(ctx context.Context, _ int) error {
		_, err := client.Enqueue(ctx, single.Job(nil))
		meter.Enqueued.Add(1)
		return err
	}
	slice := o.Duration / (2 * slicePairs)
	for i := range slicePairs + 1 {
		for which, call := range []Insert{enqueue, o.Insert} {
			if i == 0 {
				warm := newCaller(o.Producers)
				if err := warm.slice(ctx, slice, call); err != nil {
					return err
				}
				continue
			}
			if err := calls[which].slice(ctx, slice, call); err != nil {
				return err
			}
		}
		select {
		case err := <-f.dead:
			return err
		default:
		}
	}
	return nil
}

// caller is producers that make the same call side by side.
type caller struct {
	took  [][]time.Duration // of each producer
	spent time.Duration
}

func newCaller(producers int) caller { return caller{took: make([][]time.Duration, producers)} }

// slice has each producer call again and again for a time. A call that has begun
// counts with all of its time.
func (c *caller) slice(ctx context.Context, d time.Duration, call Insert) error {
	begin := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for i := range c.took {
		g.Go(func() error {
			for last := begin; last.Sub(begin) < d; {
				if err := call(ctx, i); err != nil {
					return err
				}
				now := time.Now()
				c.took[i] = append(c.took[i], now.Sub(last))
				last = now
			}
			return nil
		})
	}
	err := g.Wait()
	c.spent += time.Since(begin)
	return err
}

func (c *caller) rates() CallRates {
	all := slices.Concat(c.took...)
	r := CallRates{N: len(all), Took: QuantilesOf(all)}
	if c.spent > 0 {
		r.PerSecond = float64(len(all)) / c.spent.Seconds()
	}
	return r
}

// attend starts an engine that leaves the jobs of [Single] alone: one that is
// idle, or one whose only slot is full until it is released. It returns when
// that is so.
func attend(ctx context.Context, store stint.Store, asleep bool) (f *fleet, release func(), err error) {
	const queue = "load_engine"
	begun, released := make(chan struct{}), make(chan struct{})
	kind := stint.Declaration{Name: "load_attend", Queue: queue, Retry: retry.None()}
	mux := stint.NewMux()
	mux.Add(kind, func(context.Context, *stint.Job) (json.RawMessage, error) {
		close(begun)
		<-released
		return nil, nil
	})
	f, err = startFleet(ctx, store, nil, 1, mux, engine.Config{Slots: 1, Queues: []string{queue}})
	if err != nil {
		return nil, nil, err
	}
	release = sync.OnceFunc(func() { close(released) })
	if _, err = stint.NewClient(store).Enqueue(ctx, kind.Job(nil)); err == nil {
		err = f.wait(ctx, begun)
	}
	if asleep || err != nil {
		release()
	}
	if err != nil {
		_ = f.stop()
		return nil, nil, err
	}
	return f, release, nil
}
