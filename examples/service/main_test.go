package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint/stinttest"
)

// post sends an order and returns the status of the answer.
func post(t *testing.T, s *service, body string) int {
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", strings.NewReader(body)))
	return answer.Code
}

func TestAnOrderIsShipped(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), databaseOf(t)) // the URL of an empty database for the test
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s, store, err := open(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	w := stinttest.On(t, store, s.mux())

	if status := post(t, s, `{"item": ""}`); status != http.StatusBadRequest {
		t.Errorf("an order of nothing is answered with %d", status)
	}
	stinttest.NotEnqueued(t, store, Ship)

	if status := post(t, s, `{"item": "book"}`); status != http.StatusCreated {
		t.Errorf("an order is answered with %d", status)
	}
	stinttest.Enqueued(t, store, Ship, stinttest.Where(func(o Order) bool { return o.Item == "book" && o.ID == 1 }))

	w.Drain(stinttest.FailOnError()) // performs the job here, by the real engine
	var shipped int
	if err := pool.QueryRow(t.Context(), `select count(*) from orders where shipped is not null`).Scan(&shipped); err != nil || shipped != 1 {
		t.Errorf("%d orders are shipped, %v", shipped, err)
	}
}
