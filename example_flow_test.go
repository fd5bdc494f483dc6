package stint_test

import (
	"context"
	"fmt"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/sqlite"
)

// Pages are counted by jobs of their own, and added up when all have been. Another job runs only
// if that fails, and one in any case.
func ExampleFlow() {
	count := stint.NewResultKind[string, int]("count")
	sum := stint.NewResultKind[struct{}, int]("sum")
	alarm := stint.NewKind[struct{}]("alarm")
	tidy := stint.NewKind[struct{}]("tidy")

	mux := stint.NewMux()
	stint.HandleResult(mux, count, func(_ context.Context, _ *stint.Job, text string) (int, error) {
		return len(text), nil
	})
	stint.HandleResult(mux, sum, func(ctx context.Context, _ *stint.Job, _ struct{}) (total int, err error) {
		for n, err := range count.Needed(ctx) {
			if err != nil {
				return 0, err
			}
			total += n
		}
		return total, nil
	})
	stint.Handle(mux, alarm, func(context.Context, *stint.Job, struct{}) error { return tell("there is no sum") })
	stint.Handle(mux, tidy, func(ctx context.Context, _ *stint.Job, _ struct{}) error {
		total, err := sum.FromFlow(ctx, "sum")
		if err != nil {
			return err
		}
		return tell("the sum is %d", total)
	})

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	db, err := sqlite.Open(ctx, sqlite.Memory)
	if err != nil {
		panic(err)
	}
	defer db.Close()

	f := stint.NewFlow("count-all")
	counts := count.Each(f, []string{"a", "bc", "def"})
	total := sum.Add(f, "sum", struct{}{}, stint.Needs(counts...))
	alarmed := alarm.Add(f, "alarm", struct{}{}, stint.NeedsFailure(total))
	tidy.Add(f, "tidy", struct{}{}, stint.NeedsEnd(total))

	client := stint.NewClient(db)
	id, err := f.Enqueue(ctx, client)
	if err != nil {
		panic(err)
	}
	e, err := engine.New(db, mux, engine.Config{})
	if err != nil {
		panic(err)
	}
	worked := make(chan error)
	go func() { worked <- e.Run(ctx) }()
	flow, err := client.Await(ctx, id)
	if err != nil {
		panic(err)
	}
	fmt.Println(flow.Kind, "has", flow.State)
	if job, err := client.Job(ctx, alarmed.ID()); err == nil {
		fmt.Println(job.Kind, "was", job.Attempts[0].Outcome)
	}
	stop()
	<-worked
	// Output:
	// the sum is 6
	// count-all has completed
	// alarm was skipped
}

// A handler adds jobs to the flow that its job is in: as many as it finds that there are to be. They
// have names, so that an attempt that comes again adds none twice.
func ExampleFlowFrom() {
	list := stint.NewKind[string]("list")
	hash := stint.NewKind[string]("hash")
	report := stint.NewKind[string]("report")

	mux := stint.NewMux()
	stint.Handle(mux, list, func(ctx context.Context, _ *stint.Job, dir string) error {
		f := stint.FlowFrom(ctx)
		var hashes []*stint.Node
		for _, file := range []string{"a", "b"} {
			hashes = append(hashes, hash.Add(f, "hash "+file, dir+"/"+file))
		}
		report.Add(f, "report", dir, stint.Needs(hashes...))
		_, err := f.Enqueue(ctx, stint.ClientFrom(ctx))
		return err
	})
}
