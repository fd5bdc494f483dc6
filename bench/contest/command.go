package contest

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Main runs a program that holds bouts, until it is done or interrupted.
func Main(name string, run func(ctx context.Context, arguments []string, out, errs io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Output says how often bouts are held, and where their results go.
type Output struct {
	Runs int
	JSON bool   // instead of tables
	CSV  string // the path of the medians and ratios
}

// Flags adds the flags of the fields.
func (o *Output) Flags(f *flag.FlagSet) {
	f.IntVar(&o.Runs, "runs", 5, "how many rounds of each bout")
	f.StringVar(&o.CSV, "csv", "", "where to write medians and ratios as CSV, beside what is printed")
	f.BoolVar(&o.JSON, "json", false, "print JSON, with the figures of each round")
}

// Hold holds a bout, tells errs of each turn, and prints the result. Of bouts
// with many entrants, whose turns are short, it tells nothing.
func (o Output) Hold(ctx context.Context, b Bout, out, errs io.Writer) (Result, error) {
	r, err := b.Hold(ctx, o.Runs, func(round int, entrant string) {
		if len(b.Entrants) <= 20 {
			fmt.Fprintf(errs, "%s %s, round %d of %d: %s\n", time.Now().Format(time.TimeOnly), b.Name, round, o.Runs, entrant)
		}
	})
	if err != nil || o.JSON {
		return r, err
	}
	if err := r.Print(out); err != nil {
		return r, err
	}
	_, err = fmt.Fprintln(out)
	return r, err
}

// Report is the results of a program's bouts with what they were measured on.
type Report struct {
	Server   map[string]string `json:"server,omitempty"`
	Versions map[string]string `json:"versions"`
	Results  []Result          `json:"results"`
}

// Conclude writes the files that were asked for, and prints what the figures were
// measured on.
func (o Output) Conclude(r Report, out io.Writer) error {
	if o.CSV != "" {
		if err := SaveCSV(o.CSV, r.Results); err != nil {
			return fmt.Errorf("--csv: %w", err)
		}
	}
	if o.JSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	for _, all := range []map[string]string{r.Server, r.Versions} {
		if len(all) > 0 {
			if err := PrintSettings(out, all); err != nil {
				return err
			}
		}
	}
	return nil
}

// PrintSettings writes names with their values in one line.
func PrintSettings(w io.Writer, all map[string]string) error {
	var line []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		line = append(line, name+" "+all[name])
	}
	_, err := fmt.Fprintln(w, strings.Join(line, ", "))
	return err
}

// Versions are those of Go and of some modules that this program is built with.
func Versions(modules ...string) map[string]string {
	all := map[string]string{"go": runtime.Version(), "processors": fmt.Sprint(runtime.GOMAXPROCS(0))}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if slices.Contains(modules, m.Path) {
				all[m.Path] = m.Version
			}
		}
	}
	return all
}

// AtLeastOne refuses numbers of a flag that are less than 1.
func AtLeastOne(numbers map[string]int) error {
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		if n := numbers[name]; n < 1 {
			return fmt.Errorf("--%s: %d is less than 1", name, n)
		}
	}
	return nil
}
