package deploy

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func page(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// texts are the files of deploy/ and the page about them, by name.
func texts(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"docs/guide/deploying.md": page(t, "docs/guide/deploying.md")}
	err := filepath.WalkDir(filepath.Join(root, "deploy"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(root, path)
			all[rel] = page(t, rel)
		}
		return err
	})
	if err != nil || len(all) < 12 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	return all
}

var (
	variable = regexp.MustCompile(`\bSTINT_[A-Z_]+\b`)
	// A command is in backticks or brackets, or begins a line.
	command = regexp.MustCompile("(?m)(?:^|[`(])stint ([a-z][^`\n|<>;#)]*)")
)

func TestEveryVariableIsOneThatTheCommandReads(t *testing.T) {
	var known strings.Builder
	for _, of := range [][]string{{"--help"}, {"work", "--help"}, {"dashboard", "--help"}, {"config", "--help"}} {
		out, err := exec.Command(stint, of...).Output()
		if err != nil {
			t.Fatal(err)
		}
		known.Write(out)
	}
	names := map[string]bool{}
	for _, name := range variable.FindAllString(known.String(), -1) {
		names[name] = true
	}
	for name, text := range texts(t) {
		for _, v := range variable.FindAllString(text, -1) {
			if !names[v] {
				t.Errorf("%s: the command does not read %s", name, v)
			}
		}
	}
}

// refused says why the command would not understand a line, by its help.
func refused(words []string) string {
	out, err := exec.Command(stint, append(words, "--help")...).CombinedOutput()
	if err != nil {
		return string(out)
	}
	_, usage, _ := strings.Cut(string(out), "\nUsage:\n  stint ")
	usage, _, _ = strings.Cut(usage, "\n")
	for i, part := range strings.Fields(usage) {
		switch {
		case (part == "[command]" || part == "[flags]") && i < len(words) && words[i][0] != '-':
			return "there is no such command: " + strings.Join(words, " ")
		case strings.ContainsAny(part, "[ABCDEFGHIJKLMNOPQRSTUVWXYZ"):
			return ""
		case i >= len(words) || part != words[i]:
			return "its help is about " + usage
		}
	}
	return ""
}

func TestEveryLineIsOneThatTheCommandUnderstands(t *testing.T) {
	seen := 0
	for name, text := range texts(t) {
		if strings.HasSuffix(name, ".md") {
			continue // internal/cli looks at the lines of pages
		}
		for _, m := range command.FindAllStringSubmatch(text, -1) {
			seen++
			if why := refused(strings.Fields(m[1])); why != "" {
				t.Errorf("%s: stint %s: %s", name, m[1], why)
			}
		}
	}
	if seen < 3 {
		t.Errorf("%d lines were seen", seen)
	}
	for _, wrong := range []string{"migrate upp", "dashboard tokn ann", "wrk", "work --helth :1", "jobs list --state"} {
		if refused(strings.Fields(wrong)) == "" {
			t.Errorf("stint %s was taken for right", wrong)
		}
	}
}

// What is deployed is a version that the list of changes has.
func TestTheFilesNameAVersionOfTheChangelog(t *testing.T) {
	tagged := regexp.MustCompile(`ghcr\.io/stint-go/stint:([0-9.]+)`)
	seen := 0
	for name, text := range texts(t) {
		for _, m := range tagged.FindAllStringSubmatch(text, -1) {
			seen++
			if !strings.Contains(page(t, "CHANGELOG.md"), "\n## "+m[1]) {
				t.Errorf("%s: there is no version %s", name, m[1])
			}
		}
	}
	if seen == 0 {
		t.Error("no version was seen")
	}
}
