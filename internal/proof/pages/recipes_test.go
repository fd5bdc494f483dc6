package pages

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var update = flag.Bool("update", false, "write the programs of examples/ into the pages that show them")

// recipe is a link to a program or its test, and the block of code after it.
var recipe = regexp.MustCompile("(?s)\\]\\((?:\\.\\./)*(examples/[a-z]+/main(?:_test)?\\.go)\\).*?\n```go\n(.*?)```\n")

// The programs of the recipes, of the guide and of the README are those of examples/, which have tests; the pages leave out the
// comment above them.
func TestRecipesAreProgramsThatAreTested(t *testing.T) {
	isProgram := []byte("\n```go\npackage main\n")
	for page, least := range map[string]int{"README.md": 1, "docs/recipes.md": 4, "docs/guide/service.md": 2} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		found := recipe.FindAllSubmatchIndex(text, -1)
		if blocks := bytes.Count(text, isProgram); len(found) < least || len(found) != blocks {
			t.Fatalf("of %d programs of %s %d have a link before them; at least %d are wanted", blocks, page, len(found), least)
		}
		shown(t, page, text, found)
	}
}

// shown compares the programs of a page with their files.
func shown(t *testing.T, page string, text []byte, found [][]int) {
	t.Helper()
	var updated []byte
	end := 0
	for _, at := range found {
		name, block := string(text[at[2]:at[3]]), text[at[4]:at[5]]
		program, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		program = program[bytes.Index(program, []byte("package main")):]
		if !*update && !bytes.Equal(block, program) {
			t.Errorf("%s is not what %s shows of it: go test ./internal/proof/pages -update", name, page)
		}
		if tests, err := filepath.Glob(filepath.Join(root, filepath.Dir(name), "*_test.go")); err != nil || len(tests) == 0 {
			t.Errorf("%s has no test, %v", name, err)
		}
		updated = append(append(updated, text[end:at[4]]...), program...)
		end = at[5]
	}
	if *update {
		if err := os.WriteFile(filepath.Join(root, page), append(updated, text[end:]...), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
