package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var (
	shellBlocks = regexp.MustCompile("(?ms)^```(?:sh|console)\n(.*?)^```$")
	inText      = regexp.MustCompile("`((?:[A-Z_]+=\\S+ )*stint [^`\n]+)`")
)

// commandLine is what a line of a page gives to stint, word by word, up to what the shell does with it; nil if it
// does not begin with stint.
func commandLine(line string) (words []string) {
	line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
	var word strings.Builder
	quote, inWord := rune(0), false
	flush := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
scan:
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			quote, inWord = c, true
		case c == '(' && strings.HasSuffix(word.String(), "$"): // what another command prints
			quote = ')'
		case c == ' ':
			flush()
		case c == '#' && !inWord, strings.ContainsRune("|;&<>", c):
			break scan
		default:
			word.WriteRune(c)
			inWord = true
		}
	}
	flush()
	for len(words) > 0 && regexp.MustCompile(`^[A-Z_]+=`).MatchString(words[0]) {
		words = words[1:]
	}
	if len(words) > 2 && words[0] == "go" && words[1] == "run" && strings.HasSuffix(words[2], "./cmd/stint") {
		words = words[2:]
		words[0] = "stint"
	}
	if len(words) == 0 || words[0] != "stint" {
		return nil
	}
	return words[1:]
}

// understood says what is wrong with a command line. Of one that stands in a text, only the names of the command and
// its flags are looked at.
func understood(args []string, whole bool) error {
	root := newApp().rootCommand()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpFlag()
	root.InitDefaultVersionFlag()
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	if whole {
		if err := cmd.ParseFlags(rest); err != nil {
			return err
		}
		rest = cmd.Flags().Args()
	} else {
		rest = slices.DeleteFunc(rest, func(word string) bool {
			name, isFlag := strings.CutPrefix(word, "--")
			name, _, _ = strings.Cut(name, "=")
			if isFlag && name != "" && cmd.Flag(name) == nil {
				err = fmt.Errorf("it has no flag --%s", name)
			}
			return isFlag
		})
		if err != nil {
			return err
		}
	}
	aloneLists := slices.ContainsFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == "list" })
	if whole && cmd.Args != nil || aloneLists || cmd.Annotations[groupMark] != "" {
		return cmd.ValidateArgs(rest)
	}
	return nil
}

// Each command that a page shows is one that there is, with flags and values that it takes.
func TestTheCommandsOfThePagesAreUnderstood(t *testing.T) {
	n := 0
	pages := []string{"../../README.md", "../../CONTRIBUTING.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/guide/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		check := func(line string, whole bool) {
			args := commandLine(line)
			if args == nil {
				return
			}
			n++
			if err := understood(args, whole); err != nil {
				t.Errorf("%s: %s\n%v", page, line, err)
			}
		}
		for _, block := range shellBlocks.FindAllStringSubmatch(string(text), -1) {
			for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", "")) {
				check(strings.TrimSpace(line), true)
			}
		}
		for _, span := range inText.FindAllStringSubmatch(string(text), -1) {
			check(span[1], false)
		}
	}
	if n < 100 {
		t.Errorf("only %d commands were found", n)
	}
}

func TestACommandThatThereIsNotIsFound(t *testing.T) {
	for line, whole := range map[string]bool{
		"stint nonesuch":                    false,
		"stint jobs nonesuch":               false,
		"stint jobs list --nonesuch":        false,
		"stint jobs list --state sleeping":  true,
		"stint jobs show":                   true,
		"go run ./cmd/stint doctor now":     true,
		"STINT_DB=x stint queues pause # a": true,
	} {
		if err := understood(commandLine(line), whole); err == nil {
			t.Errorf("%s is understood", line)
		}
	}
	for line, want := range map[string]string{
		`stint sh -- echo 'a b' "c" | wc`:      "sh,--,echo,a b,c",
		"A=1 stint doctor --deep # all of it":  "doctor,--deep",
		"$ stint jobs list && echo ok":         "jobs,list",
		"go run ./cmd/stint up --demo > x.log": "up,--demo",
		"stint jobs watch $(stint jobs --ids)": "jobs,watch,$stint jobs --ids",
	} {
		if got := strings.Join(commandLine(line), ","); got != want {
			t.Errorf("of %s it reads %q, want %q", line, got, want)
		}
	}
}
