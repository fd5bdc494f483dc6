//go:build unix

package sqlite

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
		somebodyElse(t, cmd, dir) // permissions do not hold for root
	}
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
}

// Whoever opens a file first makes its WAL and its index, and with them the say
// over who else may.
func TestUsersOfOneFileWorkSideBySide(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be two users")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "jobs.db")
	s := open(t, path)
	enqueue(t, s, someJobs(1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	asOwner := func() (*bytes.Buffer, error) {
		t.Helper()
		cmd := process(t, "enqueue", path)
		somebodyElse(t, cmd, dir)
		var said bytes.Buffer
		cmd.Stderr = &said
		return &said, cmd.Run()
	}
	// He has the file, and root looks at it.
	if err := errors.Join(os.Chmod(path, 0o600), os.Chown(path, nobody, nobody), os.Chown(dir, nobody, nobody), os.Chown(path+placesSuffix, nobody, nobody)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for name, config := range map[string]Config{"looks": {ReadOnly: true}, "works": {}} {
		s := open(t, path, config)
		if _, err := s.Counts(t.Context()); err != nil {
			t.Fatal(err)
		}
		if said, err := asOwner(); err != nil {
			t.Errorf("while root %s, its owner is told: %v %s", name, err, said)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if said, err := asOwner(); err != nil {
			t.Errorf("after root has ended that %s, its owner is told: %v %s", name, err, said)
		}
	}
	// A file that somebody made his own in part is told with what is to be done.
	s = open(t, path)
	enqueue(t, s, someJobs(1))
	for _, suffix := range companions {
		if err := errors.Join(os.Chown(path+suffix, 0, 0), os.Chmod(path+suffix, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if said, err := asOwner(); err == nil || !strings.Contains(said.String(), "jobs.db-wal belongs to another user; give it") {
		t.Errorf("whoever may not use the WAL is told: %v %s", err, said)
	}
}

const nobody = 65534

// somebodyElse has a process be another user, who needs a binary that he may run.
func somebodyElse(t *testing.T, cmd *exec.Cmd, dir string) {
	t.Helper()
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
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}

func copyFile(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}
