package storetest

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// poisons are values of an execution that some database refuses. A store may
// keep them or refuse them, but one that is refused must say so, and must not
// take the rest of its batch with it for ever.
var poisons = map[string]func(x *store.Completion){
	"NUL in an error":              func(x *store.Completion) { x.Error = &stint.Failure{Class: "c", Message: "a\x00b"} },
	"NUL in a stack":               func(x *store.Completion) { x.Error = &stint.Failure{Class: "c", Stack: "a\x00b"} },
	"invalid UTF-8 in an error":    func(x *store.Completion) { x.Error = &stint.Failure{Class: "c", Message: "a\xff\xfeb"} },
	"NUL in a reason":              func(x *store.Completion) { x.Reason = "a\x00b" },
	"invalid UTF-8 in a reason":    func(x *store.Completion) { x.Reason = "a\xffb" },
	"NUL in a result":              func(x *store.Completion) { x.Result = json.RawMessage(`{"a":"b\u0000"}`) },
	"NUL in a result's key":        func(x *store.Completion) { x.Result = json.RawMessage(`{"a\u0000":1}`) },
	"half a surrogate in a result": func(x *store.Completion) { x.Result = json.RawMessage(`"\ud800"`) },
	"invalid UTF-8 in a result":    func(x *store.Completion) { x.Result = json.RawMessage("\"\xff\"") },
	"a number beyond all":          func(x *store.Completion) { x.Result = json.RawMessage(`1e200000`) },
	"absurd depth":                 func(x *store.Completion) { x.Result = json.RawMessage(deep(100_000)) },
	"a result that is no JSON":     func(x *store.Completion) { x.Result = json.RawMessage(`{"a":`) },
	"an empty result":              func(x *store.Completion) { x.Result = json.RawMessage{} },
	"a long error":                 func(x *store.Completion) { x.Error = &stint.Failure{Message: strings.Repeat("ü", 1<<20)} },
}

var poisonTests = []test{
	{"A value that the store refuses is told as such, and the batch without it works", func(t *T) {
		w := t.join("k")
		for name, put := range poisons {
			ids := t.enqueue(jobs(3, "k")...)
			done := w.concludeAll(completed, w.ClaimAll()...)
			put(&done[1])
			n, err := w.TryFinish(t.ctx, done...)
			switch {
			case err == nil && n == 3:
				t.readable(name, ids...)
				continue
			case err == nil:
				t.Errorf("%s: %d of 3 were recorded without an error", name, n)
				continue
			case !errors.Is(err, stint.ErrUnstorable):
				t.Errorf("%s: error %v, want ErrUnstorable", name, err)
			}
			t.states(ids, stint.Running)
			n, err = w.TryFinish(t.ctx, done[0], done[2])
			expect(t, err == nil && n == 2, "%s: without the culprit %d were recorded, error %v", name, n, err)
			fails(t, errOf(w.TryFinish(t.ctx, done[1])), stint.ErrUnstorable, "%s: alone it gives %v, want ErrUnstorable", name)
			clean := done[1]
			clean.Result, clean.Error, clean.Reason = nil, nil, "sanitised"
			n, err = w.TryFinish(t.ctx, clean)
			expect(t, err == nil && n == 1, "%s: sanitised, %d were recorded, error %v", name, n, err)
			t.readable(name, ids...)
		}
	}},
	{"An error that is not about a value does not say so", func(t *T) {
		t.enqueue(job("k"))
		w := t.join("k")
		x := w.Conclude(w.One(), completed)
		w.Leave()
		_, err := w.TryFinish(t.ctx, x)
		expect(t, err != nil && !errors.Is(err, stint.ErrUnstorable), "a buried engine's batch gives %v", err)
	}},
}

// readable checks that people still see finished jobs, whatever was stored
// with them.
func (t *T) readable(name string, ids ...stint.ID) {
	t.Helper()
	for _, id := range ids {
		info, err := t.Store.Job(t.ctx, id)
		if err != nil {
			t.Errorf("%s: it was stored, and now job %d cannot be read: %v", name, id, err)
			continue
		}
		equal(t, info.State, stint.Completed, "%s: job %d is %s, want %s", name, id)
		_, err = json.Marshal(info)
		expect(t, err == nil, "%s: job %d cannot be shown as JSON: %v", name, id, err)
	}
	_, err := t.Store.Jobs(t.ctx, store.Filter{})
	expect(t, err == nil, "%s: it was stored, and now jobs cannot be listed: %v", name, err)
}
