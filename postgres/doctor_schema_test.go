package postgres

import (
	"context"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/report"
)

var update = flag.Bool("update", false, "write the manifest of the schema anew")

// listed is the manifest of what a store has.
func listed(t testing.TB, s *Store) string {
	t.Helper()
	var text strings.Builder
	x := &examination{Store: s, normal: usual, until: time.Now().Add(time.Minute)}
	x.normal.look = time.Minute // whatever else the machine does
	must(t, x.put(t.Context(), question{ask: func(x *examination, ctx context.Context, tx pgx.Tx) error {
		all, err := x.objects(ctx, tx)
		for _, o := range all {
			text.WriteString(o.line())
		}
		return err
	}}))
	return text.String()
}

// The definitions read alike on every major version and whatever the schema's
// name is: what the manifest says differs only where somebody changed something.
func TestTheManifestIsWhatAFreshInstallationHas(t *testing.T) {
	pgtest.Each(t, func(t *testing.T, server *pgtest.Server) {
		got := listed(t, openStore(t, installed.On(t, server)))
		if *update {
			must(t, os.WriteFile("schema/objects.txt", []byte(got), 0o644))
			return
		}
		if diff := cmp.Diff(manifest, got); diff != "" {
			t.Errorf("the schema was edited, or reads differently here; make schema-page writes the manifest anew (-manifest +installed):\n%s", diff)
		}
		there := openStore(t, installed.On(t, server), Config{Schema: elsewhereName})
		if diff := cmp.Diff(got, listed(t, there)); diff != "" {
			t.Errorf("in another schema (-stint +%s):\n%s", elsewhereName, diff)
		}
	})
}

// What is set for a database or a role changes how the server writes definitions;
// it is no change of the schema. A schema that is installed under such settings is the same one.
func TestSettingsOfTheDatabaseAreNoDamageOfTheSchema(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"intervalstyle", "iso_8601"}, {"intervalstyle", "sql_standard"}, {"intervalstyle", "postgres_verbose"},
		{"standard_conforming_strings", "off"}, {"backslash_quote", "off"}, {"quote_all_identifiers", "on"},
		{"search_path", "public"}, {"search_path", ""},
		{"datestyle", "German, YMD"}, {"datestyle", "SQL, DMY"}, {"timezone", "Asia/Kathmandu"},
		{"extra_float_digits", "-15"}, {"bytea_output", "escape"}, {"client_encoding", "LATIN1"}, {"array_nulls", "off"},
		{"xmlbinary", "hex"}, {"default_toast_compression", "pglz"}, {"lc_messages", "C"}, {"check_function_bodies", "off"},
	} {
		t.Run(c[0]+"="+c[1], func(t *testing.T) {
			for how, url := range map[string]string{"installed before": installed.New(t), "installed under it": pgtest.New(t)} {
				must(t, setDefault(t.Context(), url, c[0], c[1]))
				s := openStore(t, url)
				signs, err := (&examination{Store: s, normal: usual}).run(t.Context())
				must(t, err)
				for _, f := range signs.Findings {
					if strings.HasPrefix(f.Code, "schema_") || strings.HasPrefix(f.Code, "foreign_") || f.Code == report.NotChecked("", "", "").Code {
						t.Errorf("%s: found is %+v", how, f)
					}
				}
			}
		})
	}
}
