package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/store"
)

// The program itself, when a test starts it as a process.
const processVar = "HASHFILES_TEST_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(processVar) != "" {
		main()
		os.Exit(0)
	}
	pgtest.Main(m)
}

// tree makes files of random content in nested directories.
func tree(t *testing.T, files, size int) string {
	t.Helper()
	root := t.TempDir()
	dice := rand.NewChaCha8([32]byte{1})
	for i := range files {
		dir := filepath.Join(root, fmt.Sprint("d", i%7), fmt.Sprint("e", i%3))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		content := make([]byte, size+i)
		_, _ = dice.Read(content)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file %d.bin", i)), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func hashfiles(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), args, &out)
	return out.String(), err
}

func databases(t *testing.T, f func(t *testing.T, db string)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { f(t, filepath.Join(t.TempDir(), "hash.db")) })
	t.Run("postgres", func(t *testing.T) { f(t, pgtest.New(t)) })
}

func TestEveryFileIsHashedOnceAndTheCountsAddUp(t *testing.T) {
	databases(t, func(t *testing.T, db string) {
		root := tree(t, 100, 100)
		out, err := hashfiles(t, "--db", db, root)
		if err != nil || !strings.Contains(out, "0 were hashed before") || !strings.Contains(out, "100 files = 100 jobs completed + 0 failed; 100 hashes of") {
			t.Fatalf("%v\n%s", err, out)
		}
		changed := filepath.Join(root, "d1", "e1", "file 1.bin")
		if err := os.WriteFile(changed, []byte("other"), 0o644); err != nil {
			t.Fatal(err)
		}
		again, err := hashfiles(t, "--db", db, root)
		if err != nil || !strings.Contains(again, "99 were hashed before") || !strings.Contains(again, "100 files = 100 jobs completed") {
			t.Fatalf("%v\n%s", err, again)
		}
	})
}

func TestARunThatWasKilledIsFinishedByTheNextOneWithoutDoingAnythingTwice(t *testing.T) {
	databases(t, func(t *testing.T, db string) {
		const files = 40
		root := tree(t, files, 2<<20)
		st, closeStore, err := open(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		defer closeStore()
		cmd := exec.Command(os.Args[0], "--db", db, "--slots", "1", root)
		cmd.Env = append(os.Environ(), processVar+"=1")
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			counts, err := st.Counts(t.Context())
			if err == nil && counts[stint.Completed] > 0 || time.Now().After(until) {
				break
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		counts, err := st.Counts(t.Context())
		for was := int64(-1); err == nil && was != counts[stint.Completed]; { // a server may still commit what was under way
			was = counts[stint.Completed]
			time.Sleep(200 * time.Millisecond)
			counts, err = st.Counts(t.Context())
		}
		if err != nil || counts[stint.Completed] == 0 || counts[stint.Completed] == files {
			t.Fatalf("it was not killed in the middle: %v, %v\n%s", counts, err, said.String())
		}
		out, err := hashfiles(t, "--db", db, root)
		if err != nil || !strings.Contains(out, fmt.Sprintf("; %d were hashed before", counts[stint.Completed])) ||
			!strings.Contains(out, fmt.Sprintf("%d files = %d jobs completed + 0 failed", files, files)) {
			t.Fatalf("%v\n%s", err, out)
		}
		jobs, err := st.Jobs(t.Context(), store.Filter{Limit: 2 * files})
		if err != nil || len(jobs) != files {
			t.Fatalf("%d jobs, %v", len(jobs), err)
		}
		for _, j := range jobs {
			job, err := st.Job(t.Context(), j.ID)
			if err != nil {
				t.Fatal(err)
			}
			completed := 0
			for _, x := range job.Attempts {
				if x.Outcome == stint.OutcomeCompleted {
					completed++
				}
			}
			if completed != 1 {
				t.Errorf("job %d completed %d times", job.ID, completed)
			}
		}
	})
}

func TestARestartOfTheServerEndsNothing(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	db := server.New(t)
	const files = 60
	root := tree(t, files, 2<<20)
	st, closeStore, err := open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore()
	ended := make(chan error, 1)
	var out bytes.Buffer
	go func() { ended <- run(t.Context(), []string{"--db", db, "--slots", "1", root}, &out) }()
	for until := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		counts, err := st.Counts(t.Context())
		if err == nil && counts[stint.Completed] > 0 || time.Now().After(until) {
			break
		}
	}
	server.Stop(pgtest.Fast)
	select {
	case err := <-ended:
		t.Fatalf("it ended with the server: %v\n%s", err, &out)
	case <-time.After(time.Second):
	}
	server.Start()
	if err := <-ended; err != nil || !strings.Contains(out.String(), fmt.Sprintf("%d files = %d jobs completed + 0 failed", files, files)) {
		t.Fatalf("%v\n%s", err, &out)
	}
}

func TestWhatCannotBeHashedIsReportedAndDoneAgainWhenItCan(t *testing.T) {
	db := filepath.Join(t.TempDir(), "hash.db")
	root := tree(t, 5, 10)
	s, err := find(root, db)
	if err != nil {
		t.Fatal(err)
	}
	// It was found and is gone when its job comes to it.
	lost := s.files[2]
	content, err := os.ReadFile(lost.Path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(lost.Path)
	if err != nil {
		t.Fatal(err)
	}
	store, closeStore, err := open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore()
	if err := s.enqueue(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(lost.Path); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := s.work(t.Context(), store, 2, &out); err != nil {
		t.Fatal(err)
	}
	err = s.check(t.Context(), store, &out)
	if err == nil || !strings.Contains(err.Error(), "1 things are wrong") || !strings.Contains(err.Error(), lost.Path) || !strings.Contains(out.String(), "5 files = 4 jobs completed + 1 failed") {
		t.Fatalf("%v\n%s", err, out.String())
	}
	// Here it is again, as it was.
	if err := os.WriteFile(lost.Path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(lost.Path, time.Time{}, info.ModTime()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		text, err := hashfiles(t, "--db", db, root)
		if err != nil || !strings.Contains(text, "5 files = 5 jobs completed + 0 failed") {
			t.Fatalf("%v\n%s", err, text)
		}
	}
}

func TestWhateverDoesNotAddUpIsNamed(t *testing.T) {
	root := tree(t, 3, 10)
	s, err := find(root, filepath.Join(root, "hash.db"))
	if err != nil {
		t.Fatal(err)
	}
	right := func() *tally {
		t := &tally{completed: 3, bytes: s.bytes(), hashes: map[string]string{}}
		for _, f := range s.files {
			sum, _ := hashing(context.Background(), nil, f.File)
			t.hashes[f.Path] = sum.SHA256
		}
		return t
	}
	for name, c := range map[string]struct {
		spoil func(t *tally)
		want  string
	}{
		"nothing":        {func(*tally) {}, ""},
		"a hash":         {func(t *tally) { t.hashes[s.files[1].Path] = "0" }, "job 0 says 0, and it is"},
		"a missing hash": {func(t *tally) { delete(t.hashes, s.files[1].Path) }, "3 jobs completed, and 2 hashes were recorded"},
		"a job":          {func(t *tally) { t.completed-- }, "3 files were found, and 2 jobs completed and 0 failed"},
		"bytes":          {func(t *tally) { t.bytes++ }, "bytes were hashed, and the files have"},
	} {
		tally := right()
		c.spoil(tally)
		s.compare(t.Context(), tally)
		if got := strings.Join(tally.wrong, "\n"); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestANameThatJSONCannotHoldIsAFailure(t *testing.T) {
	root := tree(t, 2, 10)
	if err := os.WriteFile(filepath.Join(root, "no\xfftext"), nil, 0o644); err != nil || runtime.GOOS != "linux" {
		t.Skip("this system has no such names")
	}
	out, err := hashfiles(t, "--db", filepath.Join(root, "hash.db"), root)
	if err == nil || !strings.Contains(err.Error(), "its name is not UTF-8") || !strings.Contains(out, "3 files = 2 jobs completed + 1 failed") {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestWrongArgumentsAreExplained(t *testing.T) {
	for want, args := range map[string][]string{
		"want one directory, got 0":          {},
		"no such file":                       {"--db", filepath.Join(t.TempDir(), "a.db"), filepath.Join(t.TempDir(), "none")},
		"flag provided but not defined: -no": {"--no"},
	} {
		if _, err := hashfiles(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", args, err, want)
		}
	}
}
