package remote_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stint-go/stint/dashboard"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/postgres"
)

func TestADatabaseThatIsAwayIsNoFaultOfTheServer(t *testing.T) {
	t.Parallel()
	db := pgtest.Start(t, pgtest.Options{})
	store, err := postgres.Open(t.Context(), db.New(t))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	board, err := dashboard.New(store, dashboard.Config{Guard: guard.Config{Stranger: guard.Admin}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(board)
	defer server.Close()
	db.Stop(pgtest.Immediate)
	defer db.Start()
	for _, path := range []string{"/jobs/1", "/queues", "/api/v1/queues", "/api/v1/jobs/1", "/readyz"} {
		answer, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "does not answer") {
			t.Errorf("%s answers %s: %.300s (%v)", path, answer.Status, text, err)
		}
	}
}
