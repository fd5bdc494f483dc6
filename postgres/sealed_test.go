package postgres

import (
	"strings"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/storetest"
)

// A producer without the key stores nothing in clear that is to be sealed.
func TestSQLTakesTheJobsOfASealedKindSealedOnly(t *testing.T) {
	s := newStore(t)
	w := storetest.NewWorker(t, s)
	must(t, s.Join(t.Context(), w.Info, []stint.KindInfo{{Name: "whole", Sealed: []string{""}}, {Name: "parts", Sealed: []string{"/to/0/iban", "/a~1b"}}, {Name: "open"}}))
	const sealed = `{"$sealed": {"c": "AAAA", "k": "1"}}`
	for _, c := range []struct{ kind, args, says string }{
		{"whole", `{"iban": 1}`, ""}, {"whole", `{"$sealed": {"k": "1"}}`, ""}, {"whole", `"$sealed"`, ""}, {"whole", `{"$sealed": {"c": "AAAA", "k": "1"}, "iban": 1}`, ""}, {"whole", `[` + sealed + `]`, ""},
		{"parts", `{"to": [{"iban": "CH93"}]}`, "at /to/0/iban"}, {"parts", `{"a/b": null}`, "at /a~1b"}, {"parts", `{"to": [{"iban": ` + sealed + `}], "a/b": 2}`, "at /a~1b"},
	} {
		for _, call := range []string{
			`select stint.enqueue($1, $2::text::jsonb)`,
			`select stint.enqueue_flow(jsonb_build_object('kind', 'f', 'jobs', jsonb_build_array(jsonb_build_object('kind', $1::text, 'args', $2::text::jsonb))))`,
		} {
			_, err := s.pool.Exec(t.Context(), call, c.kind, c.args)
			if err == nil || !strings.Contains(err.Error(), "the kind '"+c.kind+"' is sealed, and its arguments are in clear") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s with %s %s gives %v", call, c.kind, c.args, err)
			}
		}
	}
	must(t, (&bench{t, s, nil}).count(0))
	for kind, args := range map[string]string{"whole": sealed, "parts": `{"to": [{"iban": ` + sealed + `, "name": "Ann"}, {"iban": 1}]}`, "open": `{"iban": 1}`} {
		value[stint.ID](t, s.pool, `select stint.enqueue($1, $2::text::jsonb)`, kind, args)
	}
	value[stint.ID](t, s.pool, `select stint.enqueue('whole')`)
	must(t, (&bench{t, s, nil}).count(4))
}
