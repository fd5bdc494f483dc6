package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// start runs the program until stop is called, and returns where it listens.
func start(t *testing.T, db string, work bool) (url string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, db, listener, work) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return "http://" + listener.Addr().String(), stop
}

// ask makes a request and decodes its answer.
func ask(t *testing.T, method, url, body string, into any) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		t.Errorf("%s %s: %v", method, url, err)
	}
	return answer.StatusCode
}

func databases(t *testing.T, f func(t *testing.T, db string)) {
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); f(t, filepath.Join(t.TempDir(), "orders.db")) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); f(t, pgtest.New(t)) })
}

func TestThereAreAsManyJobsAsOrdersThoughTransactionsFail(t *testing.T) {
	databases(t, func(t *testing.T, db string) {
		const stock, customers = 20, 30 // there are 20 lamps
		front, stopFront := start(t, db, false)
		var created, refused sync.Map
		var all sync.WaitGroup
		for i := range customers {
			all.Go(func() {
				var o Order
				switch status := ask(t, "POST", front+"/orders", `{"item":"lamp","quantity":1}`, &o); status {
				case http.StatusCreated:
					created.Store(o.ID, o)
				case http.StatusConflict:
					refused.Store(i, true)
				default:
					t.Errorf("status %d", status)
				}
			})
			all.Go(func() {
				var p problem
				if status := ask(t, "POST", front+"/orders", `{"item":"unicorn","quantity":1}`, &p); status != http.StatusUnprocessableEntity || p.Error != errNoItem.Error() {
					t.Errorf("status %d, %+v", status, p)
				}
			})
		}
		all.Wait()

		s, err := open(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var orders, left int
		if err := s.db.QueryRowContext(t.Context(), `select count(*), (select quantity from stock where item = 'lamp') from orders`).Scan(&orders, &left); err != nil {
			t.Fatal(err)
		}
		jobs, err := s.store.Jobs(t.Context(), store.Filter{Kind: "ship", Limit: 1000})
		if err != nil || orders != stock || len(jobs) != stock || size(&created) != stock || size(&refused) != customers-stock || left != 0 {
			t.Errorf("%d orders, %d jobs, %d created, %d refused, %d left in stock; %v", orders, len(jobs), size(&created), size(&refused), left, err)
		}

		// Another process ships them.
		_, stopBack := start(t, db, true)
		created.Range(func(id, _ any) bool {
			url := fmt.Sprintf("%s/orders/%d", front, id)
			var o Order
			for until := time.Now().Add(30 * time.Second); !o.Shipped || o.State != stint.Completed; time.Sleep(5 * time.Millisecond) {
				if status := ask(t, "GET", url, "", &o); status != http.StatusOK || time.Now().After(until) {
					t.Errorf("order %v: status %d, %+v", id, status, o)
					return false
				}
			}
			return true
		})
		stopBack()
		stopFront()
		var twice int
		if err := s.db.QueryRowContext(t.Context(), `select count(*) from orders where shipped <> 1`).Scan(&twice); err != nil || twice != 0 {
			t.Errorf("%d orders were not shipped once, %v", twice, err)
		}
	})
}

func size(m *sync.Map) (n int) {
	m.Range(func(_, _ any) bool { n++; return true })
	return n
}

func TestWhatIsNoOrderIsRefused(t *testing.T) {
	url, _ := start(t, filepath.Join(t.TempDir(), "orders.db"), true)
	for body, want := range map[string]int{
		`{"item":"book","quantity":0}`:           http.StatusUnprocessableEntity,
		`{"item":"book","quantity":"two"}`:       http.StatusBadRequest,
		`{"item":"book","quantity":1,"price":0}`: http.StatusBadRequest,
		`{"item":"lamp","quantity":21}`:          http.StatusConflict,
	} {
		var p problem
		if status := ask(t, "POST", url+"/orders", body, &p); status != want || p.Error == "" {
			t.Errorf("%s: status %d, %+v", body, status, p)
		}
	}
	for _, id := range []string{"1", "none"} {
		var p problem
		if status := ask(t, "GET", url+"/orders/"+id, "", &p); status != http.StatusNotFound {
			t.Errorf("order %s: status %d", id, status)
		}
	}
}
