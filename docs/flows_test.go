package docs

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/stinttest"
)

type (
	FetchArgs struct{ Day string }
	PageArgs  struct{ URL string }
	Booking   struct{ What, Trip string }
)

var (
	Fetch = stint.NewResultKind[FetchArgs, []string]("fetch")
	Page  = stint.NewResultKind[PageArgs, int]("page")
	Sum   = stint.NewKind[struct{}]("sum")
	Alarm = stint.NewKind[string]("alarm")
	Tidy  = stint.NewKind[string]("tidy")
)

var (
	Book    = stint.NewKind[Booking]("book")
	Undo    = stint.NewKind[Booking]("undo")
	Nightly = stint.NewKind[struct{}]("nightly")
	Part    = stint.NewKind[string]("part")
	Region  = stint.NewKind[string]("region")
	Night   = stint.NewKind[string]("report")
)

func pageHandler(_ context.Context, _ *stint.Job, in PageArgs) (int, error) { return len(in.URL), nil }

// flows.md
func TestFlows(t *testing.T) {
	mux := stint.NewMux()
	stint.HandleResult(mux, Page, pageHandler)
	handles(mux, Alarm)
	handles(mux, Tidy)
	saved := 0
	save := func(_ context.Context, total int) error {
		saved = total
		return nil
	}
	stint.Handle(mux, Sum, func(ctx context.Context, job *stint.Job, _ struct{}) error {
		total := 0
		for n, err := range Page.Needed(ctx) { // of each page that this job needs
			if err != nil {
				return err // stint.ErrNoResult: it did not complete
			}
			total += n
		}
		return save(ctx, total)
	})
	w := stinttest.New(t, mux)
	ctx, client, day, args := t.Context(), w.Client(), "2026-11-30", []PageArgs{{"a"}, {"bb"}}

	f := stint.NewFlow("import", stint.Correlation("import "+day))
	pages := Page.Each(f, args)                                 // fan-out: a job for each of the arguments
	sum := Sum.Add(f, "sum", struct{}{}, stint.Needs(pages...)) // join: when all of them have completed
	Alarm.Add(f, "alarm", "import", stint.NeedsFailure(sum))    // only if there is no sum
	Tidy.Add(f, "tidy", day, stint.NeedsEnd(pages...))          // however the pages ended
	id, err := f.Enqueue(ctx, client)                           // or client.With(postgres.Tx(tx))

	must(t, err)
	ran(t, w, "sum", 1)
	if job, err := client.Job(ctx, id); err != nil || job.State != stint.Completed || saved != 3 {
		t.Errorf("the flow is %+v, %v; the sum is %d", job, err, saved)
	}
}

func TestAFlowThatGrows(t *testing.T) {
	list := func(context.Context, FetchArgs) []string { return []string{"a", "bb", "ccc"} }
	mux := stint.NewMux()
	stint.HandleResult(mux, Page, pageHandler)
	found := 0
	stint.Handle(mux, Sum, func(ctx context.Context, job *stint.Job, _ struct{}) error {
		urls, err := Fetch.FromFlow(ctx, "fetch") // of the job that has this name in the flow
		found = len(urls)
		return err
	})
	stint.HandleResult(mux, Fetch, func(ctx context.Context, job *stint.Job, a FetchArgs) ([]string, error) {
		f := stint.FlowFrom(ctx)
		urls := list(ctx, a)
		var pages []*stint.Node
		for i, url := range urls {
			pages = append(pages, Page.Add(f, fmt.Sprintf("page %d", i), PageArgs{url}))
		}
		Sum.Add(f, "sum", struct{}{}, stint.Needs(pages...))
		_, err := f.Enqueue(ctx, stint.ClientFrom(ctx)) // all of them or none
		return urls, err
	})
	w := stinttest.New(t, mux)
	f := stint.NewFlow("import")
	Fetch.Add(f, "fetch", FetchArgs{"monday"})
	_, err := f.Enqueue(t.Context(), w.Client())
	must(t, err)
	report := w.Drain(stinttest.FailOnError())
	if len(report.Of("page")) != 3 || len(report.Of("sum")) != 1 || found != 3 {
		t.Errorf("it ran\n%s", report)
	}
}

func TestAFlowWithinAFlow(t *testing.T) {
	day, customer := "monday", "ada"
	mux := stint.NewMux()
	stint.HandleResult(mux, Fetch, func(context.Context, *stint.Job, FetchArgs) ([]string, error) { return nil, nil })
	handles(mux, Sum)
	w := stinttest.New(t, mux)

	f := stint.NewFlow("import")
	in := f.Flow("pages", "import-pages")                 // a flow within it: a name, and its kind
	Fetch.Add(in, "fetch", FetchArgs{day})                // adds pages to the flow that it is in
	Sum.Add(f, "sum", struct{}{}, stint.Needs(in.Node())) // begins when all of them have completed

	_, err := f.Enqueue(t.Context(), w.Client())
	must(t, err)
	ran(t, w, "sum", 1)

	daily := stint.NewFlow("import", stint.IdempotencyKey("import "+day))                        // one for each day
	alone := stint.NewFlow("import", stint.UniqueUntilEnded())                                   // one of this name that is open
	each := stint.NewFlow("import", stint.UniqueUntilEnded(stint.Across("import of "+customer))) // one of each customer

	for _, f := range []*stint.Flow{daily, alone, each} {
		Sum.Add(f, "sum", struct{}{})
		first, err := f.Enqueue(t.Context(), w.Client())
		must(t, err)
		if first == 0 {
			t.Error("it has no id")
		}
	}
}

func TestATripIsUndone(t *testing.T) {
	mux := stint.NewMux()
	var undone []string
	stint.Handle(mux, Book, func(_ context.Context, _ *stint.Job, b Booking) error {
		if b.What == "car" {
			return stint.NoRetry(fmt.Errorf("no car is left"))
		}
		return nil
	})
	stint.Handle(mux, Undo, func(_ context.Context, _ *stint.Job, b Booking) error {
		undone = append(undone, b.What)
		return nil
	})
	w := stinttest.New(t, mux)
	trip := "rome"

	f := stint.NewFlow("trip")
	flight := Book.Add(f, "flight", Booking{"flight", trip})
	hotel := Book.Add(f, "hotel", Booking{"hotel", trip}, stint.Needs(flight))
	car := Book.Add(f, "car", Booking{"car", trip}, stint.Needs(hotel))
	Undo.Add(f, "undo hotel", Booking{"hotel", trip}, stint.Needs(hotel), stint.NeedsFailure(car))
	Undo.Add(f, "undo flight", Booking{"flight", trip}, stint.Needs(flight), stint.NeedsFailure(car))

	_, err := f.Enqueue(t.Context(), w.Client())
	must(t, err)
	w.Drain()
	if slices.Sort(undone); !slices.Equal(undone, []string{"flight", "hotel"}) {
		t.Errorf("undone is %q", undone)
	}
}

func TestNightly(t *testing.T) {
	allRegions, partsOf := []string{"east", "west"}, func(r string) []string { return []string{r + " 1", r + " 2"} }
	mux := stint.NewMux()
	handles(mux, Part)
	handles(mux, Region)
	handles(mux, Night)
	stint.Handle(mux, Nightly, func(ctx context.Context, job *stint.Job, _ struct{}) error {
		night := job.Due.Format(time.DateOnly)
		f := stint.NewFlow("reports", stint.IdempotencyKey("reports "+night), stint.Correlation("reports "+night))
		var regions []*stint.Node
		for _, r := range allRegions {
			in := f.Flow(r, "reports-of-region")
			parts := Part.Each(in, partsOf(r))
			Region.Add(in, "report", r, stint.NeedsEnd(parts...)) // also without those that failed
			regions = append(regions, in.Node())
		}
		Night.Add(f, "report", night, stint.NeedsEnd(regions...))
		_, err := f.Enqueue(ctx, stint.ClientFrom(ctx))
		return err
	})
	w := stinttest.New(t, mux)
	_, err := Nightly.Enqueue(t.Context(), w.Client(), struct{}{})
	must(t, err)
	report := w.Drain(stinttest.FailOnError())
	if len(report.Of("part")) != 4 || len(report.Of("region")) != 2 || len(report.Of("report")) != 1 {
		t.Errorf("it ran\n%s", report)
	}
}
