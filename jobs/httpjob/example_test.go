package httpjob_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/jobs/httpjob"
)

func Example() {
	// Where jobs are worked on:
	mux := stint.NewMux()
	httpjob.Register(mux, httpjob.Config{Timeout: 10 * time.Second})

	// Where they are made; with a client, Kind.Enqueue does this and stores
	// the job.
	job, err := httpjob.Kind.New(httpjob.Args{
		Method:  "POST",
		URL:     "https://example.com/hook",
		JSON:    json.RawMessage(`{"paid":true}`),
		Expect:  []int{200, 202},
		Timeout: httpjob.Duration(5 * time.Second),
	}, stint.Tag("customer:42"))
	fmt.Println(job.Kind, string(job.Args), err)
	// Output: http {"method":"POST","url":"https://example.com/hook","json":{"paid":true},"expect":[200,202],"timeout":"5s"} <nil>
}

func ExampleHandler() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no hook for job "+r.Header.Get("Stint-Job"), http.StatusNotFound)
	}))
	defer server.Close()

	// An engine calls the handler; so can a test.
	send := httpjob.Handler(httpjob.Config{AllowPrivate: true})
	args, _ := json.Marshal(httpjob.Args{URL: server.URL})
	_, err := send(context.Background(), &stint.Job{ID: 7, Attempt: 1, Args: args})
	fmt.Println(err)

	// The server of this example has a private address.
	_, err = httpjob.Handler(httpjob.Config{})(context.Background(), &stint.Job{ID: 7, Attempt: 1, Args: args})
	fmt.Println(err != nil)
	// Output:
	// status 404 Not Found: no hook for job 7
	// true
}
