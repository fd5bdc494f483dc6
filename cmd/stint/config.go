package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/retry"
)

const configLong = `Config prints the settings that work would run with, given the same flags, and
where each comes from. What is wrong with them it says as work would, and touches
no database.

A setting is a flag, an environment variable, a key in a file, or its default: the
first of these that is there. The file is the one that --config or STINT_CONFIG
names; none is looked for, so that no directory decides what an engine does. It is
TOML, and its keys are flags:

  db = "postgres://app@db/shop"
  log-format = "json"

  [work]                         # of work and of up
  queues = ["mail", "default"]   # lists are arrays
  kinds = ["sh", "http"]
  slots = {mail = 4, "*" = 8}    # or a number
  grace = "90s"                  # what has a unit is in quotes

  [retention]                    # for how long ended jobs are kept; "5d" is for all
  failed = "30d"
  "mail:completed" = "1h"

  [kinds.http]
  private = true                 # --http-private

  [dashboard]                    # of up, work and stint dashboard
  address = "127.0.0.1:7070"     # --dashboard, or --address
  hosts = ["jobs.example.com"]   # --dashboard-hosts; and the others, and secret

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
  role = "viewer"                # of all whom it names, but these
  roles = {ann = "admin"}

  [schedules.backup]             # declared by work and up; as stint schedules add
  cron = "30 2 * * *"            # or every = "5m"
  zone = "Europe/Berlin"
  kind = "sh"
  args = {argv = ["pg_dump", "shop"]}
  unique = true                  # and missed, queue, priority, retry, timeout, tags, …

Paths count from where stint is run, as those of flags do. A file is checked whole
by every command that reads it: a key or a value that is wrong ends it with code 2.
Passwords are not printed. The secret of the dashboard's link may also stand in
STINT_DASHBOARD_SECRET.`

const configExample = `  stint config --config /etc/stint.toml
  STINT_SLOTS=20 stint config --config /etc/stint.toml --json`

// shownSetting is a setting for people and for --json.
type shownSetting struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
	From    string `json:"from"`
}

func (a *app) configCommand() *cobra.Command {
	var flags engineFlags
	cmd := a.withJSON(a.onDatabase(&cobra.Command{
		Use:     "config",
		Short:   "Print the settings, and where each comes from",
		Long:    configLong,
		Example: configExample,
		Args:    arguments(0),
	}, func(_ context.Context, cmd *cobra.Command, _ []string) error {
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
		t := newTable(a.out, "setting", "value", "from")
		for _, s := range shown {
			value := words.Visible(s.Value)
			if value == "" {
				value = "-"
			}
			t.AppendRow([]any{s.Setting, value, words.Visible(s.From)})
		}
		t.Render()
		return nil
	}))
	flags.add(cmd.Flags())
	return cmd
}

// effective lists what a file may hold, as it stands now.
func (a *app) effective(flags *pflag.FlagSet, of *engineFlags) []shownSetting {
	leftOpen := of.leftOpen()
	var shown []shownSetting
	allSettings().VisitAll(func(known *pflag.Flag) {
		f := flags.Lookup(known.Name)
		s := shownSetting{marked(f, fileMark), withoutPassword(f.Value.String()), "default"}
		if d, ok := f.Value.(*durationValue); ok {
			s.Value = retry.FormatDuration(time.Duration(*d)) // also 0
		}
		if o, given := a.origins[f.Name]; given {
			s.From = o.from
		} else if s.Value == "" {
			s.Value = leftOpen[f.Name]
		}
		shown = append(shown, s)
	})
	shown = append(shown, a.admission.shown...)
	for _, f := range a.schedules {
		shown = append(shown, f.shown())
	}
	return shown
}

// leftOpen is what an engine makes of settings that nobody said anything of.
func (f *engineFlags) leftOpen() map[string]string {
	poll, from, to := retry.FormatDuration(engine.DefaultPoll), retry.FormatDuration(engine.DefaultPollFrom), retry.FormatDuration(engine.DefaultPollTo)
	return map[string]string{
		"slots":      strconv.Itoa(engine.DefaultSlots()),
		"instance":   "host and a random suffix",
		"poll":       fmt.Sprintf("%s, or %s..%s without notifications", poll, from, to),
		"lease-wait": retry.FormatDuration(f.lease / 5),
		"retention":  retry.FormatDuration(stint.DefaultRetention),
		"dashboard":  "127.0.0.1:7070 or the next free port with up, otherwise off",
	}
}

// passwords are those in the addresses of databases, of either form.
var passwords = regexp.MustCompile(`(?i)(^\w+://[^/?#]*?:)[^/?#]*(@)|(password\s*=\s*)(?:'(?:[^'\\]|\\.)*'|[^\s&]+)`)

// withoutPassword hides the password of an address, also of one that is
// malformed.
func withoutPassword(s string) string {
	return passwords.ReplaceAllString(s, "${1}${3}***${2}")
}
