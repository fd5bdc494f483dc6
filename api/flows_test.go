package api_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/api"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

func TestAFlowIsEnqueuedAsJSONAndAddedTo(t *testing.T) {
	s := openWith(t, func(db *sqlite.Store) api.Store { return db })
	flow := get[ops.EnqueuedFlow](s, 201, "POST", "/flows", `{"force":true,"flow":{"kind":"import","tags":["daily"],"idempotency_key":"k","jobs":[
		{"name":"fetch","kind":"fetch","args":{"day":1},"priority":-5},
		{"name":"pages","kind":"import-pages","jobs":[{"name":"one","kind":"page","needs":["fetch"]},{"kind":"page","needs":["fetch","one"]}]},
		{"name":"sum","kind":"sum","needs":["pages"]},
		{"kind":"alarm","needs_failure":["sum"],"needs_end":["fetch"]}]}}`)
	if names := slices.Sorted(maps.Keys(flow.Jobs)); flow.Duplicate || !slices.Equal(names, []string{"fetch", "pages", "pages/one", "sum"}) {
		t.Fatalf("the flow is %+v", flow)
	}
	again := get[ops.EnqueuedFlow](s, 201, "POST", "/flows", `{"force":true,"flow":{"kind":"import","idempotency_key":"k","jobs":[]}}`)
	if again.ID != flow.ID || !again.Duplicate || len(again.Jobs) > 0 {
		t.Errorf("the same key again gives %+v", again)
	}
	for range 2 {
		added := get[ops.EnqueuedFlow](s, 201, "POST", "/flows/"+flow.ID.String()+"/add", `{"force":true,"jobs":[{"name":"more","kind":"page","needs":[`+flow.Jobs["sum"].String()+`]}]}`)
		if added.ID != flow.ID || added.Jobs["more"] == 0 {
			t.Fatalf("added is %+v", added)
		}
	}
	var kinds []string
	for _, j := range get[ops.JobPage](s, 200, "GET", "/jobs?flow="+flow.ID.String(), nil).Jobs {
		kinds = append(kinds, j.Kind+" "+string(j.State))
	}
	if want := []string{"page blocked", "alarm blocked", "sum blocked", "import-pages blocked", "fetch available"}; !slices.Equal(kinds, want) {
		t.Errorf("the flow has %q, want %q", kinds, want)
	}
	if flows := get[ops.JobPage](s, 200, "GET", "/jobs?flows=true", nil).Jobs; len(flows) != 2 || flows[1].ID != flow.ID || !slices.Equal(flows[1].Tags, []string{"daily"}) {
		t.Errorf("the flows are %+v", flows)
	}
	if j := get[stint.JobInfo](s, 200, "GET", "/jobs/"+flow.Jobs["fetch"].String(), nil); j.Priority != -5 || string(j.Args) != `{"day":1}` {
		t.Errorf("fetch is %+v", j)
	}
	if all := s.changes(""); len(all) != 0 {
		t.Errorf("what programs enqueue is written down: %+v", all)
	}
}

func TestWhatIsWrongInAFlowIsSaidByItsPlace(t *testing.T) {
	s := open(t)
	before := len(get[ops.JobPage](s, 200, "GET", "/jobs", nil).Jobs)
	for body, want := range map[string]string{
		`{"force":true,"flow":{"kind":"x","jobs":[{"kind":"a"},{"kind":"b","needs":["a"]}]}}`:                  `"location":"body.flow.jobs[1].needs"`,
		`{"force":true,"flow":{"kind":"x","jobs":[{"name":"in","kind":"y","jobs":[{"kind":"b","delay":1}]}]}}`: "body.flow.jobs[0].jobs[0]",
		`{"force":true,"flow":{"kind":"x","jobs":[{"kind":"y","needs":[1],"jobs":[]}]}}`:                       "a flow needs nothing",
		`{"force":true,"flow":{"kind":"x","jobs":[{"name":"a","kind":"b"},{"name":"a","kind":"b"}]}}`:          "there twice",
		`{"force":true,"flow":{"kind":"x","priority":3,"jobs":[]}}`:                                            "the flow x is not run, and has none",
		`{"force":true,"flow":{"kind":"x","colour":"red","jobs":[]}}`:                                          "colour",
		`{"force":true,"flow":{"kind":"x","jobs":[{"kind":"b","unique":"until-ended"}]}}`:                      "only the flow as a whole has keys",
		`{"flow":{"kind":"x","jobs":[{"kind":"nobody"}]}}`:                                                     "no engine ever declared",
	} {
		if status, text := s.ask("POST", "/flows", body); status != 422 || !strings.Contains(string(text), want) {
			t.Errorf("%s gives %d %s, want %s", body, status, text, want)
		}
	}
	if status, text := s.ask("POST", "/flows", `{"force":true,"flow":{"kind":"x","jobs":[{"kind":"b","needs":[4711]}]}}`); status != 404 {
		t.Errorf("what needs a job that is not there gives %d %s", status, text)
	}
	if status, text := s.ask("POST", "/flows/4711/add", `{"force":true,"jobs":[{"kind":"b"}]}`); status != 404 {
		t.Errorf("adding to what is not there gives %d %s", status, text)
	}
	if after := len(get[ops.JobPage](s, 200, "GET", "/jobs", nil).Jobs); after != before {
		t.Errorf("%d jobs were stored", after-before)
	}
}

// What only an admin enqueues is not enqueued by others within a flow, and is written down.
func TestRestrictedKindsAreRestrictedInFlows(t *testing.T) {
	s := open(t)
	s.serve(api.New(s.store, api.Config{Restricted: []string{"sh"}}))
	const flow = `{"force":true,"flow":{"kind":"x","jobs":[{"kind":"y","jobs":[{"kind":"sh"}]}]}}`
	s.who = guard.Identity{Name: "ann", Role: guard.Operator}
	if status, text := s.ask("POST", "/flows", flow); status != 403 || !strings.Contains(string(text), "body.flow.jobs[0].jobs[0].kind") {
		t.Errorf("an operator gets %d %s", status, text)
	}
	s.who.Role = guard.Admin
	get[ops.EnqueuedFlow](s, 201, "POST", "/flows", flow)
	all := s.changes("")
	if len(all) != 2 || all[1].Operation != "flows enqueue" || all[1].Result != store.ChangeDone || !strings.Contains(string(all[1].Details), `"kinds":{"sh":1}`) {
		t.Errorf("written down is %+v", all)
	}
}
