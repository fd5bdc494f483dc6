//go:build unix

package sqlite

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestAFileThatMayNotBeWrittenToIsToldAsSuch(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "jobs.db")
	enqueue(t, open(t, path), someJobs(1))
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	cmd := process(t, "refused", path)
	if os.Geteuid() == 0 {
		// Permissions do not hold for root: ask somebody else, who needs a
		// binary that he may run.
		exe := filepath.Join(dir, "test")
		if err := copyFile(exe, cmd.Path); err != nil {
			t.Fatal(err)
		}
		for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd.Path = exe
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
}

func copyFile(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}
