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
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stint-go/stint/bench/contest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "sqlite:", err)
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	dir  string
	runs int
	jobs int
	json bool
	csv  string // the path of the medians and ratios
	tune bool
}

func parse(arguments []string, errs io.Writer) (o options, err error) {
	f := flag.NewFlagSet("sqlite", flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&o.dir, "sqlite-dir", "", "directory for the files, on the disk to be measured (default: the one for temporary files)")
	f.IntVar(&o.runs, "runs", 5, "how many rounds")
	f.IntVar(&o.jobs, "jobs", 20_000, "how many jobs")
	f.BoolVar(&o.tune, "tune", false, "look for the peers' best settings instead")
	f.StringVar(&o.csv, "csv", "", "where to write medians and ratios as CSV, beside what is printed")
	f.BoolVar(&o.json, "json", false, "print JSON, with the figures of each round")
	if err := f.Parse(arguments); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%q is no flag", f.Arg(0))
	case o.runs < 1:
		return o, fmt.Errorf("--runs: %d is less than 1", o.runs)
	case o.jobs < 1:
		return o, fmt.Errorf("--jobs: %d is less than 1", o.jobs)
	}
	return o, nil
}

// report is what --json prints.
type report struct {
	Versions map[string]string `json:"versions"`
	Results  []contest.Result  `json:"results"`
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
	result, err := burn(o, all).Hold(ctx, o.runs, func(round int, entrant string) {
		fmt.Fprintf(errs, "%s round %d of %d: %s\n", time.Now().Format(time.TimeOnly), round, o.runs, entrant)
	})
	if err != nil {
		return err
	}
	r := report{versions(), []contest.Result{result}}
	if o.csv != "" {
		if err := contest.SaveCSV(o.csv, r.Results); err != nil {
			return fmt.Errorf("--csv: %w", err)
		}
	}
	if o.json {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	if err := result.Print(out); err != nil {
		return err
	}
	return r.print(out)
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

// print writes what the figures were measured with.
func (r report) print(w io.Writer) error {
	var names []string
	for name, value := range r.Versions {
		names = append(names, name+" "+value)
	}
	slices.Sort(names)
	_, err := fmt.Fprintf(w, "\n%s\n", strings.Join(names, ", "))
	return err
}

// versions are those of whoever takes part.
func versions() map[string]string {
	all := map[string]string{"go": runtime.Version(), "processors": fmt.Sprint(runtime.GOMAXPROCS(0))}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return all
	}
	for _, m := range info.Deps {
		switch m.Path {
		case "github.com/riverqueue/river", "github.com/mikestefanello/backlite", "github.com/mattn/go-sqlite3", "github.com/ncruces/go-sqlite3":
			all[m.Path] = m.Version
		}
	}
	return all
}
