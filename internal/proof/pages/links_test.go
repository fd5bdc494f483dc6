package pages

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fenced  = regexp.MustCompile("(?ms)^```.*?^```")
	inline  = regexp.MustCompile("`[^`\n]*`")
	leads   = regexp.MustCompile(`\]\(([^)\s]+)\)|\b(?:src|srcset)="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
)

// linksOf are the addresses that a page leads to, without those in code.
func linksOf(text []byte) (all []string) {
	text = inline.ReplaceAll(fenced.ReplaceAll(text, nil), nil)
	for _, m := range leads.FindAllSubmatch(text, -1) {
		all = append(all, string(m[1])+string(m[2]))
	}
	return all
}

// leadsTo reports whether an address leads to a file, and to a heading in it if it names one. Those of other servers do.
func leadsTo(page, to string) bool {
	if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return true
	}
	file, section, _ := strings.Cut(to, "#")
	path := page
	if file != "" {
		path = filepath.Join(filepath.Dir(page), file)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		info, err := os.Stat(path)
		return section == "" && err == nil && info.IsDir()
	}
	if section == "" || !strings.HasSuffix(path, ".md") {
		return true
	}
	for _, m := range heading.FindAllSubmatch(fenced.ReplaceAll(text, nil), -1) {
		if Anchor(string(bytes.TrimSpace(m[1]))) == section {
			return true
		}
	}
	return false
}

func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (strings.HasPrefix(e.Name(), ".") && path != root || e.Name() == "node_modules" || e.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".md") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, to := range linksOf(text) {
			if seen++; !leadsTo(path, to) {
				t.Errorf("%s leads to %s, where nothing is", path, to)
			}
		}
		return err
	})
	if err != nil || seen < 200 {
		t.Errorf("%d links were seen, %v", seen, err)
	}
}

func TestABrokenLinkIsFound(t *testing.T) {
	page := filepath.Join(root, "README.md")
	for to, want := range map[string]bool{
		"docs/README.md": true, "docs": true, "https://example.com/x": true, "#read-on": true, "docs/README.md#the-packages": true, "docs/images/dashboard/overview-dark-wide.png": true,
		"docs/none.md": false, "#none": false, "docs/README.md#none": false,
	} {
		if leadsTo(page, to) != want {
			t.Errorf("%s leads somewhere: %v", to, !want)
		}
	}
	if got := linksOf([]byte("[a](b) `[c](d)`\n```\n[e](f)\n```\n<img src=\"g\">")); strings.Join(got, " ") != "b g" {
		t.Errorf("the links are %q", got)
	}
}
