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
