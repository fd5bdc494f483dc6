package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// A setting is a flag that the environment or a file may set as well. The flag's value
// reads all three, and so refuses the same everywhere. The marks on the flag name the
// variable and the key.
const (
	envMark  = "stint_env"
	fileMark = "stint_file"
)

// orEnv lets an environment variable set a flag that is not given.
func orEnv(flags *pflag.FlagSet, variable, name string) {
	flags.Lookup(name).Usage += " (env " + variable + ")"
	_ = flags.SetAnnotation(name, envMark, []string{variable})
}

func variableOf(name string) string {
	return "STINT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// orFile lets a key of a file set a flag that is not given in another way.
func orFile(flags *pflag.FlagSet, key, name string) {
	_ = flags.SetAnnotation(name, fileMark, []string{key})
}

// elsewhere lets the environment set flags, and a table of a file; without a name that is
// the top of the file.
func elsewhere(flags *pflag.FlagSet, table string, names ...string) {
	for _, name := range names {
		orEnv(flags, variableOf(name), name)
		orFile(flags, below(table, name), name)
	}
}

// marked is the environment variable or the key of a flag, if it has one.
func marked(f *pflag.Flag, mark string) string {
	if f == nil || len(f.Annotations[mark]) == 0 {
		return ""
	}
	return f.Annotations[mark][0]
}

// allSettings are the flags of all commands that a file may set, in the order in which
// stint config lists them.
func allSettings() *pflag.FlagSet {
	flags := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	new(databaseFlags).add(flags)
	new(engineFlags).add(flags)
	return flags
}

// origin is where a setting comes from.
type origin struct {
	from  string // as stint config shows it: --slots, STINT_SLOTS, stint.toml:3
	place string // as an error begins
	rank  int    // the highest wins; 0 is the default
}

const (
	fromFile = iota + 1
	fromEnvironment
	fromFlag
)

// readSettings sets the flags that were not given: from the environment, or else from the
// file, which is checked as a whole first. An empty variable counts as none.
func (a *app) readSettings(flags *pflag.FlagSet) error {
	a.origins = map[string]origin{}
	if err := a.readSetting(flags.Lookup("config"), nil); err != nil {
		return err
	}
	var file *settingsFile
	if _, given := a.origins["config"]; given {
		var err error
		if file, err = readFile(a.config); err != nil {
			return err
		}
		a.schedules, a.limits, a.admission, a.webhooks = file.schedules, file.limits, file.admission, file.webhooks
	}
	var first error
	flags.VisitAll(func(f *pflag.Flag) {
		if first == nil {
			first = a.readSetting(f, file)
		}
	})
	return first
}

func (a *app) readSetting(f *pflag.Flag, file *settingsFile) error {
	variable := marked(f, envMark)
	if f.Changed {
		a.origins[f.Name] = origin{"--" + f.Name, "--" + f.Name, fromFlag}
		return nil
	}
	if variable != "" && a.env(variable) != "" {
		a.origins[f.Name] = origin{variable, variable + " in the environment", fromEnvironment}
		if err := f.Value.Set(a.env(variable)); err != nil {
			return &usageError{&settingError{flag: f.Name, err: err}}
		}
		return nil
	}
	if e, ok := file.entry(marked(f, fileMark)); ok {
		a.origins[f.Name] = origin{fmt.Sprintf("%s:%d", file.path, e.line), e.place(), fromFile}
		return e.set(f.Value)
	}
	return nil
}

// settingError is about a setting. It begins with the place that the setting comes from:
// its flag, unless the app finds another one.
type settingError struct {
	flag, place string
	err         error
}

func (e *settingError) Error() string {
	return cmp.Or(e.place, "--"+e.flag) + ": " + problem(e.err, e.flag)
}

func (e *settingError) Unwrap() error { return e.err }

// problem leaves out a field that the place names.
func problem(err error, name string) string {
	var invalid *stint.InvalidError
	if errors.As(err, &invalid) && invalid.Field == name {
		return invalid.Problem
	}
	return err.Error()
}

// settingf is a mistake in the value of a flag.
func settingf(flag, format string, args ...any) error {
	return &usageError{&settingError{flag: flag, err: fmt.Errorf(format, args...)}}
}

// byFlag names the flag in an error about a field, if it was given by one.
func byFlag(flags *pflag.FlagSet, err error) error {
	var (
		invalid *stint.InvalidError
		hinted  *hintedError
	)
	if !errors.As(err, &invalid) || errors.As(err, &hinted) {
		return err
	}
	f := flags.Lookup(strings.ReplaceAll(invalid.Field, " ", "-"))
	if f == nil || !f.Changed {
		return err
	}
	return &usageError{&settingError{flag: f.Name, err: errors.New(invalid.Problem)}}
}

// placed gives an error about a setting its place.
func (a *app) placed(err error) error {
	var setting *settingError
	if errors.As(err, &setting) && setting.place == "" {
		setting.place = a.origins[setting.flag].place
	}
	return err
}

const configHelp = `config: Print the settings, and where each comes from

Config prints the settings that work would use with the same flags, and where each
comes from. It reports the same mistakes as work, and opens no database.

A setting comes from the first of these that has it: a flag, an environment variable,
the file, the default. --config or STINT_CONFIG names the file; there is no default file,
so that a directory cannot change what an engine does. It is TOML, and its keys are
flags:

  db = "postgres://app@db/shop"
  log-format = "json"

  [work]                         # of work and of up
  queues = ["mail", "default"]   # lists are arrays
  kinds = ["sh", "http"]
  slots = {mail = 4, "*" = 8}    # or a number, or "auto"
  grace = "90s"                  # what has a unit is in quotes

  [retention]                    # for how long ended jobs are kept; "5d" is for all
  failed = "30d"
  "mail:completed" = "1h"

  [kinds.http]
  private = true                 # --http-private
  callback = "https://jobs.example.com"  # --http-callback

  [kinds.http.secrets]           # that sign requests, by the receiver
  "hooks.example.com" = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

  [dashboard]                    # of up, work and stint dashboard
  address = "127.0.0.1:7070"     # --dashboard, or --address
  hosts = ["jobs.example.com"]   # --dashboard-hosts; and the others, secret, link-key

  [[dashboard.token]]            # as stint dashboard token prints it, once for each
  name = "ci"
  role = "operator"              # or viewer, or admin
  sha256 = "469e38c0935e59393319d50673af015cfc09235fd49b24cfe8cc7c5e23e6c39a"

  [[dashboard.user]]             # as stint dashboard password prints it
  name = "ann"
  role = "admin"
  bcrypt = "$2a$12$IJHet1miDr5wkqiESvmfvpKBFabLh73SnFI4EVf2TkthmYZJwXbj1"

  [dashboard.proxy]              # that names people in a header
  header = "X-Forwarded-User"
  trusted = ["10.0.0.5"]
  role = "viewer"                # of all people but these
  roles = {ann = "admin"}

  [limits]                       # declared by work and up; as stint limits set
  smtp = 10                      # at once, over all engines
  tenant = "2,100/1m"            # for each key: and 100 starts a minute

  [schedules.backup]             # declared by work and up; as stint schedules add
  cron = "30 2 * * *"            # or every = "5m"
  zone = "Europe/Berlin"
  kind = "sh"
  args = {argv = ["pg_dump", "shop"]}
  unique = true                  # and missed, queue, priority, retry, timeout, tags, …

Relative paths count from the working directory, like those of flags. Each command
checks the whole file: a wrong key or value ends it with code 2. Passwords are not
printed. The secret of the dashboard's link may also be in STINT_DASHBOARD_SECRET, the key
of links to questions (stint questions link) and of callbacks in STINT_DASHBOARD_LINK_KEY,
and faktory-password of the table [work] in STINT_FAKTORY_PASSWORD.

Examples:
  stint config --config /etc/stint.toml
  STINT_SLOTS=20 stint config --config /etc/stint.toml --json`

// shownSetting is a setting for people and for --json.
type shownSetting struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
	From    string `json:"from"`
}

func (a *app) configCommand() *cobra.Command {
	var flags engineFlags
	cmd := a.withJSON(a.onDatabase(page(configHelp), func(_ context.Context, cmd *cobra.Command, _ []string) error {
		if err := a.db.check(); err != nil {
			return err
		}
		if _, err := a.check(&flags); err != nil {
			return err
		}
		shown := a.effective(cmd.Flags(), &flags)
		if a.json {
			return a.printJSON(shown)
		}
		printTable(a, shown, "", row{"setting", "value", "from"}, func(s shownSetting) row { return row{s.Setting, cmp.Or(s.Value, "-"), s.From} })
		return nil
	}))
	flags.add(cmd.Flags())
	return cmd
}

// effective lists all settings with their values.
func (a *app) effective(flags *pflag.FlagSet, of *engineFlags) []shownSetting {
	leftOpen := of.leftOpen()
	var shown []shownSetting
	allSettings().VisitAll(func(known *pflag.Flag) {
		f := flags.Lookup(known.Name)
		s := shownSetting{marked(f, fileMark), withoutPassword(f.Value.String()), "default"}
		if o, given := a.origins[f.Name]; given {
			s.From = o.from
		} else if s.Value == "" {
			s.Value = leftOpen[f.Name]
		}
		shown = append(shown, s)
	})
	shown = append(shown, a.admission.shown...)
	shown = append(shown, a.webhooks.shown...)
	for _, l := range a.limits {
		shown = append(shown, l.shown())
	}
	for _, f := range a.schedules {
		shown = append(shown, f.shown())
	}
	return shown
}

// leftOpen says what an engine does with settings that have no default of their own.
func (f *engineFlags) leftOpen() map[string]string {
	poll, from, to := retry.FormatDuration(engine.DefaultPoll), retry.FormatDuration(engine.DefaultPollFrom), retry.FormatDuration(engine.DefaultPollTo)
	return map[string]string{
		"slots":      strconv.Itoa(engine.DefaultSlots()),
		"instance":   "host and a random suffix",
		"poll":       fmt.Sprintf("%s, or %s..%s without notifications", poll, from, to),
		"lease-wait": retry.FormatDuration(f.lease / 5),
		"retention":  retry.FormatDuration(store.DefaultRetention),
		"dashboard":  "127.0.0.1:7070 or the next free port with up, otherwise off",
	}
}

// passwords finds those in the addresses of databases.
var passwords = regexp.MustCompile(`(?i)(^\w+://[^/?#]*?:)[^/?#]*(@)|(password\s*=\s*)(?:'(?:[^'\\]|\\.)*'|[^\s&]+)`)

// withoutPassword hides the password of an address, also of a malformed one.
func withoutPassword(s string) string {
	return passwords.ReplaceAllString(s, "${1}${3}***${2}")
}
