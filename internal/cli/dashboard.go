package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/term"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/api"
	"github.com/stint-go/stint/dashboard"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/internal/valid"
)

const dashboardHelp = `dashboard: Serve the dashboard, or say who may use it

Dashboard serves pages about everything in a database, the JSON API below /api/v1,
metrics for Prometheus at /metrics, and /healthz and /readyz, until a signal stops it.
It runs no engine: up and work serve the same pages together with theirs.

On this machine alone (127.0.0.1) all users may look, and the link that it prints
permits everything. The link has a new secret each time, unless STINT_DASHBOARD_SECRET
or the file of settings has one. Other machines reach it at another address, or through
a proxy by the names of --hosts. Then it starts only if the file of settings says who
may use it: tokens of programs, people with a password, or a proxy that names people.
Each has a role:

  worker    takes jobs and says how they ended, and nothing else: for tokens of programs
  viewer    sees everything, but arguments if they are hidden
  operator  does daily work: retry, cancel, pause, enqueue
  admin     also enqueues kinds that run any command or request (sh, http, steps),
            releases leases and buries engines

stint config --help shows the file.

Examples:
  stint dashboard
  stint dashboard --db postgres://app@db/shop --read-only
  stint dashboard --config /etc/stint.toml --address :7070 --hosts jobs.example.com`

func (a *app) dashboardCommand() *cobra.Command {
	var (
		flags dashboardFlags
		log   logFlags
	)
	cmd := a.onDatabase(page(dashboardHelp), func(ctx context.Context, _ *cobra.Command, _ []string) error {
		return a.dashboard(ctx, &flags, log)
	})
	flags.addAs(cmd.Flags(), "serve at this address (default 127.0.0.1:7070 or the next port that is free)")
	log.add(cmd.Flags())
	cmd.AddCommand(a.dashboardTokenCommand(), a.dashboardPasswordCommand())
	return cmd
}

// dashboard serves one until a signal comes.
func (a *app) dashboard(ctx context.Context, f *dashboardFlags, l logFlags) error {
	if f.address == dashboardOff {
		return withHint(settingf(f.flag("address"), "the dashboard is off"), "this command does nothing else: name an address by --%s", f.flag("address"))
	}
	if err := a.db.check(); err != nil {
		return err
	}
	log, err := l.logger(a.err)
	if err != nil {
		return err
	}
	a.log = log
	f.byDefault()
	d, err := a.listenDashboard(f, newVitals(), log)
	if err != nil {
		return err
	}
	defer d.close()
	ctx, release := interrupted(ctx)
	defer release()
	how := changing
	if f.readOnly {
		how = looking
	}
	db, err := a.open(ctx, how)
	switch {
	case ctx.Err() != nil && db == nil:
		return nil // it was stopped before it began
	case err != nil:
		return err
	}
	defer db.Close()
	defer d.close()
	if err := d.open(db.roles, nil, nil); err != nil {
		return err
	}
	a.tellLink(l, "dashboard", d.link(), fmt.Sprintf("The dashboard of %s is at\n\n  %s\n\n", a.db.place(), d.link()))
	<-ctx.Done()
	return nil
}

// dashboardTable is the table of a file with the settings of the dashboard.
const dashboardTable = "dashboard"

// The default address of a dashboard, and how many ports from there on are tried.
const (
	dashboardHost  = "127.0.0.1"
	dashboardPort  = 7070
	dashboardPorts = 30
)

// dashboardFlags say where a dashboard is served, and how. Tokens, users and proxies are
// in the file: see admission.
type dashboardFlags struct {
	address  string
	path     string
	hosts    []string
	hideArgs bool
	readOnly bool
	certFile string
	keyFile  string
	keysFile string

	prefix  string // of the flags' names
	gateway bool   // it is for workers only: the address is that of --gateway
	anyPort bool   // the address is the default: use the next free port
}

// dashboardOff is the address of a dashboard that is not served.
const dashboardOff = "off"

// dashboardAddresses are those that a dashboard is served at, or "off".
var dashboardAddresses = checked("address", func(text string) error {
	if text == dashboardOff {
		return nil
	}
	return checkAddress(text, strconv.Itoa(dashboardPort))
})

// add adds them to a command that also does something else.
func (f *dashboardFlags) add(flags *pflag.FlagSet) {
	f.prefix = "dashboard-"
	f.addAs(flags, "serve the dashboard at this address, or off (default with up 127.0.0.1:7070 or the next port that is free, with work off)")
}

// addAs adds them with their prefix.
func (f *dashboardFlags) addAs(flags *pflag.FlagSet, usage string) {
	flags.SortFlags = false
	flags.Var(dashboardAddresses.in(&f.address), f.flag("address"), usage)
	flags.StringVar(&f.path, f.flag("path"), "", "where the dashboard is below its address: /stint (default /)")
	flags.Var(nameList(&f.hosts, "hosts"), f.flag("hosts"), "the names that the dashboard is reached by through a proxy or from other machines, separated by commas (default those of this machine alone)")
	flags.BoolVar(&f.hideArgs, f.flag("hide-args"), false, "keep arguments, metadata, results, values of signals and log lines from viewers")
	flags.BoolVar(&f.readOnly, f.flag("read-only"), false, "allow no changes, whatever the role")
	flags.StringVar(&f.certFile, f.flag("tls-cert"), "", "serve HTTPS with the certificates of this file, in PEM; it is read again when it changes (default HTTP)")
	flags.StringVar(&f.keyFile, f.flag("tls-key"), "", "the file with their key (default the one of the certificates)")
	flags.StringVar(&f.keysFile, f.flag("keys-file"), "", "open what is sealed of a job for admins who ask for it, with the keys of this file; it is written down who did (default none: nothing is opened)")
	for _, name := range []string{"address", "path", "hosts", "hide-args", "read-only", "tls-cert", "tls-key", "keys-file"} {
		orEnv(flags, variableOf(strings.TrimSuffix("dashboard-"+name, "-address")), f.flag(name))
		orFile(flags, below(dashboardTable, name), f.flag(name))
	}
}

// flag is the name of a flag with its prefix; the address is --dashboard itself.
func (f *dashboardFlags) flag(name string) string {
	if f.gateway && name == "address" {
		return "gateway"
	}
	return strings.TrimSuffix(f.prefix+name, "-address")
}

func (f *dashboardFlags) byDefault() {
	if f.address == "" {
		f.address, f.anyPort = net.JoinHostPort(dashboardHost, strconv.Itoa(dashboardPort)), true
	}
}

func (f *dashboardFlags) isOff() bool { return f.address == "" || f.address == dashboardOff }

// isLocal reports whether only this machine reaches the dashboard. With names of hosts
// there is a proxy in front of it.
func (f *dashboardFlags) isLocal() bool {
	host, _, _ := net.SplitHostPort(f.address)
	return len(f.hosts) == 0 && isLoopback(host)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// dashboardConfig checks the settings and returns how the dashboard is served. The second
// result is a new secret that permits everything; it is empty if the settings have one,
// or if there is none.
func (a *app) dashboardConfig(f *dashboardFlags) (c dashboard.Config, fresh string, err error) {
	c = dashboard.Config{Path: f.path, API: api.Config{
		Version: version(), Restricted: append(builtin.names(), demoHarmful...), HideArgs: f.hideArgs, Bounded: boundedKinds(), CheckArgs: builtin.check,
	}, WorkersOnly: f.gateway}
	if c.Path != "" {
		_, err := dashboard.New(nil, c)
		if invalid, ok := errors.AsType[*stint.InvalidError](err); ok {
			return c, "", settingf(f.flag("path"), "%s", invalid.Problem)
		}
	}
	if _, err := f.certificates(); err != nil {
		return c, "", err
	}
	if c.API.Keys, err = readKeys(f.flag("keys-file"), f.keysFile); err != nil {
		return c, "", err
	}
	if c.LinkKey, err = a.linkKey(); err != nil {
		return c, "", err
	}
	if f.readOnly {
		c.LinkKey = ""
	}
	c.Guard, fresh, err = a.admit(f, &a.admission)
	return c, fresh, err
}

// admit says who gets in. On this machine alone all users may look, unless the file names
// users or tokens; a change needs the secret.
func (a *app) admit(f *dashboardFlags, named *admission) (g guard.Config, fresh string, err error) {
	g = named.guard()
	known := g.Knows()
	if g.Link, err = a.secretOf(secretVariable, named.secret); err != nil {
		return g, "", err
	}
	switch {
	case !f.isLocal() && !known && g.Link == "":
		return g, "", withHint(settingf(f.flag("address"), "others can reach %s, and no setting says who may", f.address),
			"name tokens, users or a proxy in the file of settings (stint dashboard token --help), or set %s; 127.0.0.1:7070 is for this machine alone", secretVariable)
	case f.isLocal() && !known && !f.gateway:
		g.Stranger = guard.Viewer
	}
	if g.Hosts, err = f.hostsOf(); err != nil {
		return g, "", err
	}
	if f.isLocal() && g.Link == "" && !f.readOnly {
		fresh = newSecret()
		g.Link = fresh
	}
	if f.readOnly {
		g = viewersOnly(g)
	}
	return g, fresh, nil
}

// hostsOf are the names by which others reach the server.
func (f *dashboardFlags) hostsOf() ([]string, error) {
	if _, err := guard.New(guard.Config{Hosts: f.hosts}); err != nil {
		return nil, settingf(f.flag("hosts"), "%s", err.Error())
	}
	host, _, _ := net.SplitHostPort(f.address)
	if ip := net.ParseIP(host); len(f.hosts) == 0 && (host == "" || ip != nil && ip.IsUnspecified()) {
		return nil, withHint(settingf(f.flag("hosts"), "%s is all addresses of this machine: say by which names it is reached", f.address),
			"write for example --%s jobs.example.com", f.flag("hosts"))
	}
	if !isLoopback(host) && host != "" {
		return append(f.hosts[:len(f.hosts):len(f.hosts)], host), nil
	}
	return f.hosts, nil
}

// viewersOnly gives the role viewer to all that the guard knows by name.
func viewersOnly(g guard.Config) guard.Config {
	for i := range g.Tokens {
		g.Tokens[i].Role = min(g.Tokens[i].Role, guard.Viewer)
	}
	for i := range g.Users {
		g.Users[i].Role = guard.Viewer
	}
	for name, role := range g.Proxy.Roles {
		g.Proxy.Roles[name] = min(role, guard.Viewer)
	}
	g.Proxy.Others = min(g.Proxy.Others, guard.Viewer)
	return g
}

const dashboardTokenHelp = `token NAME: Make a token for a program

Token makes a token for a program. It prints the token once, on standard error. On
standard output it prints what to write into the file of settings: a hash, from which
the token cannot be found. The program sends it as

  Authorization: Bearer TOKEN

Examples:
  stint dashboard token ci --role operator >>/etc/stint.toml
  stint dashboard token thumbs --role worker --queues images >>/etc/stint.toml
  stint dashboard token prometheus --json`

type newToken struct {
	Name   string   `json:"name"`
	Role   string   `json:"role"`
	Queues []string `json:"queues,omitempty"`
	Kinds  []string `json:"kinds,omitempty"`
	Token  string   `json:"token"`
	SHA256 string   `json:"sha256"`
}

func (a *app) dashboardTokenCommand() *cobra.Command {
	role := ""
	var queues, kinds []string
	cmd := a.withJSON(a.does(page(dashboardTokenHelp), func(_ context.Context, _ *cobra.Command, args []string) error {
		if err := valid.Name("name", args[0]); err != nil {
			return err
		}
		if role != guard.Worker.String() && len(queues)+len(kinds) > 0 {
			return usagef("%w", errWorkersOnly)
		}
		secret := newSecret()
		hash := guard.NewToken(args[0], guard.Viewer, secret).Hash
		if a.json {
			return a.printJSON(newToken{args[0], role, queues, kinds, secret, hash})
		}
		a.note("the token, which is shown this once: %s", secret)
		a.printElement(tokenKey, [2]string{"name", args[0]}, [2]string{"role", role}, [2]string{"sha256", hash})
		a.printList("queues", queues)
		a.printList("kinds", kinds)
		return nil
	}))
	roleFlag(cmd, &role, "what it may do", "worker")
	cmd.Flags().Var(nameList(&queues, "queues"), "queues", "the queues that a worker with it may work on, separated by commas (default all)")
	cmd.Flags().Var(nameList(&kinds, "kinds"), "kinds", "the kinds that a worker with it may perform, separated by commas (default all)")
	return cmd
}

func roleFlag(cmd *cobra.Command, role *string, usage string, others ...string) {
	choiceFlag(cmd.Flags(), role, "role", "viewer", usage, append([]string{"viewer", "operator", "admin"}, others...)...)
}

// printList prints an array of strings as TOML, unless it is empty.
func (a *app) printList(key string, list []string) {
	if len(list) > 0 {
		fmt.Fprintf(a.out, "%s = [%s]\n", key, `"`+strings.Join(list, `", "`)+`"`)
	}
}

func (a *app) printElement(key string, parts ...[2]string) {
	fmt.Fprintf(a.out, "[[%s]]\n", key)
	for _, p := range parts {
		fmt.Fprintf(a.out, "%s = %q\n", p[0], p[1])
	}
}

const dashboardPasswordHelp = `password NAME: Hash the password of a person

Password reads a person's password, without showing it, or a line of standard
input, and prints what to write into the file of settings: a hash of it that takes
long to guess. The browser asks for name and password; serve HTTPS, or have a proxy
do that, since it sends both with each request.

Examples:
  stint dashboard password ann --role admin >>/etc/stint.toml
  pwgen 20 1 | tee /dev/stderr | stint dashboard password bob`

const (
	passwordCost  = 12 // of bcrypt: a quarter of a second
	leastPassword = 8  // characters
	mostPassword  = 72 // bytes that bcrypt takes
)

func (a *app) dashboardPasswordCommand() *cobra.Command {
	role := ""
	cmd := a.does(page(dashboardPasswordHelp), func(ctx context.Context, _ *cobra.Command, args []string) error {
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
			return usagef("the password has more than %d bytes, and bcrypt ignores the rest", mostPassword)
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

func checkPerson(name string) error {
	if strings.Contains(name, ":") {
		return valid.Invalid("name", "%q has a colon, which ends the name when a browser sends it", name)
	}
	return valid.Name("name", name)
}

// readPassword asks for a password twice at a terminal, and otherwise reads a line.
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
	// A terminal that is left in this state would stay without echo.
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
