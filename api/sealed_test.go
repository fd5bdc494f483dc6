package api_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/storetest"
)

// Who has no key stores nothing in clear that is to be sealed, however that is asked for.
func TestTheJobsOfASealedKindAreTakenSealedOnly(t *testing.T) {
	s := open(t)
	w := storetest.NewWorker(t, s.store)
	kinds := []stint.KindInfo{{Name: "whole", Sealed: []string{""}}, {Name: "parts", Sealed: []string{"/iban"}}}
	if err := s.store.Join(t.Context(), w.Info, kinds); err != nil {
		t.Fatal(err)
	}
	listed := items[stint.KindInfo](s, 200, "GET", "/kinds", nil)
	for _, k := range kinds {
		if !slices.ContainsFunc(listed, func(l stint.KindInfo) bool { return l.Name == k.Name && slices.Equal(l.Sealed, k.Sealed) }) {
			t.Errorf("the kinds are listed as %+v", listed)
		}
	}
	before := len(get[ops.JobPage](s, 200, "GET", "/jobs", nil).Jobs)
	const sealed = `{"$sealed":{"c":"AAAA","k":"1"}}`
	for _, job := range []string{`{"kind":"whole","args":{"iban":"CH93"}}`, `{"kind":"parts","args":{"iban":"CH93"}}`} {
		for path, body := range map[string]string{
			"/jobs": `{"jobs":[` + job + `],"force":true}`, "/jobs ": `{"jobs":[` + job + `],"exact":true}`,
			"/flows": `{"flow":{"kind":"x","jobs":[` + job + `]}}`,
		} {
			if status, text := s.ask("POST", strings.TrimSpace(path), body); status != 422 || !strings.Contains(string(text), "is sealed") || strings.Contains(string(text), "CH93") {
				t.Errorf("%s %s gives %d %s", path, body, status, text)
			}
		}
		if status, text := s.ask("PUT", "/schedules/s", `{"recurrence":"every 1h","job":`+job+`}`); status != 422 || !strings.Contains(string(text), "is sealed") {
			t.Errorf("a schedule of %s gives %d %s", job, status, text)
		}
	}
	if after := len(get[ops.JobPage](s, 200, "GET", "/jobs", nil).Jobs); after != before {
		t.Errorf("%d jobs were stored", after-before)
	}
	for _, job := range []string{`{"kind":"whole","args":` + sealed + `}`, `{"kind":"whole"}`, `{"kind":"parts","args":{"iban":` + sealed + `,"n":1}}`, `{"kind":"parts","args":{"n":1}}`} {
		if status, text := s.ask("POST", "/jobs", `{"jobs":[`+job+`]}`); status != 200 && status != 201 {
			t.Errorf("%s gives %d %s", job, status, text)
		}
	}
	if status, text := s.ask("PUT", "/schedules/s", `{"recurrence":"every 1h","job":{"kind":"whole"}}`); status != 200 {
		t.Errorf("a schedule without arguments gives %d %s", status, text)
	}
}
