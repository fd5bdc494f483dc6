package storetest

import (
	"errors"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var migrateTests = []test{
	{"An open store is at the version that the program knows", func(t *T) {
		got := must(t.Store.Schema(t.ctx))(t)
		expect(t, got.Installed >= 1 && got.Installed == got.Known && got.Oldest >= 1 && got.Oldest <= got.Known &&
			got.Where != "",
			"the schema is %+v", got)
	}},
	{"Migrating what is up to date changes nothing", func(t *T) {
		ids := t.enqueue(jobs(2, "k")...)
		before := must(t.Store.Schema(t.ctx))(t)
		after := must(t.Store.Migrate(t.ctx))(t)
		equal(t, before, after, "the schema was %+v and is %+v")
		t.states(ids, stint.Available)
	}},
	{"Ten processes install at once, and each can work", func(t *T) {
		t.must(t.Store.Uninstall(t.ctx))
		errs := atOnce(10, func(int) error {
			s, err := t.Again(t.T, t.Store)
			if err != nil {
				return err
			}
			if _, err := s.Migrate(t.ctx); err != nil {
				return err
			}
			_, err = stint.NewClient(s).Enqueue(t.ctx, job("k"))
			return err
		})
		t.must(errors.Join(errs...))
		equal(t, len(t.join("k").ClaimAll()), 10, "%d jobs were claimed, want %d")
	}},
	{"Uninstalling leaves nothing, and installing again begins anew", func(t *T) {
		t.enqueue(jobs(3, "k")...)
		w := t.join("k")
		w.Complete(w.ClaimAll()...)
		t.must(t.Store.Uninstall(t.ctx))
		got := must(t.Store.Schema(t.ctx))(t)
		expect(t, got.Installed == 0 && got.Known >= 1, "after the removal the schema is %+v", got)
		if _, err := t.Store.Enqueue(t.ctx, stint.Tx{}, jobs(1, "k")); err == nil {
			t.Errorf("without a schema a job was stored")
		}
		got = must(t.Store.Migrate(t.ctx))(t)
		expect(t, got.Installed == got.Known, "installed again, the schema is %+v", got)
		l := t.ledger()
		expect(t, len(l.Jobs)+len(l.Engines)+len(l.Claims) == 0,
			"the new schema has %d jobs, %d engines, %d claims", len(l.Jobs), len(l.Engines), len(l.Claims))
		id := t.enqueue(job("k"))[0]
		heir := t.join("k")
		heir.Complete(heir.ClaimAll()...)
		t.state(id, stint.Completed)
	}},
	{"A schema that is too new for the program is refused", func(t *T) {
		t.skipIf(t.SetSchema == nil, "the harness cannot set a version")
		known := must(t.Store.Schema(t.ctx))(t)
		t.must(t.SetSchema(t.T, t.Store, known.Known+3, known.Known+2))
		fails(t, errOf(t.Store.Migrate(t.ctx)), store.ErrSchema, "migrating gives %v, want ErrSchema")
		fails(t, errOf(t.Again(t.T, t.Store)), store.ErrSchema, "opening gives %v, want ErrSchema")
		got, err := t.Store.Schema(t.ctx)
		expect(t, err == nil && got.Installed == known.Known+3 && got.Oldest == known.Known+2,
			"the schema is told as %+v, error %v", got, err)
		t.must(t.SetSchema(t.T, t.Store, known.Installed, known.Oldest))
	}},
	{"A newer schema that this program may still work on is left alone", func(t *T) {
		t.skipIf(t.SetSchema == nil, "the harness cannot set a version")
		known := must(t.Store.Schema(t.ctx))(t)
		t.must(t.SetSchema(t.T, t.Store, known.Known+3, known.Known))
		got, err := t.Store.Migrate(t.ctx)
		expect(t, err == nil && got.Installed == known.Known+3, "migrating gives %+v, error %v", got, err)
		id := must(stint.NewClient(t.again()).Enqueue(t.ctx, job("k")))(t)
		w := t.join("k")
		w.Complete(w.ClaimAll()...)
		t.state(id, stint.Completed)
	}},
	{"An engine whose program the schema leaves behind is asked to drain, and does not join again", func(t *T) {
		t.skipIf(t.SetSchema == nil, "the harness cannot set a version")
		known := must(t.Store.Schema(t.ctx))(t)
		w := t.join("k")
		id := t.enqueue(job("k"))[0]
		entries := w.ClaimAll()
		t.must(t.SetSchema(t.T, t.Store, known.Known+1, known.Known))
		orders, err := t.Store.Heartbeat(t.ctx, w.Info.Token, store.Heartbeat{Number: 1})
		expect(t, err == nil && !orders.Drain, "a schema that allows it orders %+v, error %v", orders, err)
		t.must(t.SetSchema(t.T, t.Store, known.Known+2, known.Known+1))
		orders, err = t.Store.Heartbeat(t.ctx, w.Info.Token, store.Heartbeat{Number: 2})
		expect(t, err == nil && orders.Drain, "a schema that does not orders %+v, error %v", orders, err)
		again := w.Info
		again.Token++
		fails(t, t.Store.Join(t.ctx, again, nil), store.ErrSchema, "joining again gives %v, want ErrSchema")
		// What it has in hand it may still record.
		w.Complete(entries...)
		t.must(t.SetSchema(t.T, t.Store, known.Installed, known.Oldest))
		t.state(id, stint.Completed)
		got, err := t.Store.Engines(t.ctx)
		expect(t, err == nil && len(got) == 1, "the roster has %d engines, error %v", len(got), err)
	}},
	{"The schema can be printed, from each version on", func(t *T) {
		known := must(t.Store.Schema(t.ctx))(t)
		for from := range known.Known {
			text, err := t.Store.PrintSchema(from)
			expect(t, err == nil && text != "", "from version %d it prints %q, error %v", from, text, err)
		}
		text, err := t.Store.PrintSchema(known.Known)
		expect(t, err == nil && text == "", "after the last version it prints %q, error %v", text, err)
	}},
}
