// Command sqlite has stint, River and backlite do the same work on SQLite files,
// in turns, and prints what each of them reached and how many times that is.
// README.md of the directory above says what is compared, and why it is fair.
//
// It is a module of its own because the newest River for PostgreSQL and the
// newest of its SQLite drivers that the module proxy has are of two releases
// that do not build together.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/stint-go/stint/bench/contest"
)

func main() { contest.Main("sqlite", run) }

// options are what the command line says.
type options struct {
	contest.Output
	dir  string
	jobs int
	tune bool
}

func parse(arguments []string, errs io.Writer) (o options, err error) {
	f := flag.NewFlagSet("sqlite", flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&o.dir, "sqlite-dir", "", "directory for the files, on the disk to be measured (default: the one for temporary files)")
	o.Flags(f)
	f.IntVar(&o.jobs, "jobs", 20_000, "how many jobs")
	f.BoolVar(&o.tune, "tune", false, "look for the peers' best settings instead")
	if err := f.Parse(arguments); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("%q is no flag", f.Arg(0))
	}
	return o, contest.AtLeastOne(map[string]int{"runs": o.Runs, "jobs": o.jobs})
}

func run(ctx context.Context, arguments []string, out, errs io.Writer) error {
	o, err := parse(arguments, errs)
	if err != nil {
		return err
	}
	all := []contestant{stintDefault, riverBest(riverWorkers), backliteBest(backliteWorkers)}
	if o.tune {
		all = others()
	}
	result, err := o.Hold(ctx, burn(o, all), out, errs)
	if err != nil {
		return err
	}
	return o.Conclude(contest.Report{
		Versions: contest.Versions("github.com/riverqueue/river", "github.com/mikestefanello/backlite",
			"github.com/mattn/go-sqlite3", "github.com/ncruces/go-sqlite3"),
		Results: []contest.Result{result},
	}, out)
}

// burn is the bout of bulk: jobs enqueued, then jobs worked off.
func burn(o options, all []contestant) contest.Bout {
	b := contest.Bout{
		Name:    "SQLite",
		About:   contest.Number(float64(o.jobs)) + " no-op jobs enqueued in bulk, then worked off; WAL, synchronous=FULL, history kept",
		Figures: contest.BurnFigures,
	}
	for _, c := range all {
		b.Entrants = append(b.Entrants, contest.Entrant{Name: c.name, Settings: c.settings, Turn: func(ctx context.Context) (f contest.Figures, err error) {
			err = c.on(ctx, o.dir, func(q contest.Queue) error {
				return contest.Recorded(ctx, q, o.jobs, func() (err error) {
					f, err = contest.Burn(ctx, q, o.jobs, bulk)
					return err
				})
			})
			return f, err
		}})
	}
	return b
}
