package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/stint-go/stint/internal/proof/pgtest"
)

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
