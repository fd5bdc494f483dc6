package mutate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// patience is how long tests may be silent before they count as hanging. The
// slowest takes a few seconds on a machine that does nothing else.
const patience = time.Minute

// program is the tests of a package, built with some texts in the place of what
// stands in the files of these names.
type program struct{ binary, dir string }

// build builds them into a directory. It does not vet: vet finds more in
// mutants than it should.
func build(ctx context.Context, root, pkg, into string, texts map[string]string) (program, error) {
	replace := map[string]string{}
	for file, text := range texts {
		path, err := filepath.Abs(filepath.Join(root, file))
		instead := filepath.Join(into, strings.ReplaceAll(file, "/", "_"))
		if err := errors.Join(err, os.WriteFile(instead, []byte(text), 0o644)); err != nil {
			return program{}, err
		}
		replace[path] = instead
	}
	overlay, binary := filepath.Join(into, "overlay.json"), filepath.Join(into, "tests")
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err := errors.Join(err, os.WriteFile(overlay, list, 0o644)); err != nil {
		return program{}, err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay="+overlay, "-o", binary, "./"+pkg)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return program{}, fmt.Errorf("build the tests of %s: %w\n%s", pkg, err, out)
	}
	return program{binary, filepath.Join(root, pkg)}, nil
}

// outcome is what came of a run.
type outcome struct {
	passed []string
	failed string   // the first test that failed, or what ran when all ended or hung; empty for none
	ran    []string // when all ended or hung
	hung   bool
	output string
}

// run runs tests until one fails, or they are silent for too long.
func (p program) run(ctx context.Context, pattern, skip string, args ...string) (outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	binary, err := filepath.Abs(p.binary)
	if err != nil {
		return outcome{}, err
	}
	args = append([]string{"-test.v=test2json", "-test.failfast", "-test.count=1", "-test.timeout=0", "-test.run=" + pattern, "-test.skip=" + skip}, args...)
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = p.dir
	cmd.WaitDelay = 5 * time.Second
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return outcome{}, err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return outcome{}, err
	}
	silence := time.AfterFunc(patience, cancel)
	defer silence.Stop()
	var o outcome
	var b strings.Builder
	var running []string // in the order in which they went on last
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		silence.Reset(patience)
		// Lines that tell how a test goes are marked by a byte.
		line := strings.Trim(lines.Text(), " \x16")
		verb, name, ok := strings.Cut(line, " Test")
		name, _, _ = strings.Cut("Test"+strings.TrimSpace(name), " (")
		verb = strings.TrimSpace(verb)
		if b.Len() < 1<<20 && !strings.HasPrefix(line, "=== ") {
			b.WriteString(line + "\n")
		}
		switch verb {
		case "=== RUN", "=== CONT":
			running = append(running, name)
		case "--- PASS:", "--- SKIP:", "=== PAUSE":
			running = slices.DeleteFunc(running, func(n string) bool { return n == name })
			if verb == "--- PASS:" {
				o.passed = append(o.passed, name)
			}
		case "--- FAIL:":
			if ok && o.failed == "" {
				o.failed = name
				cancel()
			}
		}
	}
	o.hung = ctx.Err() != nil && o.failed == ""
	err = cmd.Wait()
	o.output = shortened(b.String())
	if err != nil && o.failed == "" && len(running) > 0 {
		o.failed, o.ran = running[len(running)-1], running
	}
	if err != nil && o.failed == "" {
		return o, fmt.Errorf("%w\n%s", err, o.output)
	}
	return o, nil
}

// rewritten is how go test shows the name of a part.
func rewritten(name string) string { return strings.ReplaceAll(name, " ", "_") }

// pattern is how go test is told a test's name, of which * is any part.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		if parts[i] = ".*"; part != "*" {
			parts[i] = "^" + regexp.QuoteMeta(rewritten(part)) + "$"
		}
	}
	return strings.Join(parts, "/")
}

// matches reports whether a test that ran is one of that name, or a part of it.
func matches(test, ran string) bool {
	parts := strings.Split(ran, "/")
	for i, part := range strings.Split(test, "/") {
		if i >= len(parts) || part != "*" && rewritten(part) != parts[i] {
			return false
		}
	}
	return true
}

// shortened cuts the output of tests that fail at length.
func shortened(text string) string {
	const wide, long = 300, 40
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > long {
		lines = append(lines[:long], fmt.Sprintf("and %d lines more", len(lines)-long))
	}
	for i, line := range lines {
		if len(line) > wide {
			lines[i] = line[:wide] + "..."
		}
	}
	return strings.Join(lines, "\n")
}
