package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestAllThatAnEngineIsToldMayStandInAFile(t *testing.T) {
	root := newApp().rootCommand()
	for _, name := range []string{"work", "up", "config"} {
		cmd, _, err := root.Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		cmd.InheritedFlags() // which makes its flags know the root's
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			key := marked(f, fileMark)
			if key == "" && !slices.Contains([]string{"config", "json", "help", "server", "token-file", "token-in-clear"}, f.Name) {
				t.Errorf("stint %s: --%s has no key", name, f.Name)
			}
			if key != "" {
				keys = append(keys, key)
			}
		})
		var all []string
		allSettings().VisitAll(func(f *pflag.Flag) { all = append(all, marked(f, fileMark)) })
		slices.Sort(keys)
		slices.Sort(all)
		if diff := cmp.Diff(all, keys); diff != "" {
			t.Errorf("stint %s takes other keys than a file (-file +flags):\n%s", name, diff)
		}
	}
}

// The examples of the help are what people begin with.
func TestTheFileInTheHelpIsOne(t *testing.T) {
	var example []string
	for line := range strings.SplitSeq(page(configHelp).Long, "\n") {
		if text, ok := strings.CutPrefix(line, "  "); ok {
			example = append(example, text)
		}
	}
	f, err := parseSettings("help", []byte(strings.Join(example, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.entries); n != 11 || len(f.schedules) != 1 || len(f.admission.shown) != 3 || len(f.webhooks.secrets) != 1 {
		t.Errorf("%d settings, %d schedules and %v were found in it: %v", n, len(f.schedules), f.admission.shown, f.entries)
	}
}

func TestNoSettingTakesWhatIsNotOfItsType(t *testing.T) {
	allSettings().VisitAll(func(flag *pflag.Flag) {
		key := marked(flag, fileMark)
		for value, what := range map[string]string{
			"1979-05-27": "it is a date or a time; write ", "1.5": "it is a number with a fraction; write ", "nan": "it is a number with a fraction; write ",
			"[[]]": "an array", "[{}]": "a table", "07:32:00": "it is a date or a time; write ",
		} {
			_, err := parseSettings("f.toml", []byte("\n"+key+" = "+value))
			if err == nil || !strings.HasPrefix(err.Error(), "f.toml:2: "+key+": ") || !strings.Contains(err.Error(), what) {
				if what == "a table" && err != nil { // what arrays are told where none may be
					continue
				}
				t.Errorf("%s = %s: %v", key, value, err)
			}
		}
	})
}

func TestLinesAreThoseOfTheKeys(t *testing.T) {
	const text = `# one
db = """
x
"""
kinds.http.private = true

[work]
grace = "1s"
"sl\u006fts" = {
  mail = 4, 'a.b' = 5,
  "*" = 6 }
[ other . inner ]
[[more]]
a = [{b = 1}]
c.d = 1
c.e = 2
[[more]]
c.d = 3
`
	want := map[string]int{
		"db": 2, "kinds": 5, "kinds.http": 5, "kinds.http.private": 5, "work": 7, "work.grace": 8, "work.slots": 9, "work.slots.mail": 10,
		`work.slots."a.b"`: 10, `work.slots."*"`: 11, "other": 12, "other.inner": 12, "more": 13, "more[0]": 13,
		"more[0].a": 14, "more[0].c": 15, "more[0].c.d": 15, "more[0].c.e": 16, "more[1]": 17, "more[1].c": 18, "more[1].c.d": 18,
	}
	for name, text := range map[string]string{"Unix": text, "Windows": strings.ReplaceAll(text, "\n", "\r\n")} {
		if diff := cmp.Diff(want, linesOf([]byte(text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Two mistakes are told of in the order in which people read them.
func TestTheFirstMistakeOfAFileIsToldOf(t *testing.T) {
	for text, want := range map[string]string{
		"[work]\nslots = 0\ngrace = 1\n[zoo]\n":  "f.toml:2: work.slots: 0 is too few",
		"[zoo]\n[work]\nslots = 0\n":             "f.toml:1: there is no setting zoo",
		"[work.slots]\nb = 0\na = 0\n":           "f.toml:2: work.slots.b: 0 is too few",
		"[work]\nslots = 0\n[work]\n":            "f.toml:3: table work already exists",
		"\ufeff[work]\r\nslots = 3\r\nx = 1\r\n": "f.toml:3: there is no setting work.x",
		"[work]\nslots = 9223372036854775807\n":  "",
		"[work]\nslots = 'auto:8..200'\n":        "",
		"[work]\nslots = 'auto:9..8'\n":          "f.toml:2: work.slots: from 9 to 8 is nothing",
		"[work]\nslots = '50'\n":                 "f.toml:2: work.slots: ",
		"[work.slots]\n\"*\" = 9999999999999\n":  "",
		"[work]\nslots = 9223372036854775808\n":  "f.toml:2: ",
		"[work]\nqueues = [\"a,b\", \"a b\"]\n":  "",
		"[work]\ninstance = \"a\"\n[kinds.http]": "",
	} {
		_, err := parseSettings("f.toml", []byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// By a flag they cannot be given.
func TestNamesInAFileMayHoldCommas(t *testing.T) {
	var f engineFlags
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.add(flags)
	file, err := parseSettings("f.toml", []byte("[work]\nqueues = ['a,b', 'c=d']\n[work.slots]\n'a,b' = 2\n'c=d' = 3\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"queues", "slots"} {
		e, ok := file.entry("work." + name)
		if !ok {
			t.Fatalf("%s is not there", name)
		}
		if err := e.set(flags.Lookup(name).Value); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"a,b", "c=d"}, f.queues); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"a,b": 2, "c=d": 3}, f.slots.each); diff != "" {
		t.Error(diff)
	}
}

func TestPasswordsAreNotShown(t *testing.T) {
	for text, want := range map[string]string{
		"postgres://u:pa:ss@h/d":                  "postgres://u:***@h/d",
		"postgresql://u:p%40@h:5432/d?x=a:b@c":    "postgresql://u:***@h:5432/d?x=a:b@c",
		"postgres://u:p@ss@h/d":                   "postgres://u:***@h/d",
		"postgres://u@h/d?password=p&sslmode=x":   "postgres://u@h/d?password=***&sslmode=x",
		"postgres://u@h/d?sslpassword=p":          "postgres://u@h/d?sslpassword=***",
		"host=h password=p user=u":                "host=h password=*** user=u",
		"host=h password = 'p \\' q' user=u":      "host=h password = *** user=u",
		"host=h PASSWORD=p":                       "host=h PASSWORD=***",
		"postgres://u:@h/d":                       "postgres://u:***@h/d",
		"postgres://u@h/d":                        "postgres://u@h/d",
		"/var/lib/stint.db":                       "/var/lib/stint.db",
		"postgres://h:5432/d?application_name=a@": "postgres://h:5432/d?application_name=a@",
	} {
		if got := withoutPassword(text); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
}

func TestTheSecondTerminalIsToldOfTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "my stint.toml")
	if err := os.WriteFile(path, fmt.Appendf(nil, "db = %q", filepath.Join(dir, "jobs.db")), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs, code := session(t, true, "sh", "--config", path, "--", "true")
	if want := "start one with stint up --config '" + path + "'\n"; code != exitOK || !strings.HasSuffix(errs, want) {
		t.Errorf("exit code %d, %q, want %q", code, errs, want)
	}
}

var placed = regexp.MustCompile(`^f\.toml:[1-9]\d*: `)

func FuzzFilesOfSettings(f *testing.F) {
	for _, text := range []string{
		"db = 'x'\n[work]\nslots = {a = 1, '*' = 2}\n", "[work.slots]\n\"a\\u0000\" = 3", "[[work]]", "[[dashboard.token]]\nname = \"a\"\nrole = \"admin\"\n[[dashboard.token]]\n", "dashboard.user = [{}, 3]", "[dashboard.proxy]\ntrusted = [\"10.0.0.0/0\"]",
		"[[dashboard.token]]\nname = 'a'\nrole = 'viewer'\nsha256 = '" + strings.Repeat("0f", 32) + "'", "[[dashboard.user]]\nname = 'a:b'\nrole = 'admin'\nbcrypt = '$2a$04$x'",
		"[dashboard.proxy]\nheader = 'X-User'\ntrusted = ['::1', '10.0.0.0/8']\nrole = 'viewer'\nroles = {ann = 'admin', bob = 3}", "dashboard.secret = 'short'",
		"kinds.http.private = true\n[kinds.http]",
		"\"\" = 1", "[work]\nqueues = ['a', \"b\"] # c", "a = 1979-05-27T07:32:00Z", "[work\nx", "[a.b]\n[a]\n[a.'c.d'.\"e\"]",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := parseSettings("f.toml", []byte(text))
		if err != nil {
			if !placed.MatchString(err.Error()) || exitCode(err) != exitUsage {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		for key, e := range file.entries {
			if e.line < 1 || e.line > strings.Count(text, "\n")+1 || e.key != key {
				t.Errorf("%q: %s is on line %d", text, key, e.line)
			}
		}
	})
}
