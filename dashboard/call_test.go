package dashboard_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// What a person enqueues by a page is written down. What a program enqueues is not,
// unless its kind is restricted.
func TestWhoEnqueuesByAPageIsInTheLogOfChanges(t *testing.T) {
	s := open(t)
	if err := s.store.Join(t.Context(), store.EngineInfo{Token: 7, Instance: "e", Host: "h", Slots: 1, TimeToLive: 1e9, Kinds: []string{"mail"}}, []stint.KindInfo{{Name: "mail"}}); err != nil {
		t.Fatal(err)
	}
	s.knock()
	s.says("Enqueued as", "/jobs/new", url.Values{"kind": {"mail"}, "args": {`{"card":4111}`}})
	if _, text := s.post("/jobs/new", url.Values{"kind": {"none"}, "args": {`{}`}}); !strings.Contains(text, "no engine ever declared") {
		t.Errorf("a kind that nobody declared is answered with %s", said(text))
	}
	changes, err := s.store.Changes(t.Context(), store.ChangeFilter{Operation: "jobs enqueue"})
	if err != nil || len(changes) != 2 {
		t.Fatalf("written down are %+v, %v", changes, err)
	}
	if c := changes[1]; c.By != "link" || c.Role != "admin" || c.Result != store.ChangeDone || string(c.Details) != `{"jobs":1,"kinds":{"mail":1}}` {
		t.Errorf("what a person enqueued is %+v, details %s", c, c.Details)
	}
	if c := changes[0]; c.Result != store.ChangeFailed {
		t.Errorf("what a person could not enqueue is %+v", c)
	}
}

func TestTheDocumentSaysWhereTheAPIIs(t *testing.T) {
	for path, want := range map[string]string{"": "/", "/ops/stint": "/ops/stint", "/ops/": "/ops"} {
		s := openAt(t, path)
		if path == "/ops/" {
			s.path = "/ops"
		}
		status, text := s.get("/api/v1/openapi.json")
		var doc struct {
			Servers []struct{ URL string }
			Paths   map[string]any
		}
		if err := json.Unmarshal([]byte(text), &doc); err != nil || status != http.StatusOK || len(doc.Servers) != 1 || doc.Servers[0].URL != want || doc.Paths["/api/v1/jobs"] == nil {
			t.Errorf("mounted at %q: %d, %v, servers %+v", path, status, err, doc.Servers)
		}
	}
}
