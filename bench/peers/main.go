// Command peers has stint, River and a queue of rows do the same work on one
// PostgreSQL server, in turns, and prints what each of them reached and how many
// times that is. README.md says what is compared, and why it is fair.
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
	"regexp"
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
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	db       string
	major    int // of the server that is started when there is no db
	only     []string
	against  *regexp.Regexp // who takes part beside the first of each bout
	runs     int
	jobs     int
	duration time.Duration // of a pinned turn
	settle   time.Duration
	rate     float64
	span     time.Duration // of a turn of latency
	json     bool
	csv      string // the path of the medians and ratios
	series   string // the path of the plot and its figures, without the ending
}

// bouts are all that there are, in their order; the last is held only when it is
// asked for.
var bouts = []string{"burn", "pinned", "single", "latency", "tune"}

func parse(arguments []string, errs io.Writer) (o options, err error) {
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	f.SetOutput(errs)
	only, against := strings.Join(bouts[:len(bouts)-1], ","), ""
	f.StringVar(&o.db, "db", "", "URL of a PostgreSQL server where databases may be created (default: one is started, and removed)")
	f.IntVar(&o.major, "major", 0, "major version of the server that is started (default: the newest that is installed)")
	f.StringVar(&only, "only", only, "which bouts; tune, too, looks for River's best settings")
	f.StringVar(&against, "against", "", "regular expression of the names of those who take part beside stint (default: all)")
	f.IntVar(&o.runs, "runs", 5, "how many rounds of each bout")
	f.IntVar(&o.jobs, "jobs", 200_000, "how many jobs burn")
	f.DurationVar(&o.duration, "duration", 2*time.Minute, "how long each turn of pinned takes")
	f.DurationVar(&o.settle, "settle", time.Minute, "how long single works before it is measured")
	f.Float64Var(&o.rate, "rate", 50, "how many jobs per second the bout of latency enqueues")
	f.DurationVar(&o.span, "span", 10*time.Second, "how long each turn of latency takes")
	f.StringVar(&o.series, "series", "", "where to write pinned's figures over time: to this path with .svg, .csv and .json")
	f.StringVar(&o.csv, "csv", "", "where to write medians and ratios as CSV, beside what is printed")
	f.BoolVar(&o.json, "json", false, "print JSON, with the figures of each round")
	if err := f.Parse(arguments); err != nil {
		return o, err
	}
	o.only = strings.Split(only, ",")
	if o.against, err = regexp.Compile(against); err != nil {
		return o, fmt.Errorf("--against: %w", err)
	}
	return o, o.check(f.Args())
}

func (o options) check(rest []string) error {
	for _, name := range o.only {
		if !slices.Contains(bouts, name) {
			return fmt.Errorf("--only: %q is none of %s", name, strings.Join(bouts, ", "))
		}
	}
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%q is no flag", rest[0])
	case o.db != "" && o.major != 0:
		return fmt.Errorf("--major is for a server that is started, and --db names one")
	case o.runs < 1:
		return fmt.Errorf("--runs: %d is less than 1", o.runs)
	case o.jobs < 1:
		return fmt.Errorf("--jobs: %d is less than 1", o.jobs)
	case o.duration < slice:
		return fmt.Errorf("--duration: %v is less than %v, of which there is one figure each", o.duration, slice)
	case o.settle < slice:
		return fmt.Errorf("--settle: %v is less than %v", o.settle, slice)
	case o.rate <= 0 || o.rate > 10_000:
		return fmt.Errorf("--rate: %v is not between 0 and 10000 jobs per second", o.rate)
	case o.span < time.Second:
		return fmt.Errorf("--span: %v is less than a second", o.span)
	}
	return nil
}

// report is what --json prints.
type report struct {
	Server   map[string]string `json:"server"`
	Versions map[string]string `json:"versions"`
	Results  []contest.Result  `json:"results"`
}

func run(ctx context.Context, arguments []string, out, errs io.Writer) (err error) {
	o, err := parse(arguments, errs)
	if err != nil {
		return err
	}
	s, err := openServer(ctx, o.db, o.major)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	r := report{Versions: versions()}
	if r.Server, err = s.about(ctx); err != nil {
		return err
	}
	record := &recording{}
	held, err := o.choose(burn(s, o), pinned(s, o, record), single(s, o), latency(s, o), tune(s, o))
	if err != nil {
		return err
	}
	for _, b := range held {
		result, err := b.Hold(ctx, o.runs, func(round int, entrant string) {
			fmt.Fprintf(errs, "%s %s, round %d of %d: %s\n", time.Now().Format(time.TimeOnly), b.Name, round, o.runs, entrant)
		})
		if err != nil {
			return err
		}
		r.Results = append(r.Results, result)
		if !o.json {
			if err := result.Print(out); err != nil {
				return err
			}
			fmt.Fprintln(out)
		}
	}
	if o.series != "" && len(record.names) > 0 {
		if err := record.write(o.series); err != nil {
			return fmt.Errorf("--series: %w", err)
		}
	}
	if o.csv != "" {
		if err := contest.SaveCSV(o.csv, r.Results); err != nil {
			return fmt.Errorf("--csv: %w", err)
		}
	}
	if o.json {
		return printJSON(out, r)
	}
	return r.print(out)
}

// choose keeps the bouts and the entrants that were asked for.
func (o options) choose(all ...contest.Bout) (chosen []contest.Bout, err error) {
	for _, b := range all {
		if !slices.Contains(o.only, b.Name) {
			continue
		}
		if b, err = b.Against(o.against); err != nil {
			return nil, fmt.Errorf("--against: %w", err)
		}
		chosen = append(chosen, b)
	}
	return chosen, nil
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// print writes what the figures were measured on.
func (r report) print(w io.Writer) error {
	for _, all := range []map[string]string{r.Server, r.Versions} {
		names := make([]string, 0, len(all))
		for name, value := range all {
			names = append(names, name+" "+value)
		}
		slices.Sort(names)
		if _, err := fmt.Fprintln(w, strings.Join(names, ", ")); err != nil {
			return err
		}
	}
	return nil
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
		case "github.com/riverqueue/river", "github.com/jackc/pgx/v5":
			all[m.Path] = m.Version
		}
	}
	return all
}
