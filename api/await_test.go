package api_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/engine"
)

func TestARequestWaitsForTheEndOfAJob(t *testing.T) {
	s := open(t)
	kind := stint.NewResultKind[int, string]("secretive")
	mux := stint.NewMux()
	stint.HandleResult(mux, kind, func(context.Context, *stint.Job, int) (string, error) { return "the result", nil })
	e, err := engine.New(s.store, mux, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	id, err := kind.Enqueue(t.Context(), stint.NewClient(s.store), 1)
	if err != nil {
		t.Fatal(err)
	}
	path := "/jobs/" + id.String()
	show := func(wait string) (j view.Job) {
		t.Helper()
		status, body := s.ask("GET", path+wait, nil)
		if err := json.Unmarshal(body, &j); status != 200 || err != nil {
			t.Fatalf("it answers %d %s", status, body)
		}
		return j
	}
	began := time.Now()
	if j, took := show("?wait=300ms"), time.Since(began); j.State != stint.Available || took < 300*time.Millisecond {
		t.Errorf("after %v it is %s", took, j.State)
	}
	for _, wait := range []string{"61s", "-1s", "soon", "1"} {
		if status, body := s.ask("GET", path+"?wait="+wait, nil); status != 422 {
			t.Errorf("a wait of %s is answered with %d %s", wait, status, body)
		}
	}
	if status, _ := s.ask("GET", "/jobs/99?wait=1m", nil); status != 404 {
		t.Errorf("to wait for none is answered with %d", status)
	}
	time.AfterFunc(200*time.Millisecond, func() {
		if _, err := e.RunReady(context.Background(), nil); err != nil {
			t.Error(err)
		}
	})
	began = time.Now()
	if j, took := show("?wait=1m"), time.Since(began); j.State != stint.Completed || string(j.Attempts[0].Result) != `"the result"` || took > 30*time.Second {
		t.Errorf("after %v it is %+v", took, j.JobInfo)
	}
	s.who = guard.Identity{Role: guard.Viewer}
	if j := show("?wait=1s"); j.Attempts[0].Result != nil || string(j.Args) != "null" {
		t.Errorf("a viewer is shown %+v", j.JobInfo)
	}
}
