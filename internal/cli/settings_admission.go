package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/crypto/bcrypt"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/internal/valid"
)

// The keys of a file's table [dashboard] that are no flags.
const (
	secretKey = dashboardTable + ".secret"
	linkKey   = dashboardTable + ".link-key"
	tokenKey  = dashboardTable + ".token"
	userKey   = dashboardTable + ".user"
	proxyKey  = dashboardTable + ".proxy"
)

// The fields with the hash of a token and of a password.
const (
	tokenHash = "sha256"
	userHash  = "bcrypt"
)

var admissionKeys = []string{secretKey, linkKey, tokenKey, userKey, proxyKey, faktoryKey}

// secretVariable is the environment variable of the secret. There is no flag: other users
// may see command lines.
const secretVariable = "STINT_DASHBOARD_SECRET"

// linkVariable is that of the key by which links to questions are signed.
const linkVariable = "STINT_DASHBOARD_LINK_KEY"

// leastCost is that of a bcrypt hash that takes long enough to guess.
const leastCost = 10

// admission is what a file says about who may use a dashboard.
type admission struct {
	secret string
	link   string // the key of links
	tokens []guard.Token
	users  []guard.User
	proxy  guard.Proxy

	faktory string // the password of the Faktory work protocol

	shown   []shownSetting
	changed time.Time // when the file was, before it was read
}

// guard returns the settings of a guard. The caller may change them.
func (a *admission) guard() guard.Config {
	g := guard.Config{Tokens: slices.Clone(a.tokens), Users: slices.Clone(a.users), Proxy: a.proxy}
	g.Proxy.Roles = maps.Clone(a.proxy.Roles)
	return g
}

// linkKey is the key of links, if there is one.
func (a *app) linkKey() (string, error) { return a.secretOf(linkVariable, a.admission.link) }

// secretOf is a secret of the environment, or else that of the file.
func (a *app) secretOf(variable, inFile string) (string, error) {
	secret := a.env(variable)
	if secret == "" {
		return inFile, nil
	}
	if err := checkSecret(secret); err != nil {
		return "", usagef("%s in the environment: %w", variable, err)
	}
	return secret, nil
}

func (a *admission) read(e entry) error {
	switch e.key {
	case secretKey:
		a.show(e, e.key, "***")
		return e.set(checked("secret", checkSecret).in(&a.secret))
	case linkKey:
		a.show(e, e.key, "***")
		return e.set(checked("key", checkSecret).in(&a.link))
	case faktoryKey:
		a.show(e, e.key, "***")
		return e.set(checked("password", checkSecret).in(&a.faktory))
	case proxyKey:
		return a.readProxy(e)
	}
	all, err := e.elements()
	if err != nil {
		return err
	}
	for _, one := range all {
		var t guard.Token
		if e.key == tokenKey {
			t, err = a.readNamed(one, e.key, tokenHash, checkSHA256)
			a.tokens = append(a.tokens, t)
		} else {
			t, err = a.readNamed(one, e.key, userHash, checkBcrypt)
			a.users = append(a.users, guard.User{Name: t.Name, Role: t.Role, Hash: t.Hash})
		}
		if err != nil {
			return err
		}
		a.show(one, below(e.key, t.Name), t.Role.String())
	}
	return nil
}

// readNamed reads a table with a name, a role and a hash, which has a name of its own. Users
// have the same fields as tokens.
func (a *admission) readNamed(e entry, array, hash string, checkHash func(string) error) (t guard.Token, err error) {
	checkName := func(name string) error {
		switch {
		case slices.ContainsFunc(a.shown, func(s shownSetting) bool { return s.Setting == below(array, name) }):
			return fmt.Errorf("%q is there twice", name)
		case array == userKey:
			return checkPerson(name)
		}
		return valid.Name("name", name)
	}
	known := namedFlags(&t, checkName, hash, checkHash)
	err = e.fill(known, "name", "role", hash)
	if err == nil && t.Role != guard.Worker && len(t.Queues)+len(t.Kinds) > 0 {
		err = e.refuse(errWorkersOnly)
	}
	return t, err
}

// namedFlags are what the table of a token or of a user has.
func namedFlags(t *guard.Token, checkName func(string) error, hash string, checkHash func(string) error) *pflag.FlagSet {
	known := pflag.NewFlagSet("", pflag.ContinueOnError)
	known.SortFlags = false
	known.Var(checked("name", checkName).in(&t.Name), "name", "who it is, in the log of changes as well")
	known.Var(roles.in(&t.Role), "role", "what it may do: viewer, operator, admin or, of a token, worker")
	known.Lookup("role").DefValue = "" // it is needed
	known.Var(checked("hash", checkHash).in(&t.Hash), hash, "the hash that stint dashboard token or password prints")
	if hash == tokenHash {
		known.Var(nameList(&t.Queues, "queues"), "queues", "the queues that a worker may work on (default all)")
		known.Var(nameList(&t.Kinds, "kinds"), "kinds", "the kinds that a worker may perform (default all)")
	}
	return known
}

var errWorkersOnly = errors.New("queues and kinds bound the role worker only")

// show adds a line to what stint config shows.
func (a *admission) show(e entry, key, value string) {
	a.shown = append(a.shown, shownSetting{key, value, fmt.Sprintf("%s:%d", e.file.path, e.line)})
}

// roles are written by name.
var roles = syntax[guard.Role]{name: "role", format: guard.Role.String, parse: func(text string) (r guard.Role, err error) {
	err = r.UnmarshalText([]byte(text))
	return r, err
}}

// readProxy reads the proxy in front of the dashboard, which names people.
func (a *admission) readProxy(e entry) error {
	p := &a.proxy
	err := e.fill(proxyFlags(p), "header", "trusted")
	a.show(e, e.key, p.Header)
	return err
}

func proxyFlags(p *guard.Proxy) *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Var(checked("header", checkHeader).in(&p.Header), "header", "the header in which it names the person")
	flags.Var(listValue[netip.Prefix]{&p.Trusted, "names", parsePrefix}, "trusted", "the addresses of the proxy, or ranges of them: 10.0.0.5, 10.0.0.0/24")
	flags.Var(roles.in(&p.Others), "role", "the role of all people but those in roles (default none: they are refused)")
	flags.Var(fileOnly(func(e entry) error {
		p.Roles = map[string]guard.Role{}
		return setParts(e, `a table: {ann = "admin"}`, "a string", func(person, role string) (err error) {
			p.Roles[person], err = roles.parse(role)
			return err
		})
	}), "roles", "the roles of people: {ann = \"admin\"}")
	return flags
}

func checkSecret(secret string) error {
	_, err := guard.New(guard.Config{Link: secret})
	if invalid, ok := errors.AsType[*stint.InvalidError](err); ok {
		return withHint(errors.New(invalid.Problem), "openssl rand -hex 16 makes a good one")
	}
	return nil
}

func checkSHA256(text string) error {
	if raw, err := hex.DecodeString(text); err != nil || len(raw) != sha256.Size {
		return withHint(errors.New("it is not the SHA-256 of a token in hex"), "stint dashboard token makes a token, and prints what to write")
	}
	return nil
}

func checkBcrypt(text string) error {
	cost, err := bcrypt.Cost([]byte(text))
	switch {
	case err != nil:
		return withHint(errors.New("it is not the bcrypt hash of a password"), "stint dashboard password reads one, and prints what to write")
	case cost < leastCost:
		return fmt.Errorf("a hash of cost %d is guessed too cheaply; %d at least", cost, leastCost)
	}
	return nil
}

func checkHeader(name string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		return fmt.Errorf("%q is not the name of a header, such as X-Forwarded-User", name)
	}
	return nil
}

// parsePrefix reads an address or a range of addresses: 10.0.0.0/8. A range of all
// addresses is refused.
func parsePrefix(text string) (netip.Prefix, error) {
	if one, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(one.Unmap().WithZone(""), one.Unmap().BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return prefix, fmt.Errorf("%q is not an address, such as 10.0.0.5 or 10.0.0.0/24", text)
	case prefix.Bits() == 0:
		return prefix, fmt.Errorf("%q are all addresses: any sender of the header could claim to be anyone", text)
	}
	return prefix, nil
}
