package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commands goes through all that there are.
func commands(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, member := range c.Commands() {
		commands(member, do)
	}
}

// U110: what a flag is without being given stands in the help of its command,
// as does the variable that may stand in for it.
func TestHelpTellsOfDefaultsAndVariables(t *testing.T) {
	root := newApp().rootCommand()
	root.InitDefaultHelpCmd()
	commands(root, func(c *cobra.Command) {
		if c.Short == "" {
			t.Errorf("%s does not say what it is for", c.CommandPath())
		}
		if c.Parent() != nil && c.Parent().Name() == "completion" {
			return // not of our making
		}
		text := c.UsageString()
		starts := c.CommandPath() == "stint work" || c.CommandPath() == "stint up"
		see := func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			usage := line(text, f.Name)
			if variable := marked(f, envMark); variable != "" && !strings.Contains(usage, "(env "+variable+")") {
				t.Errorf("the help of %s does not say that %s stands in for --%s: %s", c.CommandPath(), variable, f.Name, usage)
			}
			if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "[]" && !strings.Contains(usage, "default") {
				t.Errorf("the help of %s does not say that --%s is %s when it is not given: %s", c.CommandPath(), f.Name, f.DefValue, usage)
			}
			// Whoever starts an engine is told of each setting what it is otherwise; a switch is off.
			if starts && marked(f, fileMark) != "" && f.Value.Type() != "bool" && !strings.Contains(usage, "default") {
				t.Errorf("the help of %s does not say what --%s is when it is not given: %s", c.CommandPath(), f.Name, usage)
			}
		}
		c.InheritedFlags()
		c.Flags().VisitAll(see)
		if !c.HasAvailableSubCommands() && !strings.Contains(text, "(env STINT_DB)") {
			t.Errorf("the help of %s does not name STINT_DB", c.CommandPath())
		}
	})
}

// One rule for all nouns: where there is a list, the noun alone is that, with its flags.
func TestANounAloneLists(t *testing.T) {
	commands(newApp().rootCommand(), func(c *cobra.Command) {
		for _, list := range c.Commands() {
			if list.Name() != "list" {
				continue
			}
			if c.Annotations[groupMark] != "" {
				t.Errorf("%s prints its help and not the list", c.CommandPath())
			}
			list.LocalFlags().VisitAll(func(f *pflag.Flag) {
				if c.Flags().Lookup(f.Name) != f {
					t.Errorf("%s has not --%s of its list", c.CommandPath(), f.Name)
				}
			})
		}
	})
}

// line is what a help says of a flag.
func line(help, flag string) string {
	for l := range strings.Lines(help) {
		l = strings.TrimSpace(l)
		if _, long, short := strings.Cut(l, ", --"); short && l[0] == '-' {
			l = "--" + long
		}
		if strings.HasPrefix(l, "--"+flag+" ") {
			return l
		}
	}
	return ""
}

// examples are three values that a setting takes and shows differently.
func examples(f *pflag.Flag) []string {
	candidates := [][]string{
		{"true", "false", "true"}, {"3s", "4s", "5s"}, {"3", "4", "5"}, {"a", "b", "c"}, {"100MiB", "200MiB", "300MiB"},
		{"127.0.0.1:9070", "127.0.0.1:9071", "127.0.0.1:9072"},
	}
	switch f.Name {
	case "log-level":
		candidates = [][]string{{"debug", "error", "debug"}}
	case "log-format":
		candidates = [][]string{{"text", "json", "text"}}
	case "kinds":
		candidates = [][]string{{"sh", "http", "sh,http"}}
	case "http-callback":
		candidates = [][]string{{"http://a", "http://b", "http://c"}}
	}
	for _, three := range candidates {
		good := true
		for _, value := range three {
			fresh := allSettings().Lookup(f.Name)
			good = good && fresh.Value.Set(value) == nil && (f.Value.Type() == "bool") == (three[0] == "true")
		}
		if good {
			return three
		}
	}
	return nil
}

// U116: whatever a setting is, a flag wins over the environment, that over the
// file, and the file over the default.
func TestEverySettingGoesByFlagThenEnvironmentThenFileThenDefault(t *testing.T) {
	dir := t.TempDir()
	allSettings().VisitAll(func(f *pflag.Flag) {
		three := examples(f)
		if three == nil {
			t.Errorf("there are no examples of values for --%s", f.Name)
			return
		}
		key, variable := marked(f, fileMark), marked(f, envMark)
		path := filepath.Join(dir, f.Name+".toml")
		quoted := fmt.Sprintf("%q", three[0])
		if f.Value.Type() == "bool" || f.Value.Type() == "int" || f.Name == "slots" {
			quoted = three[0]
		} else if f.Value.Type() == "names" {
			quoted = fmt.Sprintf("[%q]", three[0])
		}
		if err := os.WriteFile(path, []byte(key+" = "+quoted+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		flag, file := "--"+f.Name+"="+three[2], "--config="+path
		for _, c := range []struct {
			env  string
			args []string
			from string
		}{
			{"", nil, "default"},
			{"", []string{file}, path + ":1"},
			{three[1], []string{file}, variable},
			{three[1], nil, variable},
			{three[1], []string{file, flag}, "--" + f.Name},
			{"", []string{file, flag}, "--" + f.Name},
			{"", []string{flag}, "--" + f.Name},
		} {
			if c.from == variable && variable == "" {
				continue // it has none
			}
			env := map[string]string{variable: c.env}
			switch f.Name { // these make sense beside another one only
			case "http-callback":
				env[linkVariable] = strings.Repeat("k", 32)
			case "schema":
				env["STINT_DB"] = "postgres://localhost/shop"
			case "strict-instance":
				env["STINT_INSTANCE"] = "one"
			}
			if from := originOf(t, key, env, c.args); from != c.from {
				t.Errorf("%s with %s=%q and %v comes from %q, want %q", key, variable, c.env, c.args, from, c.from)
			}
		}
	})
}

// originOf is where stint config says that a setting comes from.
func originOf(t *testing.T, key string, env map[string]string, args []string) string {
	t.Helper()
	var out, errs strings.Builder
	a := &app{in: strings.NewReader(""), out: &out, err: &errs, env: func(name string) string { return env[name] }, exit: func(int) {}}
	if code := a.run(append([]string{"config", "--json"}, args...)); code != exitOK {
		t.Fatalf("stint config %v: %s", args, errs.String())
	}
	var all []struct{ Setting, From string }
	if err := json.Unmarshal([]byte(out.String()), &all); err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Setting == key {
			return s.From
		}
	}
	t.Fatalf("stint config does not tell of %s: %s", key, out.String())
	return ""
}
