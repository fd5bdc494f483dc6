package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// The features that stint is to have, by their numbers: what the three engines
// had that it unites, and what none of them had.
var wanted = map[string]int{"U": 120, "B": 14}

func TestThePageOfFeaturesIsTrue(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/features.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems(string(text)) {
		t.Error("docs/features.md: " + problem)
	}
}

var (
	quoted = regexp.MustCompile("`([^`]+)`")
	later  = regexp.MustCompile(`(?m)^Not yet[^:]*: (.+)$`)
	span   = regexp.MustCompile(`([UB])(\d+)(?:–([UB])(\d+))?`)
)

// problems are what is wrong with a page: a feature that is missing, there
// twice, or there and said not to be yet; one without a test; a test that does
// not exist.
func problems(text string) (found []string) {
	complain := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	times := map[string]int{}
	for _, row := range Rows(text, "#") {
		if len(row) != 5 {
			complain("%s has %d cells, want 5", row[0], len(row))
			continue
		}
		times[row[0]]++
		tests := quoted.FindAllStringSubmatch(row[4], -1)
		if len(tests) == 0 {
			complain("%s has no test", row[0])
		}
		for _, test := range tests {
			if err := exists(test[1]); err != nil {
				complain("%s: %v", row[0], err)
			}
		}
	}
	missing := map[string]bool{}
	for _, line := range later.FindAllStringSubmatch(text, -1) {
		for _, s := range span.FindAllStringSubmatch(line[1], -1) {
			first, _ := strconv.Atoi(s[2])
			last := first
			if s[3] == s[1] {
				last, _ = strconv.Atoi(s[4])
			}
			for n := first; n <= last; n++ {
				missing[fmt.Sprint(s[1], n)] = true
			}
		}
	}
	for _, letter := range []string{"U", "B"} {
		for n := range wanted[letter] {
			number := fmt.Sprint(letter, n+1)
			switch {
			case times[number] == 0 && !missing[number]:
				complain("%s is missing", number)
			case times[number] > 1:
				complain("%s is there %d times", number, times[number])
			case times[number] > 0 && missing[number]:
				complain("%s is there, and said not to be", number)
			}
			delete(times, number)
			delete(missing, number)
		}
	}
	for number := range times {
		complain("there is no feature %s", number)
	}
	for number := range missing {
		complain("there is no feature %s that could be missing", number)
	}
	slices.Sort(found)
	return found
}

var known = map[string]Names{} // by package

// exists looks for a test that the page calls by its package and its name: a
// function, a part of a test by its words, or a script.
func exists(test string) error {
	pkg, name, ok := strings.Cut(test, " ")
	dir := pkg
	if pkg == "stint" {
		dir = "."
	}
	switch {
	case !ok || name == "":
		return fmt.Errorf("%q is not a package and a test", test)
	case strings.HasSuffix(name, ".txtar"):
		_, err := os.Stat(filepath.Join(root, dir, "testdata/script", name))
		return err
	}
	names, read := known[pkg]
	if !read {
		var err error
		if names, err = TestsOf(root, dir); err != nil {
			return err
		}
		known[pkg] = names
	}
	// One word may stand anywhere; a sentence is what somebody called a part.
	if !names.Funcs[name] && (!strings.Contains(name, " ") || !names.Words[name]) {
		return fmt.Errorf("package %s has no test %q", pkg, name)
	}
	return nil
}

func TestABrokenPageIsFound(t *testing.T) {
	const head = "| # | feature | what | how | proven by |\n|---|---|---|---|---|\n| **Jobs** | | | | |\n"
	row := func(number, tests string) string { return "| " + number + " | f | w | h | " + tests + " |\n" }
	const rest = "\nNot yet: U2–U120, all of it, and B1–B14.\n"
	good := row("U1", "`internal/pages TestABrokenPageIsFound` `internal/pages a test that exists no more` `storetest Who is not in the roster claims nothing` "+
		"`postgres Who is not in the roster claims nothing` `stint ExampleNewKind` `cmd/stint a_newcomer_sees_hello.txtar`")
	for name, c := range map[string]struct{ page, want string }{
		"nothing is wrong":           {head + good + rest, ""},
		"a row is missing":           {head + rest, "U1 is missing"},
		"a row is there twice":       {head + good + good + rest, "U1 is there 2 times"},
		"a row is said to be later":  {head + good + row("U2", "`stint ExampleNewKind`") + rest, "U2 is there, and said not to be"},
		"a row has no test":          {head + row("U1", "tested by hand") + rest, "U1 has no test"},
		"a row has too few cells":    {head + good + "| U2 | f | w | h |\n" + strings.Replace(rest, "U2–", "U3–", 1), "U2 has 4 cells, want 5, U2 is missing"},
		"a row nobody asked for":     {head + good + row("U121", "`stint ExampleNewKind`") + rest, "there is no feature U121"},
		"a test that exists no more": {head + row("U1", "`engine TestThatExistsNoMore`") + rest, `U1: package engine has no test "TestThatExistsNoMore"`},
		"a test of another package":  {head + row("U1", "`engine TestABrokenPageIsFound`") + rest, `U1: package engine has no test "TestABrokenPageIsFound"`},
		"a part that nobody calls so": {head + row("U1", "`storetest Who is in the roster claims nothing`") + rest,
			`U1: package storetest has no test "Who is in the roster claims nothing"`},
		"a word that is no test":           {head + row("U1", "`internal/pages nothing`") + rest, `U1: package internal/pages has no test "nothing"`},
		"a package without a test":         {head + row("U1", "`TestABrokenPageIsFound`") + rest, `U1: "TestABrokenPageIsFound" is not a package and a test`},
		"a package that exists no more":    {head + row("U1", "`nowhere TestABrokenPageIsFound`") + rest, "U1: package nowhere has no tests"},
		"a script that exists no more":     {head + row("U1", "`cmd/stint none.txtar`") + rest, "U1: stat ../../cmd/stint/testdata/script/none.txtar: no such file or directory"},
		"something later that is no more":  {head + good + strings.Replace(rest, "B14", "B15", 1), "there is no feature B15 that could be missing"},
		"nothing is said of what is later": {head + good + strings.Replace(rest, "U2–U120", "U2–U119", 1), "U120 is missing"},
	} {
		if got := strings.Join(problems(c.page), ", "); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}
