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
	"github.com/stint-go/stint/store"
)

// serverFlags say which server a command asks instead of a database.
type serverFlags struct {
	url, tokenFile string
	tokenInClear   bool

	asked bool // whether the current command asks it
}

// tokenVariable holds the token, which is never a flag: others see those.
const tokenVariable = "STINT_TOKEN"

func (f *serverFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.url, "server", "", "a stint server to ask, in place of a database: https://jobs.example.com")
	orEnv(flags, "STINT_SERVER", "server")
	flags.StringVar(&f.tokenFile, "token-file", "", "a file with the token that the server wants; or put it into "+tokenVariable)
	flags.BoolVar(&f.tokenInClear, "token-in-clear", false, "send the token to another machine over http, where others on the way can read it")
}

// databaseMark is on commands that need a database itself.
const databaseMark = "stint_database"

// choosePlace decides between a database and a server: by a flag, or else by the
// environment, or else by the file.
func (a *app) choosePlace(cmd *cobra.Command) error {
	server, db := a.origins["server"], a.origins["db"]
	needed := cmd.Annotations[databaseMark] != ""
	switch {
	case server.rank == 0:
		for _, name := range []string{"token-file", "token-in-clear"} {
			if cmd.Flags().Changed(name) {
				return settingf(name, "it is about a server, and none is named")
			}
		}
		return nil
	case needed && (server.rank == fromFlag || db.rank == 0):
		return withHint(usagef("%s works on a database itself, and %s names a server", cmd.CommandPath(), server.from), "name the database: --db")
	case needed || db.rank > server.rank:
		return nil
	case db.rank == server.rank:
		return withHint(usagef("%s and %s exclude each other", server.from, db.from), "a server has a database of its own; a flag wins over the environment")
	}
	for _, name := range []string{"schema", "prefix", "log-sql"} {
		if cmd.Flags().Changed(name) {
			return settingf(name, "it is about a database, and %s names a server", server.from)
		}
	}
	if by := cmd.Flags().Lookup("by"); marked(by, whoMark) != "" && by.Changed {
		return settingf("by", "the server knows the user by the token")
	}
	a.server.asked = true
	return nil
}

// openServer connects to the database of a server.
func (a *app) openServer() (*database, error) {
	token, err := a.token()
	if err != nil {
		return nil, err
	}
	s, err := remote.Open(a.server.url, remote.Config{Token: token, TokenInClear: a.server.tokenInClear})
	invalid, _ := errors.AsType[*stint.InvalidError](err)
	switch {
	case errors.Is(err, remote.ErrInClear):
		return nil, withHint(settingf("server", "%w", err), "use https, or give --token-in-clear if the network is private")
	case invalid != nil && invalid.Field == "token" && a.server.tokenFile != "":
		return nil, settingf("token-file", "%s: %s", a.server.tokenFile, invalid.Problem)
	case invalid != nil && invalid.Field == "token":
		return nil, usagef("%s: %s", tokenVariable, invalid.Problem)
	case err != nil:
		return nil, settingf("server", "%w", err)
	}
	return &database{reads: s, Caller: s, Close: s.Close}, nil
}

// maxToken is far above the length of a token.
const maxToken = 4 << 10

// token is that of the file, or else of the environment. It may be empty.
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

// explainServer explains an answer, or why there is none.
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
			return withHint(fmt.Errorf("%s wants a token", a.server.url), "put one of its tokens into %s, or into a file for --token-file", tokenVariable)
		}
		return withHint(fmt.Errorf("%s does not know the token", a.server.url), "look at %s, or at the file of --token-file", tokenVariable)
	case errors.Is(err, store.ErrDenied):
		return withHint(err, "the server's log says which right; its login at the database must be a member of another role, such as stint_engine")
	case e.Status == http.StatusForbidden:
		return withHint(err, "the token has a role; the operator of the server gives tokens with other roles")
	case e.Status == http.StatusMisdirectedRequest:
		return withHint(err, "the settings of the server name the hosts that it answers for; ask it by one of these")
	case e.Location != "":
		return withHint(err, "name that by --server or STINT_SERVER if you trust it with the token")
	case e.Status == http.StatusNotFound && e.Unwrap() == nil:
		return withHint(fmt.Errorf("%s does not answer like stint: %w", a.server.url, err), "is that where its dashboard is, and is it as new as this stint?")
	}
	return err
}

// shared reports whether other machines work on the database. There built-in kinds are off
// unless switched on, and commands do not create anything by the way.
func (a *app) shared() bool { return a.server.asked || a.db.isPostgres() }

// absent reports whether the database is a local file that does not exist yet.
func (a *app) absent() bool { return !a.server.asked && a.db.absent() }

// place names the database or server, for people.
func (a *app) place() string {
	if a.server.asked {
		return a.server.url
	}
	return a.db.place()
}
