package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/api"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/gateway"
	"github.com/stint-go/stint/store"
)

// atWork is a site whose gateway has a running engine.
func atWork(t *testing.T) *site {
	s := open(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.host.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	s.who = guard.Identity{Name: "thumbs", Role: guard.Worker}
	return s
}

func TestAWorkerOverHTTP(t *testing.T) {
	s := atWork(t)
	id, err := stint.NewClient(s.store).EnqueueMany(t.Context(), []stint.NewJob{{Kind: "resize", Args: json.RawMessage(`{"path":"a.png"}`), Metadata: json.RawMessage(`{"m":1}`)}, {Kind: "resize"}})
	if err != nil {
		t.Fatal(err)
	}
	joined := get[gateway.Joined](s, 201, "POST", "/workers", `{"kinds":["resize",{"name":"mail","queue":"mail","retry":"fixed:2:1s","timeout":"30s","max_losses":0}],"slots":2,"time_to_live":"20s","instance":"w1"}`)
	if joined.Worker == "" || joined.Instance != "w1" || joined.TimeToLive != 20e9 || joined.BeatEvery != 5e9 {
		t.Errorf("joined as %+v", joined)
	}
	at := "/workers/" + joined.Worker
	news := get[gateway.News](s, 200, "POST", at+"/claim", `{"max":1,"wait":"10s"}`)
	if len(news.Jobs) != 1 || news.Jobs[0].Kind != "resize" || news.Cancel == nil || news.Drain {
		t.Fatalf("claimed %+v", news)
	}
	first := news.Jobs[0]
	step := get[struct{ Value json.RawMessage }](s, 200, "POST", at+"/step", `{"receipt":"`+first.Receipt+`","name":"one","value":{"x":[1]}}`)
	if string(step.Value) != `{"x":[1]}` {
		t.Errorf("the step is %s", step.Value)
	}
	get[gateway.News](s, 200, "POST", at+"/beat", `{"running":[{"receipt":"`+first.Receipt+`","progress":{"fraction":0.5,"text":"half"},"log":["a line"]}]}`)
	wait := get[struct{ Suspended bool }](s, 200, "POST", at+"/sleep", `{"receipt":"`+first.Receipt+`","name":"night","for":"8h"}`)
	if !wait.Suspended {
		t.Error("a sleep of eight hours did not end the run")
	}
	finished := get[struct {
		Results []gateway.Recorded
		gateway.News
	}](s, 200, "POST", at+"/finish", `{"results":[{"receipt":"?","result":1}],"claim":{"max":1,"wait":"10s"}}`)
	if len(finished.Results) != 1 || finished.Results[0].Status != gateway.Invalid || len(finished.Jobs) != 1 {
		t.Fatalf("finished %+v", finished)
	}
	second := finished.Jobs[0].Receipt
	wait = get[struct{ Suspended bool }](s, 200, "POST", at+"/await", `{"receipt":"`+second+`","name":"paid","timeout":"24h"}`)
	if !wait.Suspended {
		t.Error("a wait for a signal did not end the run")
	}
	for _, job := range id {
		if got, err := s.store.Job(t.Context(), job); err != nil || got.State != stint.Scheduled && got.State != stint.Blocked {
			t.Errorf("a job that waits is %s, %v", got.State, err)
		}
	}
	for range 2 {
		if status := s.leave(at); status != 204 {
			t.Errorf("leaving gives %d", status)
		}
	}
	if status, text := s.ask("POST", at+"/claim", `{"max":1}`); status != 410 || !strings.Contains(string(text), "urn:stint:problem:lost") {
		t.Errorf("a claim of a worker that left gives %d %s", status, text)
	}
	if err := s.store.Join(t.Context(), store.EngineInfo{Token: 8, Instance: "of another gateway", BootID: store.WorkerBoot, TimeToLive: time.Minute, Slots: 1}, nil); err != nil {
		t.Fatal(err)
	}
	if status, text := s.ask("POST", "/workers/8/claim", `{"max":1}`); status != 404 || !strings.Contains(string(text), "urn:stint:problem:elsewhere") {
		t.Errorf("a claim of a worker of another gateway gives %d %s", status, text)
	}
	if status, text := s.ask("POST", "/workers/"+fmt.Sprint(int64(s.host.Status().Engine))+"/beat", `{"running":[],"moved_for":"1h"}`); status != 410 {
		t.Errorf("a heartbeat in the name of an engine that is no worker gives %d %s", status, text)
	}
	if status, text := s.ask("POST", "/workers/7/beat", `{"running":[]}`); status != 410 {
		t.Errorf("a heartbeat of one that the roster does not have gives %d %s", status, text)
	}
	for path, body := range map[string]string{
		"": `{"kinds":["k"],"slots":1,"time_to_live":"soon"}`, " ": `{"kinds":[{"name":"k","retry":"often"}],"slots":1}`, "  ": `{"kinds":[{"name":"k","timeout":"-"}],"slots":1}`,
		"   ": `{"kinds":[],"slots":1}`, "    ": `{"kinds":[7],"slots":1}`, "/7/claim": `{"max":1,"wait":"1 day"}`, "/7/finish": `{"results":[],"claim":{"max":1,"wait":"x"}}`,
		"/7/sleep": `{"receipt":"x","name":"n","for":"x"}`, "/7/await": `{"receipt":"x","name":"n","timeout":"x"}`, "/x/step": `{"receipt":"x","name":"n"}`, "/7/beat": `{"running":[],"moved_for":"x"}`,
	} {
		if status, text := s.ask("POST", "/workers"+strings.TrimSpace(path), body); status != 422 {
			t.Errorf("%s %s gives %d %s", path, body, status, text)
		}
	}
}

func (s *site) leave(at string) int {
	req, err := http.NewRequestWithContext(s.Context(), "DELETE", s.server.URL+api.Prefix+at, nil)
	if err != nil {
		s.Fatal(err)
	}
	res, err := s.server.Client().Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

func TestTheRoleWorkerIsForWorkAlone(t *testing.T) {
	s := atWork(t)
	const joining = `{"kinds":["k"],"slots":1}`
	for role, want := range map[guard.Role]int{guard.Nobody: 403, guard.Worker: 201, guard.Viewer: 403, guard.Operator: 201, guard.Admin: 201} {
		s.who.Role = role
		if status, text := s.ask("POST", "/workers", joining); status != want {
			t.Errorf("%s joins: %d %s", role, status, text)
		}
	}
	s.who = guard.Identity{Name: "thumbs", Role: guard.Worker, Kinds: []string{"other"}}
	if status, text := s.ask("POST", "/workers", joining); status != 403 || !strings.Contains(string(text), "the token is not for the kind k") {
		t.Errorf("a kind that the token is not for: %d %s", status, text)
	}
	if status, text := s.ask("GET", "/jobs", nil); status != 403 {
		t.Errorf("a worker lists jobs: %d %s", status, text)
	}
	if status, text := s.ask("POST", "/jobs", `{"jobs":[{"kind":"k"}]}`); status != 403 {
		t.Errorf("a worker enqueues: %d %s", status, text)
	}
}
