package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/api"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// changes lists what is written down, the oldest first.
func (s *site) changes(query string) []store.Change {
	s.Helper()
	all := get[ops.ChangePage](s, 200, "GET", "/changes"+query, nil).Changes
	slices.Reverse(all)
	return all
}

func TestChangesSayWhoDidWhatAndWhatCameOfIt(t *testing.T) {
	s := open(t)
	const secret = "top secret"
	for i, c := range []struct {
		status                        int
		method, path, body            string
		operation, subject, has, came string
	}{
		{201, "POST", "/jobs", `{"jobs":[{"kind":"sh","args":"top secret"},{"kind":"sh"},{"kind":"fax"}],"force":true}`,
			"jobs enqueue", "", `{"jobs":3,"kinds":{"fax":1,"sh":2}}`, "done"},
		{200, "POST", "/queues/default/pause", `{"why":"it's late"}`, "queues pause", "default", `{"why":"it's late"}`, "done"},
		{200, "POST", "/queues/default/resume", "", "queues resume", "default", "", "done"},
		{200, "PUT", "/limits/smtp", `{"rule":"10,100/1m","why":"it's slow"}`, "limits set", "smtp", `{"rule":"10,100/1m","why":"it's slow"}`, "done"},
		{422, "PUT", "/limits/smtp", `{"rule":"many"}`, "limits set", "smtp", `{"rule":"many"}`, "failed"},
		{200, "DELETE", "/limits/smtp", "", "limits reset", "smtp", "", "done"},
		{200, "POST", "/limits/account=7/unblock", "", "limits unblock", "account=7", "", "done"},
		{200, "PUT", "/schedules/nightly", `{"recurrence":"@daily","job":{"kind":"mail","queue":"q","args":{"a":"top secret"},"metadata":{"m":"top secret"}},"force":true}`,
			"schedules add", "nightly", `"recurrence":"@daily"`, "done"},
		{422, "PUT", "/schedules/broken", `{"recurrence":"never","job":{"kind":"mail"},"force":true}`, "schedules add", "broken", `"never"`, "failed"},
		{201, "POST", "/schedules/nightly/run-now", "", "schedules run-now", "nightly", "", "done"},
		{200, "DELETE", "/schedules/nightly?why=gone", "", "schedules remove", "nightly", `{"why":"gone"}`, "done"},
		{404, "POST", "/schedules/none/resume", "", "schedules resume", "none", "", "failed"},
		{200, "POST", "/jobs/cancel", `{"ids":[1],"why":"no"}`, "jobs cancel", "1", `"ids":[1]`, "done"},
		{200, "POST", "/jobs/retry", `{"ids":[1,2]}`, "jobs retry", "", `"ids":[1,2]`, "done"},
		{200, "POST", "/jobs/delete", `{"filter":{"kind":"fax"}}`, "jobs delete", "", `"filter":{"kind":"fax"}`, "done"},
		{200, "POST", "/jobs/3/signal", `{"name":"approved","value":"top secret","key":"k"}`, "jobs signal", "3", `{"key":"k","name":"approved"}`, "done"},
		{404, "POST", "/jobs/3/answer", `{"question":"approve","choice":"pay","comment":"top secret"}`, "jobs answer", "3", `{"choice":"pay","question":"approve"}`, "failed"},
		{409, "POST", "/jobs/1/signal", `{"name":"approved","value":{"a":"top secret"}}`, "jobs signal", "1", `{"name":"approved"}`, "failed"},
		{404, "POST", "/engines/12345678901234567/drain", "", "engines drain", "12345678901234567", "", "failed"},
		{404, "POST", "/leases/retention/release", `{}`, "leases release", "retention", "", "failed"},
	} {
		s.who = guard.Identity{Name: fmt.Sprintf("user %d", i), Role: guard.Admin}
		var body any
		if c.body != "" {
			body = c.body
		}
		if status, text := s.ask(c.method, c.path, body); status != c.status {
			t.Fatalf("%s %s: %d %s, want %d", c.method, c.path, status, text, c.status)
		}
		all := s.changes("")
		last := all[len(all)-1]
		if len(all) != i+1 || last.By != s.who.Name || last.Role != "admin" || last.Way != store.WayAPI || last.Operation != c.operation || last.Subject != c.subject ||
			string(last.Result) != c.came || (last.Problem == "") != (c.came == "done") || !strings.Contains(string(last.Details), c.has) || c.has == "" && last.Details != nil {
			t.Errorf("%s %s: of %d changes the last is %+v, details %s", c.method, c.path, len(all), last, last.Details)
		}
		if strings.Contains(string(last.Details), secret) {
			t.Errorf("%s %s: arguments are written down: %s", c.method, c.path, last.Details)
		}
	}
	// Questions are none, and neither is what is refused, or only tried; nor are the
	// jobs of programs, but for those that may do anything.
	before := len(s.changes(""))
	s.ask("POST", "/jobs", `{"jobs":[{"kind":"mail"}],"force":true}`)
	s.ask("GET", "/jobs", nil)
	get[ops.Done[store.DeleteStatus]](s, 200, "POST", "/jobs/delete", `{"filter":{},"dry_run":true}`)
	s.ask("POST", "/jobs/cancel", `{"ids":["x"]}`)
	s.who.Role = guard.Viewer
	s.ask("POST", "/queues/default/pause", `{}`)
	if status, _ := s.ask("GET", "/changes", nil); status != 403 {
		t.Errorf("a viewer who asks for changes gets %d", status)
	}
	s.who.Role = guard.Operator
	if after := len(s.changes("")); after != before {
		t.Errorf("%d changes were written down of what changes nothing", after-before)
	}
}

func TestChangesAreFoundAndPaged(t *testing.T) {
	s := open(t)
	for i := range 7 {
		s.who.Name = []string{"ann", "ben"}[i%2]
		get[ops.Changed](s, 200, "POST", "/queues/q"+fmt.Sprint(i%3)+"/pause", `{}`)
	}
	if all := s.changes("?by=ben"); len(all) != 3 {
		t.Errorf("of ben there are %+v", all)
	}
	if all := s.changes("?subject=q0&operation=queues+pause"); len(all) != 3 {
		t.Errorf("of q0 there are %+v", all)
	}
	if all := s.changes("?operation=queues+resume"); len(all) != 0 {
		t.Errorf("of another operation there are %+v", all)
	}
	if all := s.changes("?until=" + time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)); len(all) != 0 {
		t.Errorf("of before there are %+v", all)
	}
	var ids []int64
	path := "/changes?limit=3"
	for range 3 {
		p := get[ops.ChangePage](s, 200, "GET", path, nil)
		for _, c := range p.Changes {
			ids = append(ids, c.ID)
		}
		path = fmt.Sprintf("/changes?limit=3&before=%d", p.Next)
		if (p.Next == 0) != (len(ids) == 7) {
			t.Errorf("behind %d changes the next page begins at %d", len(ids), p.Next)
		}
	}
	if !slices.IsSortedFunc(ids, func(a, b int64) int { return int(b - a) }) || len(slices.Compact(ids)) != 7 {
		t.Errorf("the pages show %v", ids)
	}
}

// forgetful is a store that writes nothing down.
type forgetful struct {
	*sqlite.Store
	err error
}

func (f *forgetful) BeginChange(context.Context, store.NewChange) (int64, error) { return 0, f.err }

func TestNothingIsChangedThatCannotBeWrittenDown(t *testing.T) {
	broken := errors.New("the disk is full")
	var seen []error
	store, err := sqlite.Open(t.Context(), sqlite.Memory, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s := &site{T: t, store: store, who: guard.Identity{Name: "tester", Role: guard.Admin}}
	s.serve(api.New(&forgetful{store, broken}, api.Config{Restricted: []string{"sh"}, OnError: func(_ context.Context, _ string, err error) { seen = append(seen, err) }}))
	for _, c := range [][3]string{
		{"POST", "/jobs", `{"jobs":[{"kind":"sh"}],"force":true}`}, {"POST", "/queues/q/pause", `{}`},
		{"PUT", "/schedules/s", `{"recurrence":"@daily","job":{"kind":"mail"},"force":true}`},
	} {
		status, text := s.ask(c[0], c[1], c[2])
		if status != 503 || !strings.Contains(string(text), "nothing was changed") || strings.Contains(string(text), "disk") {
			t.Errorf("%s %s: %d %s", c[0], c[1], status, text)
		}
	}
	if len(seen) != 3 || !errors.Is(seen[0], broken) {
		t.Errorf("the log got %v", seen)
	}
	paused, err := store.Paused(t.Context())
	if err != nil || len(paused) != 0 {
		t.Errorf("paused are %v, error %v", paused, err)
	}
	if counts, err := store.Counts(t.Context()); err != nil || counts[stint.Available] != 0 {
		t.Errorf("there are %v, error %v", counts, err)
	}
	if all, err := store.Schedules(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("schedules are %+v, error %v", all, err)
	}
}

func TestAReasonThatCannotBeStoredIsTheRequestsFault(t *testing.T) {
	s := open(t)
	if status, text := s.ask("POST", "/queues/q/pause", json.RawMessage(`{"why":"a\u0000b"}`)); status != 422 {
		t.Errorf("%d %s", status, text)
	}
}
