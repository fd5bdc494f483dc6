// Reports makes a report each night out of those of regions, and these out of the figures of
// their shops.
//
//	go run ./examples/reports -now
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
)

// ShopNight is a shop in a night, RegionNight a region.
type (
	ShopNight   struct{ Shop, Night string }
	RegionNight struct{ Region, Night string }
)

// Sales are those of a region, and Missing how many of its shops have told none.
type Sales struct {
	Region         string
	Total, Missing int
}

var (
	Nightly = stint.NewKind[struct{}]("nightly", stint.Retry(retry.Exponential(10, time.Second)))
	Shop    = stint.NewResultKind[ShopNight, int]("shop", stint.Retry(retry.Exponential(5, time.Minute)))
	Region  = stint.NewResultKind[RegionNight, Sales]("region")
	Report  = stint.NewKind[string]("report", stint.Retry(retry.Exponential(10, time.Second)))
)

// chain is the shops by their regions, and how to ask and tell them.
type chain struct {
	regions []string
	shops   map[string][]string
	sales   func(ctx context.Context, s ShopNight) (int, error)
	publish func(ctx context.Context, night string, all []Sales) error
}

func (c chain) handlers() *stint.Mux {
	mux := stint.NewMux()
	mux.Schedule(Nightly.Schedule("nightly", cron.MustParse("30 2 * * *"), struct{}{}, stint.Zone("Europe/Berlin")))
	stint.Handle(mux, Nightly, c.start)
	stint.HandleResult(mux, Shop, func(ctx context.Context, _ *stint.Job, s ShopNight) (int, error) { return c.sales(ctx, s) })
	stint.HandleResult(mux, Region, sum)
	stint.Handle(mux, Report, func(ctx context.Context, _ *stint.Job, night string) error {
		var all []Sales
		for sales, err := range Region.Needed(ctx) {
			if err != nil {
				return err
			}
			all = append(all, sales)
		}
		slices.SortFunc(all, func(a, b Sales) int { return strings.Compare(a.Region, b.Region) })
		return c.publish(ctx, night, all)
	})
	return mux
}

// start enqueues the flow of a night, once, however often its job runs.
func (c chain) start(ctx context.Context, job *stint.Job, _ struct{}) error {
	night := job.Due.UTC().Format(time.DateOnly) // of the occurrence, also if the job runs a day late
	f := stint.NewFlow("reports", stint.IdempotencyKey("reports "+night), stint.Correlation("reports "+night))
	var regions []*stint.Node
	for _, region := range c.regions {
		var shops []ShopNight
		for _, shop := range c.shops[region] {
			shops = append(shops, ShopNight{shop, night})
		}
		// However the shops end, the region has a report.
		regions = append(regions, Region.Add(f, region, RegionNight{region, night}, stint.NeedsEnd(Shop.Each(f, shops)...)))
	}
	Report.Add(f, "report", night, stint.Needs(regions...))
	_, err := f.Enqueue(ctx, stint.ClientFrom(ctx))
	return err
}

func sum(ctx context.Context, _ *stint.Job, r RegionNight) (Sales, error) {
	s := Sales{Region: r.Region}
	for sales, err := range Shop.Needed(ctx) {
		switch {
		case errors.Is(err, stint.ErrNoResult): // the shop told none
			s.Missing++
		case err != nil:
			return s, err
		}
		s.Total += sales
	}
	return s, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	now := flag.Bool("now", false, "make one report now")
	flag.Parse()
	if err := run(ctx, *now); err != nil {
		fmt.Fprintln(os.Stderr, "reports:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, now bool) error {
	db, err := sqlite.Open(ctx, "reports.db")
	if err != nil {
		return err
	}
	defer db.Close()
	worker, err := engine.New(db, chain{
		regions: []string{"north", "south"},
		shops:   map[string][]string{"north": {"Kiel", "Bremen"}, "south": {"Ulm"}},
		sales:   func(_ context.Context, s ShopNight) (int, error) { return 100 * len(s.Shop), nil },
		publish: func(_ context.Context, night string, all []Sales) error {
			_, err := fmt.Printf("%s: %+v\n", night, all)
			return err
		},
	}.handlers(), engine.Config{})
	if err != nil {
		return err
	}
	if now {
		if _, err := Nightly.Enqueue(ctx, stint.NewClient(db), struct{}{}); err != nil {
			return err
		}
	}
	return worker.Run(ctx)
}
