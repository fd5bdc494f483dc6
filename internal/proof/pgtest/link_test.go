package pgtest

import (
	"os"
	"path/filepath"
	"testing"
)

// unpacked is an installation as npm leaves it, with a list of links.
func unpacked(t *testing.T, list string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a", "native")
	for name, text := range map[string]string{"lib/libpq.so.5.18": "code", "pg-symlinks.json": list} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAnInstallationGetsItsLinks(t *testing.T) {
	dir := unpacked(t, `[{"source":"native/lib/libpq.so.5.18","target":"native/lib/deep/libpq.so"}]`)
	if err := link(dir); err != nil {
		t.Fatal(err)
	}
	// It is moved to its place after that.
	moved := filepath.Join(t.TempDir(), "18")
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(moved, "lib", "deep", "libpq.so")); err != nil || string(text) != "code" {
		t.Errorf("the link leads to %q, %v", text, err)
	}
}

func TestNoLinkLeadsOutsideOfAnInstallation(t *testing.T) {
	for name, list := range map[string]string{
		"a link":          `[{"source":"native/lib/a","target":"native/../../evil"}]`,
		"a link's aim":    `[{"source":"native/../../../etc/passwd","target":"native/lib/evil"}]`,
		"an absolute aim": `[{"source":"/etc/passwd","target":"native/lib/evil"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := unpacked(t, list)
			if err := link(dir); err == nil {
				t.Error("it was made")
			}
			for _, evil := range []string{"lib/evil", "../evil", "../../evil"} {
				if _, err := os.Lstat(filepath.Join(dir, evil)); err == nil {
					t.Errorf("%s was made", evil)
				}
			}
		})
	}
}
