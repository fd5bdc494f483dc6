package main

import (
	"errors"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin"
	"github.com/stint-go/stint/admin/api"
	"github.com/stint-go/stint/admin/guard"
)

// dashboardTable is the table of a file for what is of the dashboard.
const dashboardTable = "dashboard"

// The address of a dashboard that nobody said another one for, and how many ports
// from there on are tried.
const (
	dashboardHost  = "127.0.0.1"
	dashboardPort  = 7070
	dashboardPorts = 30
)

// dashboardFlags say where a dashboard is served, and how. Who gets in besides is
// in the file: see admission.
type dashboardFlags struct {
	address  dashboardValue
	path     string
	hosts    []string
	hideArgs bool
	readOnly bool
	certFile string
	keyFile  string

	prefix  string // of the flags' names
	anyPort bool   // nobody named the address: the next port that is free will do
}

// dashboardOff is the address of a dashboard that is not served.
const dashboardOff = "off"

// dashboardValue is a flag that reads an address to listen at, or "off".
type dashboardValue string

func (d *dashboardValue) Set(text string) error {
	if text != dashboardOff {
		if err := checkAddress(text, "7070"); err != nil {
			return err
		}
	}
	*d = dashboardValue(text)
	return nil
}

func (d *dashboardValue) Type() string   { return "address" }
func (d *dashboardValue) String() string { return string(*d) }

// add adds them to a command for which the dashboard is something beside.
func (f *dashboardFlags) add(flags *pflag.FlagSet) {
	f.prefix = "dashboard-"
	f.addAs(flags, "serve the dashboard at this address, or off (default with up 127.0.0.1:7070 or the next port that is free, with work off)")
}

// addAs adds them with their prefix.
func (f *dashboardFlags) addAs(flags *pflag.FlagSet, usage string) {
	flags.SortFlags = false
	flags.Var(&f.address, f.flag("address"), usage)
	flags.StringVar(&f.path, f.flag("path"), "", "where the dashboard is below its address: /stint (default /)")
	flags.Var(listValue{&f.hosts, "hosts"}, f.flag("hosts"), "the names that the dashboard is reached by through a proxy or from other machines, separated by commas (default those of this machine alone)")
	flags.BoolVar(&f.hideArgs, f.flag("hide-args"), false, "keep arguments, metadata and results of jobs from viewers")
	flags.BoolVar(&f.readOnly, f.flag("read-only"), false, "let nobody change anything, whatever their role")
	flags.StringVar(&f.certFile, f.flag("tls-cert"), "", "serve HTTPS with the certificates of this file, in PEM; it is read again when it changes (default HTTP)")
	flags.StringVar(&f.keyFile, f.flag("tls-key"), "", "the file with their key (default the one of the certificates)")
	for _, name := range []string{"address", "path", "hosts", "hide-args", "read-only", "tls-cert", "tls-key"} {
		orEnv(flags, variableOf(strings.TrimSuffix("dashboard-"+name, "-address")), f.flag(name))
		orFile(flags, below(dashboardTable, name), f.flag(name))
	}
}

// flag is the name of a flag: beside other flags that of the address says what is
// served.
func (f *dashboardFlags) flag(name string) string {
	return strings.TrimSuffix(f.prefix+name, "-address")
}

// byDefault takes the usual address when nobody said another one.
func (f *dashboardFlags) byDefault() {
	if f.address == "" {
		f.address, f.anyPort = dashboardValue(net.JoinHostPort(dashboardHost, strconv.Itoa(dashboardPort))), true
	}
}

// isOff reports whether no dashboard is served.
func (f *dashboardFlags) isOff() bool { return f.address == "" || f.address == dashboardOff }

// isLocal reports whether only this machine reaches the dashboard, as far as
// anybody can tell. Who names hosts has a proxy before it.
func (f *dashboardFlags) isLocal() bool {
	host, _, _ := net.SplitHostPort(string(f.address))
	return len(f.hosts) == 0 && isLoopback(host)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// dashboardConfig is how the dashboard of the settings is served, and finds out
// what is wrong with them. Whoever has the secret that it returns as well may do
// everything; it is empty when there is none, or when people have it already.
func (a *app) dashboardConfig(f *dashboardFlags) (c admin.Config, fresh string, err error) {
	c = admin.Config{Path: f.path, API: api.Config{
		Version: version(), Restricted: append(builtin.names(), demoHarmful...), HideArgs: f.hideArgs, Bounded: boundedKinds(),
	}}
	if invalid, ok := errors.AsType[*stint.InvalidError](checkPath(c)); ok {
		return c, "", settingf(f.flag("path"), "%s", invalid.Problem)
	}
	if _, err := f.certificates(); err != nil {
		return c, "", err
	}
	c.Guard, fresh, err = a.admit(f)
	return c, fresh, err
}

// checkPath finds what is wrong with the path of a dashboard.
func checkPath(c admin.Config) error {
	if c.Path == "" {
		return nil
	}
	_, err := admin.New(nil, c)
	return err
}

// admit says who gets in. On this machine alone everybody sees, unless somebody
// was named who does; to change something one needs the secret.
func (a *app) admit(f *dashboardFlags) (g guard.Config, fresh string, err error) {
	g = a.admission.guard()
	named := g.Knows()
	if g.Link, err = a.dashboardSecret(); err != nil {
		return g, "", err
	}
	switch {
	case !f.isLocal() && !named && g.Link == "":
		return g, "", withHint(settingf(f.flag("address"), "others can reach %s, and nobody says who may", f.address),
			"name tokens, users or a proxy in the file of settings (stint dashboard token --help), or set %s; 127.0.0.1:7070 is for this machine alone", secretVariable)
	case f.isLocal() && !named:
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

// hostsOf are the names that others know the server by.
func (f *dashboardFlags) hostsOf() ([]string, error) {
	if _, err := guard.New(guard.Config{Hosts: f.hosts}); err != nil {
		return nil, settingf(f.flag("hosts"), "%s", err.Error())
	}
	host, _, _ := net.SplitHostPort(string(f.address))
	if ip := net.ParseIP(host); len(f.hosts) == 0 && (host == "" || ip != nil && ip.IsUnspecified()) {
		return nil, withHint(settingf(f.flag("hosts"), "%s is all addresses of this machine, and none says by which names it is reached", f.address),
			"write for example --%s jobs.example.com", f.flag("hosts"))
	}
	if !isLoopback(host) && host != "" {
		return append(f.hosts[:len(f.hosts):len(f.hosts)], host), nil
	}
	return f.hosts, nil
}

// viewersOnly makes viewers of all whom the guard knows by a name.
func viewersOnly(g guard.Config) guard.Config {
	for i := range g.Tokens {
		g.Tokens[i].Role = guard.Viewer
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
