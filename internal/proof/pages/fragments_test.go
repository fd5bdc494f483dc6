package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// goBlocks are the blocks of Go code of a page.
var goBlocks = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// fragments are the parts of the blocks of Go code of a page that an empty line divides, except for whole programs.
func fragments(page string) (parts []string) {
	for _, block := range goBlocks.FindAllStringSubmatch(page, -1) {
		if strings.HasPrefix(block[1], "package main\n") {
			continue // see TestRecipesAreProgramsThatAreTested
		}
		parts = append(parts, strings.Split(strings.Trim(block[1], "\n"), "\n\n")...)
	}
	return parts
}

// stands reports whether the lines of a fragment follow each other in a source, which may indent them further.
func stands(fragment, source []string) bool {
	for at := range len(source) - len(fragment) + 1 {
		indent, same := strings.CutSuffix(source[at], fragment[0])
		same = same && fragment[0] != "" && strings.Trim(indent, "\t") == ""
		for i, line := range fragment {
			same = same && source[at+i] == strings.TrimRight(indent+line, "\t")
		}
		if same {
			return true
		}
	}
	return false
}

// globbed are the files of the patterns.
func globbed(t *testing.T, patterns ...string) (all []string) {
	t.Helper()
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || found == nil {
			t.Fatalf("%s has no files, %v", pattern, err)
		}
		all = append(all, found...)
	}
	return all
}

// Each piece of Go code on a page for users stands in a test beside it, which CI compiles and runs; that of River in
// one of the peers.
func TestCodeOfTheGuideIsTested(t *testing.T) {
	var sources [][]string
	files := append(globbed(t, "docs/*_test.go", "docs/guide/*_test.go"), filepath.Join(root, "bench/peers/takeover/guide_test.go")) // which has River at hand
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, strings.Split(string(text), "\n"))
	}
	n := 0
	for _, page := range globbed(t, "README.md", "docs/*.md", "docs/guide/*.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range fragments(string(text)) {
			n++
			if !slices.ContainsFunc(sources, func(source []string) bool { return stands(strings.Split(part, "\n"), source) }) {
				t.Errorf("%s shows what is in no test of docs or docs/guide:\n%s", filepath.Base(page), part)
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d pieces of code were found", n)
	}
}

func TestAFragmentThatNobodyTestsIsFound(t *testing.T) {
	source := strings.Split("func f() {\n\ta()\n\tif b {\n\t\tc()\n\t}\n}", "\n")
	for fragment, want := range map[string]bool{
		"a()":                     true,
		"if b {\n\tc()\n}":        true,
		"a()\nif b {\n\tc()\n}":   true,
		"func f() {\n\ta()":       true,
		"a(1)":                    false,
		"a()\nc()":                false,
		"if b {\n\tc()\n\td()\n}": false,
		"if b {\nc()":             false,
		"\ta()\n\tif b {":         true,
		"":                        false,
	} {
		if got := stands(strings.Split(fragment, "\n"), source); got != want {
			t.Errorf("it stands there is %v, want %v:\n%s", got, want, fragment)
		}
	}
	page := "```go\nx()\n\ny()\n```\n\n```go\npackage main\n\nfunc main() {}\n```\n```sh\nz\n```\n"
	if got := fragments(page); !slices.Equal(got, []string{"x()", "y()"}) {
		t.Errorf("the page has the fragments %q", got)
	}
}
