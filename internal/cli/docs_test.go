package cli

import (
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/stint-go/stint/docs"
)

func TestEachPageIsPrintedByItsName(t *testing.T) {
	names := map[string]bool{}
	err := fs.WalkDir(docs.Pages, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		want, err := docs.Pages.ReadFile(file)
		name := strings.TrimSuffix(path.Base(file), ".md")
		if names[name] {
			t.Errorf("two pages are called %s", name)
		}
		names[name] = true
		for _, asked := range []string{name, file, strings.ToUpper(name)} {
			if out, errs, code := session(t, false, "docs", asked); code != exitOK || out != string(want) {
				t.Errorf("stint docs %s: exit code %d, %d bytes, %s", asked, code, len(out), errs)
			}
		}
		return err
	})
	if err != nil || len(names) < 40 {
		t.Errorf("there are %d pages, %v", len(names), err)
	}
	index, _, _ := session(t, false, "docs")
	if !strings.HasPrefix(index, "# Documentation\n") || !strings.Contains(index, "guide/errors.md") {
		t.Errorf("the index is %.200s", index)
	}
	if _, errs, code := session(t, false, "docs", "nonesuch"); code != exitUsage || !strings.Contains(errs, `there is no page "nonesuch"`) {
		t.Errorf("exit code %d, %s", code, errs)
	}
}
