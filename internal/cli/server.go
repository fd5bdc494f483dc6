package cli

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/remote"
)

// serverFlags say which server a command asks, in place of a database.
type serverFlags struct {
	url, tokenFile string
	tokenInClear   bool

	asked bool // whether the command at hand asks it
}

// tokenVariable holds the token, which is never a flag: others see those.
const tokenVariable = "STINT_TOKEN"

func (f *serverFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.url, "server", "", "a stint server to ask, in place of a database: https://jobs.example.com")
	orEnv(flags, "STINT_SERVER", "server")
	flags.StringVar(&f.tokenFile, "token-file", "", "a file with the token that the server wants; or put it into "+tokenVariable)
	flags.BoolVar(&f.tokenInClear, "token-in-clear", false, "let the token go to another machine over http, where others on the way can read it")
}

// databaseMark is on commands that work on a database itself.
const databaseMark = "stint_database"

// choosePlace decides between a database and a server: by a flag, or else by the
// environment, or else by the file.
func (a *app) choosePlace(cmd *cobra.Command) error {
	server, db := a.origins["server"], a.origins["db"]
	needed := cmd.Annotations[databaseMark] != ""
	switch {
	case server.rank() == 0:
		for _, name := range []string{"token-file", "token-in-clear"} {
			if cmd.Flags().Changed(name) {
				return settingf(name, "it is about a server, and none is named")
			}
		}
		return nil
	case needed && (server.rank() == byFlagGiven || db.rank() == 0):
		return withHint(usagef("%s works on a database itself, and %s names a server", cmd.CommandPath(), server.from), "name the database: --db")
	case needed || db.rank() > server.rank():
		return nil
	case db.rank() == server.rank():
		return withHint(usagef("%s and %s exclude each other", server.from, db.from), "a server has a database of its own; a flag wins over the environment")
	}
	for _, name := range []string{"schema", "log-sql"} {
		if cmd.Flags().Changed(name) {
			return settingf(name, "it is about a database, and %s names a server", server.from)
		}
	}
	if by := cmd.Flags().Lookup("by"); marked(by, whoMark) != "" && by.Changed {
		return settingf("by", "the server keeps who asks by the token")
	}
	a.server.asked = true
	return nil
}

// The ranks of where a setting comes from.
const (
	byFile = iota + 1
	byEnvironment
	byFlagGiven
)

// rank is how much a setting counts: 0 when it is the default.
func (o origin) rank() int {
	switch {
	case o.from == "":
		return 0
	case o.file:
		return byFile
	case strings.HasPrefix(o.from, "--"):
		return byFlagGiven
	}
	return byEnvironment
}

// openServer is a database behind a server.
func (a *app) openServer() (*database, error) {
	token, err := a.token()
	if err != nil {
		return nil, err
	}
	s, err := remote.Open(a.server.url, remote.Config{Token: token, TokenInClear: a.server.tokenInClear})
	invalid, _ := errors.AsType[*stint.InvalidError](err)
	switch {
	case errors.Is(err, remote.ErrInClear):
		return nil, withHint(settingf("server", "%w", err), "use https, or give --token-in-clear where nobody can listen on the way")
	case invalid != nil && invalid.Field == "token" && a.server.tokenFile != "":
		return nil, settingf("token-file", "%s: %s", a.server.tokenFile, invalid.Problem)
	case invalid != nil && invalid.Field == "token":
		return nil, usagef("%s: %s", tokenVariable, invalid.Problem)
	case err != nil:
		return nil, settingf("server", "%w", err)
	}
	return &database{reads: s, Caller: s, Close: s.Close}, nil
}

// maxToken is far above what a token has.
const maxToken = 4 << 10

// token says who asks: by the file, or else by the environment. Empty is a stranger.
func (a *app) token() (string, error) {
	if a.server.tokenFile == "" {
		return strings.TrimSpace(a.env(tokenVariable)), nil
	}
	f, err := os.Open(a.server.tokenFile)
	if err != nil {
		return "", settingf("token-file", "%s", err.Error()) // not %w, which would have the database explained
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	token := strings.TrimSpace(string(text))
	switch {
	case err != nil:
		return "", settingf("token-file", "%s", err.Error())
	case token == "" || len(text) > maxToken:
		return "", settingf("token-file", "%s holds no token", a.server.tokenFile)
	}
	return token, nil
}

// explainServer says what an answer means, or why there is none.
func (a *app) explainServer(err error) error {
	if e, ok := errors.AsType[*remote.Error](err); ok {
		return a.explainAnswer(err, e)
	}
	var (
		unknown *net.DNSError
		foreign x509.UnknownAuthorityError
		network net.Error
	)
	switch {
	case errors.As(err, &unknown):
		return withHint(err, "check the host in --server or STINT_SERVER")
	case errors.As(err, &foreign):
		return withHint(err, "SSL_CERT_FILE names a file with the certificates that are trusted")
	case errors.Is(err, syscall.ECONNREFUSED), errors.As(err, &network) && network.Timeout():
		return withHint(err, "is it running, and are host and port in --server or STINT_SERVER right?")
	}
	return err
}

func (a *app) explainAnswer(err error, e *remote.Error) error {
	switch {
	case e.Status == http.StatusUnauthorized:
		if token, _ := a.token(); token == "" {
			return withHint(fmt.Errorf("%s answers nobody whom it does not know", a.server.url), "put a token of its into %s, or into a file for --token-file", tokenVariable)
		}
		return withHint(fmt.Errorf("%s does not know the token", a.server.url), "look at %s, or at the file of --token-file", tokenVariable)
	case e.Status == http.StatusForbidden:
		return withHint(err, "the token stands for a role; who set up the server gives tokens of others")
	case e.Status == http.StatusMisdirectedRequest:
		return withHint(err, "who set up the server says what hosts it goes by; ask it by one of these")
	case e.Location != "":
		return withHint(err, "name that by --server or STINT_SERVER, if it is to have the token")
	case e.Status == http.StatusNotFound && e.Unwrap() == nil:
		return withHint(fmt.Errorf("%s does not answer as stint does: %w", a.server.url, err), "is that where its dashboard is, and is it as new as this stint?")
	}
	return err
}

// shared reports whether other machines work on the database: built-in kinds are
// switched on there, and nothing is created by the way.
func (a *app) shared() bool { return a.server.asked || a.db.isPostgres() }

// absent reports whether the database is a local file that is not there yet.
func (a *app) absent() bool { return !a.server.asked && a.db.absent() }

// place names what a command is about, for people.
func (a *app) place() string {
	if a.server.asked {
		return a.server.url
	}
	return a.db.place()
}
