package cli

import (
	"encoding/json"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/internal/proof/pages"
)

var update = flag.Bool("update", false, "write docs/commands.md and docs/settings.md")

const writesReference = "make reference-pages"

// flagText is what a help says of a flag, taken apart.
type flagText struct{ value, meaning, variable, byDefault string }

var (
	inVariable = regexp.MustCompile(` \(env (\w+)\)`)
	inDefault  = regexp.MustCompile(` \(default ((?:[^()]|\([^()]*\))*)\)`)
)

func textOf(f *pflag.Flag) (t flagText) {
	t.value, t.meaning = pflag.UnquoteUsage(f)
	for _, part := range []struct {
		in  *regexp.Regexp
		out *string
	}{{inVariable, &t.variable}, {inDefault, &t.byDefault}} {
		if m := part.in.FindStringSubmatch(t.meaning); m != nil {
			*part.out = m[1]
			t.meaning = strings.Replace(t.meaning, m[0], "", 1)
		}
	}
	if d := f.DefValue; t.byDefault == "" && d != "" && d != "false" && d != "[]" && d != "0" {
		t.byDefault = d
	}
	if t.byDefault == whoami() { // of this machine
		t.byDefault = "user@host"
	}
	return t
}

func codeOf(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// prose is one paragraph of a page.
func prose(text string) string { return strings.TrimSpace(pages.Prose(text)) }

// flagTables makes the tables of flags of a page.
type flagTables struct {
	before []string // the commands with many flags, in the order of the page
	rows   map[string][][]string
}

// of lists the flags of a command. Those that are also all flags of one before are those of that one.
func (p *flagTables) of(name string, flags *pflag.FlagSet) string {
	rows := flagRows(flags)
	var shared strings.Builder
	for _, other := range p.before {
		if p.rows[other] != nil && !slices.ContainsFunc(p.rows[other], func(row []string) bool { return !containsRow(rows, row) }) {
			rows = slices.DeleteFunc(slices.Clone(rows), func(row []string) bool { return containsRow(p.rows[other], row) })
			shared.WriteString("\nThe flags of " + pages.Link(other, other) + " as well.\n")
		}
	}
	if len(rows) > 8 {
		p.before = append(p.before, name)
		p.rows[name] = rows
	}
	if len(rows) == 0 {
		return shared.String()
	}
	return shared.String() + "\n" + pages.Table(append([][]string{{"flag", "meaning", "default", "variable"}}, rows...)...)
}

func containsRow(rows [][]string, row []string) bool {
	return slices.ContainsFunc(rows, func(r []string) bool { return slices.Equal(r, row) })
}

func flagRows(flags *pflag.FlagSet) (rows [][]string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		t := textOf(f)
		name := strings.TrimSpace("--" + f.Name + " " + t.value)
		if f.NoOptDefVal != "" && f.Value.Type() != "bool" {
			name = "--" + f.Name + "[=" + strings.TrimSuffix(t.value, "[="+f.NoOptDefVal+"]") + "]"
		}
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		rows = append(rows, []string{codeOf(name), prose(t.meaning), prose(t.byDefault), codeOf(t.variable)})
	})
	return rows
}

// notes are the words after a command among examples.
var notes = regexp.MustCompile(`(?m)(\S)   +(\S)`)

// section is what the page says of a command, without those below it.
func (p *flagTables) section(c *cobra.Command) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%s %s\n", strings.Repeat("#", 1+len(strings.Fields(c.CommandPath()))), c.CommandPath())
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	out.WriteString("\n" + pages.Prose(text))
	if c.Annotations[groupMark] == "" {
		fmt.Fprintf(&out, "\n```text\n%s\n```\n", c.UseLine())
	}
	if len(c.Aliases) > 0 {
		fmt.Fprintf(&out, "\nShorter: `%s`.\n", strings.Join(c.Aliases, "`, `"))
	}
	if c.Example != "" {
		fmt.Fprintf(&out, "\n```sh\n%s\n```\n", notes.ReplaceAllString(strings.ReplaceAll(strings.TrimPrefix(c.Example, "  "), "\n  ", "\n"), "$1  # $2"))
	}
	if members := c.Commands(); len(members) > 0 {
		rows := [][]string{{"command", "what it does"}}
		for _, m := range members {
			rows = append(rows, []string{pages.Link(m.CommandPath(), m.CommandPath()), prose(m.Short)})
		}
		out.WriteString("\n" + pages.Table(rows...))
		if c.RunE != nil && members[0].Name() == "list" {
			return out.String() // its flags are those of list
		}
	}
	return out.String() + p.of(c.CommandPath(), c.NonInheritedFlags())
}

func TestThePageOfCommandsIsWhatTheyHelpWith(t *testing.T) {
	root := newApp().rootCommand()
	p := &flagTables{rows: map[string][][]string{}}
	var out, parts strings.Builder
	out.WriteString("# Commands\n\nWhat `--help` prints of each command of the version that this page is part of. Settings that a file can give\nare in [settings.md](settings.md).\n")
	for _, group := range root.Groups() {
		rows := [][]string{{"command", "what it does"}}
		fmt.Fprintf(&parts, "\n## %s\n", group.ID)
		for _, c := range root.Commands() {
			if c.GroupID != group.ID {
				continue
			}
			rows = append(rows, []string{pages.Link(c.CommandPath(), c.CommandPath()), prose(c.Short)})
			commands(c, func(c *cobra.Command) {
				parts.WriteString(p.section(c))
			})
		}
		out.WriteString("\n" + pages.Link("**"+group.ID+"**", group.ID) + "\n\n" + pages.Table(rows...))
	}
	out.WriteString("\n## stint\n\n" + pages.Prose(rootLong) + "\nAll commands have these flags:\n" + p.of("stint", root.PersistentFlags()))
	out.WriteString("\n`stint completion SHELL` prints completions for bash, zsh, fish and powershell.\n")
	pages.Written(t, "../../docs/commands.md", out.String()+parts.String(), *update, writesReference)
}

// settingTable lists settings of one table of a file.
func settingTable(flags *pflag.FlagSet, key func(*pflag.Flag) string) string {
	rows := [][]string{{"key", "value", "default", "meaning", "flag", "variable"}}
	flags.VisitAll(func(f *pflag.Flag) {
		name := key(f)
		if name == "" {
			return
		}
		t, flag := textOf(f), ""
		if marked(f, fileMark) != "" {
			flag = codeOf("--" + f.Name)
		}
		if f.Value.Type() == "bool" {
			t.value, t.byDefault = "true or false", "false"
		}
		rows = append(rows, []string{codeOf(name), t.value, prose(t.byDefault), prose(t.meaning), flag, codeOf(t.variable)})
	})
	return "\n" + pages.Table(rows...)
}

func TestThePageOfSettingsIsWhatAFileTakes(t *testing.T) {
	var out strings.Builder
	out.WriteString("# Settings\n\n" + `Each setting of a file in TOML, which ` + "`--config`" + ` or ` + "`STINT_CONFIG`" + ` names, with the flag and the environment
variable that say the same. A flag wins over a variable, that over the file, and the file over the default.
` + "`stint config`" + ` prints what counts and where it comes from; [its help](commands.md#stint-config) shows a whole file.

How values are written in the file: true, false and numbers as they are; names as an array, ` + "`[\"mail\", \"default\"]`" + `; all else
in quotes: a duration ` + "`\"1h30m\"`" + `, a size ` + "`\"512MiB\"`" + `, an address ` + "`\"127.0.0.1:9070\"`" + `. Slots are a number or a table,
` + "`{mail = 4, \"*\" = 8}`" + `, ages are ` + "`\"5d\"`" + ` or a table. On the command line and in variables names are separated by commas.
`)
	table := func(title, about string, flags *pflag.FlagSet, key func(*pflag.Flag) string) {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n%s", title, about, settingTable(flags, key))
	}
	tables := map[string]bool{}
	ofFlags := func(of, title, about string) {
		tables[of] = true
		table(title, about, allSettings(), func(f *pflag.Flag) string {
			in, key := tableOf(marked(f, fileMark))
			return map[bool]string{true: key}[in == of]
		})
	}
	named := func(f *pflag.Flag) string { return f.Name }
	ofFlags("", "Top of the file", "The database, the log, and how long ended jobs are kept.")
	ofFlags(workTable, "[work]", "Engines, of `stint work` and `stint up`. `faktory-password`, or `"+faktoryVariable+"`, is the password of `--faktory`.")
	ofFlags("kinds.http", "[kinds.http]", "The built-in kind http. The secrets that sign its requests are in a table of their own, by the receiver's host:\n"+
		"`[kinds.http.secrets]` with `\"hooks.example.com\" = \"whsec_…\"`; `\"*\"` is for all others.")
	ofFlags(dashboardTable, "[dashboard]", "Of `stint dashboard`, and of `stint work` and `stint up` if they serve one. `stint dashboard` has these flags without\n"+
		"`dashboard-`, and `--address`. Two have no flag, since other users may see command lines: `secret`, or\n`"+secretVariable+
		"`, is that of the link; `link-key`, or `"+linkVariable+"`, signs links to questions and callbacks.")
	allSettings().VisitAll(func(f *pflag.Flag) {
		if of, key := tableOf(marked(f, fileMark)); key != "" && !tables[of] {
			t.Errorf("the page has no table [%s] for --%s", of, f.Name)
		}
	})
	none := func(string) error { return nil }
	table("[[dashboard.token]]", "A program that may use the dashboard and the API; one table for each, with a name, a role and a hash. `stint dashboard token`\nprints it.", namedFlags(&guard.Token{}, none, tokenHash, none), named)
	table("[[dashboard.user]]", "A person who may log in; one table for each, with all of these. `stint dashboard password` prints it.", namedFlags(&guard.Token{}, none, userHash, none), named)
	table("[dashboard.proxy]", "A proxy in front of the dashboard that names people in a header. It needs `header` and `trusted`.", proxyFlags(&guard.Proxy{}), named)
	out.WriteString("\n## [limits]\n\nLimits that engines declare, by name: `smtp = 10`, `tenant = \"2,100/1m\"`. What a limit may say is in\n[limits.md](limits.md).\n")
	var (
		kind string
		args json.RawMessage
	)
	schedule := pflag.NewFlagSet("", pflag.ContinueOnError)
	schedule.SortFlags = false
	new(scheduleFlags).addToFile(schedule, &kind, &args)
	table("[schedules.NAME]", "A schedule that engines declare; one table for each, with a kind and one of `cron`, `every` and `function`.", schedule, named)
	out.WriteString("\n## Variables alone\n\n" + pages.Table([]string{"variable", "meaning"},
		[]string{"`STINT_CONFIG`", "the file"},
		[]string{"`STINT_SERVER`", "as `--server`: a stint server to ask, in place of a database"},
		[]string{codeOf(tokenVariable), "the token for that server; `--token-file` names a file with it"},
		[]string{"`STINT_CORRELATION`", "as `--correlation` of commands that enqueue; jobs of the kind sh have it"},
		[]string{codeOf(tracesExporter), "otlp or none: whether attempts are traced; set by itself if there is an endpoint"},
		[]string{codeOf(anyEndpoint), "where traces are exported; the other variables of OpenTelemetry hold as well"},
	))
	pages.Written(t, "../../docs/settings.md", out.String(), *update, writesReference)
}

// tableOf divides a key of a file into its table and its name.
func tableOf(key string) (table, name string) {
	at := strings.LastIndexByte(key, '.')
	return key[:max(at, 0)], key[at+1:]
}
