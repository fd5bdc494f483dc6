package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The program of the README runs as it stands there, also when its file is there already.
func TestTheFirstProgramSaysHello(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "hello")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for range 2 {
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), "hello ada <nil>\n") {
			t.Errorf("%v: it says %s", err, out)
		}
	}
}
