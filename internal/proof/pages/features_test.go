package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

// wanted are the features that stint is to have, by the numbers that the page of
// proof gives them: what the three engines had that it unites, and what none of
// them had.
var wanted = map[string]int{"U": 120, "B": 14}

func TestThePagesOfFeaturesAreTrue(t *testing.T) {
	var texts []string
	for _, page := range []string{"docs/features.md", "docs/design/proof.md"} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	for _, problem := range problems(texts[0], texts[1]) {
		t.Error("docs/features.md and docs/design/proof.md: " + problem)
	}
}

var (
	quoted = regexp.MustCompile("`([^`]+)`")
	later  = regexp.MustCompile(`(?m)^- \*\*([^*]+)\*\*:`)
	number = regexp.MustCompile(`\b[UB][0-9]+\b`)
)

// problems are what is wrong with the page for users and the page of proof: a
// feature that is on one of them only, or twice, or there and said not to be
// yet; a number that is missing, or that users would read; a feature or a
// mistake without a test; a test that does not exist.
func problems(users, proof string) (found []string) {
	complain := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	proven := func(row []string, cells int) {
		if len(row) != cells {
			complain("%s has %d cells, want %d", row[0], len(row), cells)
			return
		}
		tests := quoted.FindAllStringSubmatch(row[cells-1], -1)
		if len(tests) == 0 {
			complain("%s has no test", row[0])
		}
		for _, test := range tests {
			if err := exists(test[1]); err != nil {
				complain("%s: %v", row[0], err)
			}
		}
	}
	for _, n := range number.FindAllString(users, -1) {
		complain("users read the number %s", n)
	}
	shown, promised := map[string]int{}, map[string]int{}
	for _, row := range Rows(users, "feature") {
		shown[row[0]]++
		if len(row) != 3 || slices.Contains(row, "") {
			complain("%s does not say what it does and how to get at it", row[0])
		}
	}
	_, end, _ := strings.Cut(users, "\n## Not there yet\n")
	for _, line := range later.FindAllStringSubmatch(end, -1) {
		promised[line[1]]++
	}
	there, missing := map[string]bool{}, map[string]bool{}
	tested, awaited := map[string]int{}, map[string]int{}
	for _, row := range Rows(proof, "feature") {
		tested[row[0]]++
		proven(row, 3)
		mark(there, row)
	}
	for _, row := range Rows(proof, "not there yet") {
		awaited[row[0]]++
		mark(missing, row)
	}
	for _, row := range Rows(proof, "mistake") {
		proven(row, 3)
	}
	alike(complain, shown, tested, "")
	alike(complain, promised, awaited, " as not there yet")
	for name := range shown {
		if promised[name] > 0 {
			complain("%q is there, and said not to be", name)
		}
	}
	for _, letter := range []string{"U", "B"} {
		for i := range wanted[letter] {
			n := fmt.Sprint(letter, i+1)
			switch {
			case !there[n] && !missing[n]:
				complain("%s is missing", n)
			case there[n] && missing[n]:
				complain("%s is there, and said not to be", n)
			}
			delete(there, n)
			delete(missing, n)
		}
	}
	for n := range there {
		complain("there is no feature %s", n)
	}
	for n := range missing {
		complain("there is no feature %s that could be missing", n)
	}
	slices.Sort(found)
	return found
}

// mark notes the numbers in the second cell of a row.
func mark(numbers map[string]bool, row []string) {
	if len(row) > 1 {
		for _, n := range number.FindAllString(row[1], -1) {
			numbers[n] = true
		}
	}
}

// alike complains of names that are not exactly once on either page.
func alike(complain func(string, ...any), users, proof map[string]int, as string) {
	for name, n := range users {
		if n > 1 {
			complain("%q is there for users %d times%s", name, n, as)
		}
		if proof[name] == 0 {
			complain("%q has no row in the page of proof%s", name, as)
		}
	}
	for name, n := range proof {
		if n > 1 {
			complain("%q is proven %d times%s", name, n, as)
		}
		if users[name] == 0 {
			complain("%q is not on the page for users%s", name, as)
		}
	}
}

var known = map[string]Names{} // by package

// exists looks for a test that a page calls by its package and its name: a
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
	// Both pages as they should be: f has the number U1, g has none, and all
	// else is yet to come.
	const users = "# Features\n\n| feature | what it does | how |\n|---|---|---|\n| f | w | h |\n| g | w | h |\n" +
		"\n## Not there yet\n\n- **All else**: in time.\n"
	const test = "`stint ExampleNewKind`"
	var rest strings.Builder
	rest.WriteString("\n| not there yet | number |\n|---|---|\n| All else |")
	for letter, n := range wanted {
		for i := range n {
			if letter != "U" || i > 0 {
				rest.WriteString(fmt.Sprint(" ", letter, i+1))
			}
		}
	}
	rest.WriteString(" |\n")
	const head, g = "| feature | number | proven by |\n|---|---|---|\n", "| g | – | " + test + " |\n"
	row := func(tests string) string { return "| f | U1 | " + tests + " |\n" }
	proof := head + row("`internal/proof/pages TestABrokenPageIsFound` `internal/proof/pages a test that exists no more` `storetest Who is not in the roster claims nothing` "+
		"`postgres Who is not in the roster claims nothing` `stint ExampleNewKind` `internal/cli a_newcomer_sees_hello.txtar`") + g + rest.String()
	but := func(text, old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("there is no %q to change", old)
		}
		return strings.Replace(text, old, new, 1)
	}
	for name, c := range map[string]struct{ users, proof, want string }{
		"nothing is wrong":          {users, proof, ""},
		"users miss a feature":      {but(users, "| g | w | h |\n", ""), proof, `"g" is not on the page for users`},
		"proof misses a feature":    {users, but(proof, g, ""), `"g" has no row in the page of proof`},
		"proof misses a number":     {users, but(proof, "| f | U1 |", "| f | – |"), "U1 is missing"},
		"a feature is there twice":  {but(users, "| g |", "| f | w | h |\n| g |"), proof, `"f" is there for users 2 times`},
		"a feature is proven twice": {users, but(proof, g, g+g), `"g" is proven 2 times`},
		"a feature is said to be later": {but(users, "- **All", "- **g**: later.\n- **All"), but(proof, "| All else |", "| g | – |\n| All else |"),
			`"g" is there, and said not to be`},
		"a number is said to be later":      {users, but(proof, "| g | – |", "| g | U2 |"), "U2 is there, and said not to be"},
		"a number that nobody asked for":    {users, but(proof, "| g | – |", "| g | U121 |"), "there is no feature U121"},
		"a later number is no more":         {users, but(proof, " B14", " B14 B15"), "there is no feature B15 that could be missing"},
		"nothing is said of what is later":  {users, but(proof, " U120", ""), "U120 is missing"},
		"users miss what is later":          {but(users, "- **All else**: in time.\n", ""), proof, `"All else" is not on the page for users as not there yet`},
		"proof misses what is later":        {but(users, "- **All", "- **More**: later.\n- **All"), proof, `"More" has no row in the page of proof as not there yet`},
		"users read a number":               {but(users, "| f | w |", "| f | as U1 |"), proof, "users read the number U1"},
		"users are told too little":         {but(users, "| f | w | h |", "| f | w |"), proof, "f does not say what it does and how to get at it"},
		"users are not told how":            {but(users, "| f | w | h |", "| f | w | |"), proof, "f does not say what it does and how to get at it"},
		"a row has no test":                 {users, head + row("tested by hand") + g + rest.String(), "f has no test"},
		"a row has too few cells":           {users, head + "| f | U1 |\n" + g + rest.String(), "f has 2 cells, want 3"},
		"a test that exists no more":        {users, head + row("`engine TestThatExistsNoMore`") + g + rest.String(), `f: package engine has no test "TestThatExistsNoMore"`},
		"a test of another package":         {users, head + row("`engine TestABrokenPageIsFound`") + g + rest.String(), `f: package engine has no test "TestABrokenPageIsFound"`},
		"a part that nobody calls so":       {users, head + row("`storetest Who is in the roster claims nothing`") + g + rest.String(), `f: package storetest has no test "Who is in the roster claims nothing"`},
		"a word that is no test":            {users, head + row("`internal/proof/pages nothing`") + g + rest.String(), `f: package internal/proof/pages has no test "nothing"`},
		"a package without a test":          {users, head + row("`TestABrokenPageIsFound`") + g + rest.String(), `f: "TestABrokenPageIsFound" is not a package and a test`},
		"a package that exists no more":     {users, head + row("`nowhere TestABrokenPageIsFound`") + g + rest.String(), "f: package nowhere has no tests"},
		"a script that exists no more":      {users, head + row("`internal/cli none.txtar`") + g + rest.String(), "f: stat ../../../internal/cli/testdata/script/none.txtar: no such file or directory"},
		"a mistake that nothing keeps away": {users, proof + "\n| mistake | instead | proven by |\n|---|---|---|\n| m | i | |\n", "m has no test"},
	} {
		if got := strings.Join(problems(c.users, c.proof), ", "); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}
