package pages

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var update = flag.Bool("update", false, "write the programs of examples/ into docs/recipes.md")

// recipe is a link to a program and the block of code after it.
var recipe = regexp.MustCompile("(?s)\\]\\(\\.\\./(examples/[a-z]+/main\\.go)\\).*?\n```go\n(.*?)```\n")

// The programs of the recipes are those of examples/, which have tests; the page leaves out the comment above them.
func TestRecipesAreProgramsThatAreTested(t *testing.T) {
	page := filepath.Join(root, "docs", "recipes.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := recipe.FindAllSubmatchIndex(text, -1)
	if blocks := bytes.Count(text, []byte("\n```go\n")); len(found) < 4 || len(found) != blocks {
		t.Fatalf("of %d programs %d have a link before them; at least 4 are wanted", blocks, len(found))
	}
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
			t.Errorf("%s is not what docs/recipes.md shows of it: go test ./internal/proof/pages -update", name)
		}
		if tests, err := filepath.Glob(filepath.Join(root, filepath.Dir(name), "*_test.go")); err != nil || len(tests) == 0 {
			t.Errorf("%s has no test, %v", name, err)
		}
		updated = append(append(updated, text[end:at[4]]...), program...)
		end = at[5]
	}
	if *update {
		if err := os.WriteFile(page, append(updated, text[end:]...), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
