// Command peers has stint, River, a queue of rows and DBOS do the same work on one
// PostgreSQL server, in turns, and prints what each of them reached and how many
// times that is. README.md says what is compared, and why it is fair.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint/bench/contest"
)

func main() { contest.Main("peers", run) }

// options are what the command line says.
type options struct {
	contest.Output
	db        string
	major     int // of the server that is started when there is no db
	only      []string
	against   *regexp.Regexp // who takes part beside the first of each bout
	jobs      int
	duration  time.Duration // of a pinned turn
	settle    time.Duration
	rate      float64
	span      time.Duration // of a turn of latency or hop
	workflows int           // that the bout of steps performs
	children  int           // of the workflow in the bout of children
	suspended int           // others, in a turn of hop
	series    string        // the path of the plot and its figures, without the ending
}

// bouts are all that there are. Those that are not usual are held only when they are asked for.
var (
	usual = []string{"burn", "pinned", "single", "latency", "unique"}
	bouts = slices.Concat(usual, []string{"steps", "children", "hop", "limit", "keys", "rate", "tune"})
)

func parse(arguments []string, errs io.Writer) (o options, err error) {
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	f.SetOutput(errs)
	only, against := strings.Join(usual, ","), ""
	f.StringVar(&o.db, "db", "", "URL of a PostgreSQL server where databases may be created (default: one is started, and removed)")
	f.IntVar(&o.major, "major", 0, "major version of the server that is started (default: the newest that is installed)")
	f.StringVar(&only, "only", only, "which bouts; also steps, children and hop, of durable workflows; limit, keys and rate, which need Node.js; and tune, which looks for River's best settings")
	f.StringVar(&against, "against", "", "regular expression of the names of those who take part beside stint (default: all)")
	o.Flags(f)
	f.IntVar(&o.jobs, "jobs", 200_000, "how many jobs burn")
	f.DurationVar(&o.duration, "duration", 2*time.Minute, "how long each turn of pinned takes")
	f.DurationVar(&o.settle, "settle", time.Minute, "how long single works before it is measured")
	f.Float64Var(&o.rate, "rate", 50, "how many jobs per second the bouts of latency and hop enqueue")
	f.DurationVar(&o.span, "span", 10*time.Second, "how long each turn of latency and hop takes")
	f.IntVar(&o.workflows, "workflows", 500, "how many workflows the bout of steps performs")
	f.IntVar(&o.suspended, "suspended", 0, "in hop, a second turn of stint with so many other workflows that wait")
	f.IntVar(&o.children, "children", 1000, "how many children the workflow of the bout of children has")
	f.StringVar(&o.series, "series", "", "where to write pinned's figures over time: to this path with .svg, .csv and .json")
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
	case o.duration < slice:
		return fmt.Errorf("--duration: %v is less than %v, of which there is one figure each", o.duration, slice)
	case o.settle < slice:
		return fmt.Errorf("--settle: %v is less than %v", o.settle, slice)
	case o.rate <= 0 || o.rate > 10_000:
		return fmt.Errorf("--rate: %v is not between 0 and 10000 jobs per second", o.rate)
	case o.suspended < 0:
		return fmt.Errorf("--suspended: %d is less than 0", o.suspended)
	case o.span < time.Second:
		return fmt.Errorf("--span: %v is less than a second", o.span)
	}
	return contest.AtLeastOne(map[string]int{"runs": o.Runs, "jobs": o.jobs, "workflows": o.workflows, "children": o.children})
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
	r := contest.Report{Versions: contest.Versions("github.com/riverqueue/river", "github.com/dbos-inc/dbos-transact-golang", "github.com/jackc/pgx/v5")}
	node, err := nodeVersions()
	if err != nil {
		return err
	}
	maps.Copy(r.Versions, node)
	if r.Server, err = s.about(ctx); err != nil {
		return err
	}
	record := &recording{}
	all := []contest.Bout{burn(s, o), pinned(s, o, record), single(s, o), latency(s, o), unique(s, o), tune(s, o)}
	held, err := o.choose(slices.Concat(all, durable(s, o), limits(s, o))...)
	if err != nil {
		return err
	}
	for _, b := range held {
		result, err := o.Hold(ctx, b, out, errs)
		if err != nil {
			return err
		}
		r.Results = append(r.Results, result)
	}
	if o.series != "" && len(record.names) > 0 {
		if err := record.write(o.series); err != nil {
			return fmt.Errorf("--series: %w", err)
		}
	}
	return o.Conclude(r, out)
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
