package stepjob_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/jobs/stepjob"
)

func Example() {
	// Where jobs are worked on: the operations, and the kind.
	ops := stepjob.NewOperations()
	ops.Add("report.build", stepjob.Func(func(ctx context.Context, in stepjob.Input, args struct {
		Month string `json:"month"`
	}) (map[string]string, error) {
		return map[string]string{"file": "/reports/" + args.Month + ".pdf"}, nil
	}))
	ops.Add("report.send", stepjob.Func(func(ctx context.Context, in stepjob.Input, args struct {
		To string `json:"to"`
	}) (string, error) {
		return fmt.Sprintf("sent %s to %s, attempt %d", in.Previous, args.To, in.Job.Attempt), nil
	}))
	mux := stint.NewMux()
	stepjob.Register(mux, ops)

	// Where they are made; with a client, Kind.Enqueue stores it.
	job, err := stepjob.Kind.New(stepjob.Args{Steps: []stepjob.Step{
		{Do: "report.build", Args: json.RawMessage(`{"month": "2026-03"}`)},
		{Do: "report.send", Args: json.RawMessage(`{"to": "sales"}`), Name: "tell sales"},
	}})
	if err != nil {
		fmt.Println(err)
	}

	// An engine calls the handler; so can a test.
	result, err := mux.Handler(job.Kind)(context.Background(), &stint.Job{ID: 1, Attempt: 1, Args: job.Args})
	fmt.Println(string(result), err)
	// Output:
	// {"steps":[{"name":"report.build","result":{"file":"/reports/2026-03.pdf"}},{"name":"tell sales","result":"sent {\"file\":\"/reports/2026-03.pdf\"} to sales, attempt 1"}]} <nil>
}

func ExampleOperations_Check() {
	ops := stepjob.NewOperations()
	ops.Add("mail.send", stepjob.Func(func(ctx context.Context, in stepjob.Input, args struct{ To string }) (any, error) {
		return nil, nil
	}))
	err := ops.Check(stepjob.Args{Steps: []stepjob.Step{{Do: "mail.sent"}}})
	fmt.Println(err)
	// Output: args.steps: step 1: there is no operation "mail.sent"; there are mail.send
}
