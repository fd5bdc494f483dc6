package stint_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/sqlite"
)

func TestADescriptionIsKeptInTheMetadata(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	client := stint.NewClient(store)
	kind := stint.KindInfo{Name: "k"}
	meta := func(text string) stint.Option { return stint.Metadata(json.RawMessage(text)) }
	for name, c := range map[string]struct {
		options        []stint.Option
		metadata, text string
	}{
		"nothing":              {nil, ``, ""},
		"alone":                {[]stint.Option{stint.Description("May & June")}, `{"description":"May \u0026 June"}`, "May & June"},
		"before metadata":      {[]stint.Option{stint.Description("a"), meta(`{"n":98765432109876543210}`)}, `{"description":"a","n":98765432109876543210}`, "a"},
		"after metadata":       {[]stint.Option{meta(`{"n":1}`), stint.Description("a")}, `{"description":"a","n":1}`, "a"},
		"instead of another":   {[]stint.Option{meta(`{"description":"b"}`), stint.Description("a")}, `{"description":"a"}`, "a"},
		"by the metadata":      {[]stint.Option{meta(`{"description":"b"}`)}, `{"description":"b"}`, "b"},
		"of another type":      {[]stint.Option{meta(`{"description":3}`)}, `{"description":3}`, ""},
		"beside null metadata": {[]stint.Option{meta(`null`), stint.Description("a")}, `{"description":"a"}`, "a"},
	} {
		id, err := client.Enqueue(t.Context(), kind.Job(nil, c.options...))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		j, err := client.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if string(j.Metadata) != c.metadata {
			t.Errorf("%s: the metadata are %s, want %s", name, j.Metadata, c.metadata)
		}
		if j.Description() != c.text || (&stint.Job{Metadata: j.Metadata}).Description() != c.text {
			t.Errorf("%s: the description is %q, want %q", name, j.Description(), c.text)
		}
	}
	for text, options := range map[string][]stint.Option{
		"description": {stint.Description("two\nlines")},
		"metadata":    {meta(`[]`), stint.Description("a")},
	} {
		if _, err := client.Enqueue(t.Context(), kind.Job(nil, options...)); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("of %s it says %v", text, err)
		}
	}
}
