package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/term"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/guard"
)

const dashboardTokenLong = `Token makes a token for a program, and prints it this once, on standard error, and on
standard output what to write into the file of settings: the hash of it, from which
nobody finds out the token. The program sends it as

  Authorization: Bearer TOKEN`

const dashboardTokenExample = `  stint dashboard token ci --role operator >>/etc/stint.toml
  stint dashboard token prometheus --json`

// newToken is a token that was made, for --json.
type newToken struct {
	Name   string `json:"name"`
	Role   string `json:"role"`
	Token  string `json:"token"`
	SHA256 string `json:"sha256"`
}

func (a *app) dashboardTokenCommand() *cobra.Command {
	role := ""
	cmd := a.withJSON(a.does(&cobra.Command{
		Use:     "token NAME",
		Short:   "Make a token for a program",
		Long:    dashboardTokenLong,
		Example: dashboardTokenExample,
		Args:    arguments(1, "NAME"),
	}, func(_ context.Context, _ *cobra.Command, args []string) error {
		if err := stint.CheckName("name", args[0]); err != nil {
			return err
		}
		secret := newSecret()
		hash := guard.NewToken(args[0], guard.Viewer, secret).Hash
		if a.json {
			return a.printJSON(newToken{args[0], role, secret, hash})
		}
		a.note("the token, which is shown this once: %s", secret)
		a.printElement(tokenKey, [2]string{"name", args[0]}, [2]string{"role", role}, [2]string{"sha256", hash})
		return nil
	}))
	roleFlag(cmd, &role, "what it may do")
	return cmd
}

func roleFlag(cmd *cobra.Command, role *string, usage string) {
	choiceFlag(cmd.Flags(), role, "role", guard.Viewer.String(), usage, guard.Viewer.String(), guard.Operator.String(), guard.Admin.String())
}

// printElement prints a table of an array of tables.
func (a *app) printElement(key string, parts ...[2]string) {
	fmt.Fprintf(a.out, "[[%s]]\n", key)
	for _, p := range parts {
		fmt.Fprintf(a.out, "%s = %q\n", p[0], p[1])
	}
}

const dashboardPasswordLong = `Password reads a person's password, without showing it, or a line of standard
input, and prints what to write into the file of settings: a hash of it that takes
long to guess. The browser asks for name and password; serve HTTPS, or have a proxy
do that, since it sends both with each request.`

const dashboardPasswordExample = `  stint dashboard password ann --role admin >>/etc/stint.toml
  pwgen 20 1 | tee /dev/stderr | stint dashboard password bob`

const (
	passwordCost  = 12 // of bcrypt: a quarter of a second
	leastPassword = 8  // characters
	mostPassword  = 72 // bytes that bcrypt takes
)

func (a *app) dashboardPasswordCommand() *cobra.Command {
	role := ""
	cmd := a.does(&cobra.Command{
		Use:     "password NAME",
		Short:   "Hash the password of a person",
		Long:    dashboardPasswordLong,
		Example: dashboardPasswordExample,
		Args:    arguments(1, "NAME"),
	}, func(ctx context.Context, _ *cobra.Command, args []string) error {
		if err := checkPerson(args[0]); err != nil {
			return err
		}
		password, err := a.readPassword(ctx)
		if err != nil {
			return err
		}
		switch {
		case len([]rune(password)) < leastPassword:
			return usagef("the password has fewer than %d characters", leastPassword)
		case len(password) > mostPassword:
			return usagef("the password has more than %d bytes, and what is behind them would not count", mostPassword)
		}
		hash, err := bcrypt.GenerateFromPassword([]byte(password), passwordCost)
		if err != nil {
			return err
		}
		a.printElement(userKey, [2]string{"name", args[0]}, [2]string{"role", role}, [2]string{"bcrypt", string(hash)})
		return nil
	})
	roleFlag(cmd, &role, "what the person may do")
	return cmd
}

// checkPerson judges the name of somebody with a password.
func checkPerson(name string) error {
	if strings.Contains(name, ":") {
		return stint.Invalid("name", "%q has a colon, which ends the name when a browser sends it", name)
	}
	return stint.CheckName("name", name)
}

// readPassword asks for a password twice where somebody types it, and otherwise
// reads a line.
func (a *app) readPassword(ctx context.Context) (string, error) {
	if f, ok := a.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return a.askPassword(ctx, int(f.Fd()))
	}
	line, err := bufio.NewReader(io.LimitReader(a.in, 1<<10)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the password: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

func (a *app) askPassword(ctx context.Context, terminal int) (string, error) {
	before, err := term.GetState(terminal)
	if err != nil {
		return "", err
	}
	// A terminal that is left while it shows nothing would go on to show nothing.
	ctx, release := interrupted(ctx)
	defer release()
	defer context.AfterFunc(ctx, func() {
		_ = term.Restore(terminal, before)
		a.exit(exitFailed)
	})()
	ask := func(what string) (string, error) {
		fmt.Fprint(a.err, what)
		text, err := term.ReadPassword(terminal)
		fmt.Fprintln(a.err)
		return string(text), err
	}
	first, err := ask("Password: ")
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	again, err := ask("Again: ")
	switch {
	case err != nil:
		return "", fmt.Errorf("read the password: %w", err)
	case first != again:
		return "", usagef("the two are not the same")
	}
	return first, nil
}
