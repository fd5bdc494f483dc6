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

	"golang.org/x/crypto/bcrypt"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/internal/valid"
)

// What of a file's table [dashboard] is no flag: who gets in.
const (
	secretKey = "dashboard.secret"
	tokenKey  = "dashboard.token"
	userKey   = "dashboard.user"
	proxyKey  = "dashboard.proxy"
)

// secretVariable is the environment variable that stands in for the secret. There
// is no flag: others may see command lines.
const secretVariable = "STINT_DASHBOARD_SECRET"

// leastCost is that of a bcrypt hash that takes long enough to guess.
const leastCost = 10

// admission is who gets to a dashboard, as a file says.
type admission struct {
	secret string
	tokens []guard.Token
	users  []guard.User
	proxy  guard.Proxy

	shown []shownSetting
}

// isAdmission reports whether a key is read by readAdmission.
func isAdmission(key string) bool {
	return slices.Contains([]string{secretKey, tokenKey, userKey, proxyKey}, key)
}

// guard knows those of the admission. It is not to be changed by who reads it
// next.
func (a *admission) guard() guard.Config {
	g := guard.Config{Tokens: slices.Clone(a.tokens), Users: slices.Clone(a.users), Proxy: a.proxy}
	g.Proxy.Roles = maps.Clone(a.proxy.Roles)
	return g
}

// dashboardSecret is the one that people chose; empty when they did not.
func (a *app) dashboardSecret() (string, error) {
	secret := a.env(secretVariable)
	if secret == "" {
		return a.admission.secret, nil
	}
	if err := checkSecret(secret); err != nil {
		return "", usagef("%s in the environment: %w", secretVariable, err)
	}
	return secret, nil
}

func checkSecret(secret string) error {
	_, err := guard.New(guard.Config{Link: secret})
	if invalid, ok := errors.AsType[*stint.InvalidError](err); ok {
		return withHint(errors.New(invalid.Problem), "openssl rand -hex 16 makes a good one")
	}
	return nil
}

// readAdmission reads one of the keys.
func (f *settingsFile) readAdmission(e entry) error {
	to := &f.admission
	switch e.key {
	case secretKey:
		if err := e.text(&to.secret, checkSecret); err != nil {
			return err
		}
		to.show(e, e.key, "***")
	case tokenKey:
		return f.elements(e, to.readToken)
	case userKey:
		return f.elements(e, to.readUser)
	case proxyKey:
		return f.readProxy(e)
	}
	return nil
}

// show has stint config show something of a file.
func (a *admission) show(of entry, key, value string) {
	a.shown = append(a.shown, shownSetting{key, value, fmt.Sprintf("%s:%d", of.file, of.line)})
}

func (a *admission) readToken(e entry) error {
	var t guard.Token
	err := e.fields(
		field{"name", true, func(part entry) error {
			return part.text(&t.Name, func(name string) error {
				return checkOwn(name, slices.ContainsFunc(a.tokens, func(other guard.Token) bool { return other.Name == name }))
			})
		}},
		field{"role", true, func(part entry) error { return part.role(&t.Role) }},
		field{"sha256", true, func(part entry) error { return part.text(&t.Hash, checkSHA256) }},
	)
	a.tokens = append(a.tokens, t)
	a.show(e, below(e.key, t.Name), t.Role.String())
	return err
}

func (a *admission) readUser(e entry) error {
	var u guard.User
	err := e.fields(
		field{"name", true, func(part entry) error {
			return part.text(&u.Name, func(name string) error {
				if err := checkPerson(name); err != nil {
					return err
				}
				return checkOwn(name, slices.ContainsFunc(a.users, func(other guard.User) bool { return other.Name == name }))
			})
		}},
		field{"role", true, func(part entry) error { return part.role(&u.Role) }},
		field{"bcrypt", true, func(part entry) error { return part.text(&u.Hash, checkBcrypt) }},
	)
	a.users = append(a.users, u)
	a.show(e, below(e.key, u.Name), u.Role.String())
	return err
}

// readProxy reads what is in front of the dashboard and knows people.
func (f *settingsFile) readProxy(e entry) error {
	inner, ok := e.value.(map[string]any)
	if !ok {
		return e.refuse(fmt.Errorf("it is %s; write a table: [%s]", formOf(e.value), e.key))
	}
	e.parts = f.list(e.key, inner)
	p := &f.admission.proxy
	err := e.fields(
		field{"header", true, func(part entry) error { return part.text(&p.Header, checkHeader) }},
		field{"trusted", true, func(part entry) error {
			var texts []string
			if err := part.set(listValue{&texts, "trusted"}); err != nil {
				return err
			}
			for _, text := range texts {
				prefix, err := parsePrefix(text)
				if err != nil {
					return part.refuse(err)
				}
				p.Trusted = append(p.Trusted, prefix)
			}
			return nil
		}},
		field{"role", false, func(part entry) error { return part.role(&p.Others) }},
		field{"roles", false, func(part entry) error {
			people, ok := part.value.(map[string]any)
			if !ok {
				return part.refuse(fmt.Errorf(`it is %s; write a table: {ann = "admin"}`, formOf(part.value)))
			}
			p.Roles = map[string]guard.Role{}
			for _, person := range f.list(part.key, people) {
				var role guard.Role
				if err := person.role(&role); err != nil {
					return err
				}
				p.Roles[person.name] = role
			}
			return nil
		}},
	)
	f.admission.show(e, e.key, p.Header)
	return err
}

// elements reads each table of an array of tables.
func (f *settingsFile) elements(e entry, read func(entry) error) error {
	all, ok := e.value.([]any)
	if !ok {
		return e.refuse(fmt.Errorf("it is %s; write a table for each: [[%s]]", formOf(e.value), e.key))
	}
	for i, value := range all {
		inner, ok := value.(map[string]any)
		if !ok {
			return e.refuse(fmt.Errorf("there is %s in it; write a table for each: [[%s]]", formOf(value), e.key))
		}
		one := e
		key := element(e.key, i)
		if line := f.lines[key]; line > 0 {
			one.line = line
		}
		f.lines[key] = one.line
		one.parts = f.list(key, inner)
		for i := range one.parts {
			one.parts[i].key = below(e.key, one.parts[i].name)
		}
		if err := read(one); err != nil {
			return err
		}
	}
	return nil
}

// field is what may stand in a table, and what reads it.
type field struct {
	name   string
	needed bool
	read   func(part entry) error
}

// fields reads the parts of a table.
func (e entry) fields(all ...field) error {
	var names []string
	for _, f := range all {
		names = append(names, f.name)
	}
	for _, part := range e.parts {
		i := slices.Index(names, part.name)
		if i < 0 {
			return withHint(usagef("%s:%d: there is no setting %s", part.file, part.line, part.key), "%s has %s", e.key, strings.Join(names, ", "))
		}
		if err := all[i].read(part); err != nil {
			return err
		}
	}
	for _, f := range all {
		if f.needed && !slices.ContainsFunc(e.parts, func(part entry) bool { return part.name == f.name }) {
			return e.refuse(fmt.Errorf("it has no %s", f.name))
		}
	}
	return nil
}

// text reads a string that a check finds nothing wrong with.
func (e entry) text(to *string, check func(string) error) error {
	text, ok := e.value.(string)
	if !ok {
		return e.refuse(fmt.Errorf("it is %s; write a string", formOf(e.value)))
	}
	*to = text
	return e.refuse(check(text))
}

// role reads the name of a role.
func (e entry) role(to *guard.Role) error {
	var text string
	return e.text(&text, func(text string) error { return to.UnmarshalText([]byte(text)) })
}

// checkOwn judges a name that another one may have.
func checkOwn(name string, taken bool) error {
	if taken {
		return fmt.Errorf("%q is there twice", name)
	}
	return valid.Name("name", name)
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

// parsePrefix reads an address, or many: 10.0.0.0/8. Nobody trusts all of them.
func parsePrefix(text string) (netip.Prefix, error) {
	if one, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(one.Unmap().WithZone(""), one.Unmap().BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return prefix, fmt.Errorf("%q is not an address, such as 10.0.0.5 or 10.0.0.0/24", text)
	case prefix.Bits() == 0:
		return prefix, fmt.Errorf("%q are all addresses: whoever sends the header would be who they say", text)
	}
	return prefix, nil
}
