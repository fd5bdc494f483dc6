package pgtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func wantWords(t *testing.T, got string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(got, word) {
			t.Errorf("%q\nlacks %q", got, word)
		}
	}
}

func TestTheNewestInstallationComesFirst(t *testing.T) {
	all := Installations()
	if len(all) == 0 {
		t.Fatal(&NotFoundError{})
	}
	if !slices.IsSortedFunc(all, func(a, b Installation) int { return b.Major - a.Major }) {
		t.Errorf("not sorted: %v", all)
	}
	newest, err := Find(0)
	if os.Getenv("STINT_PG_BIN") == "" && (err != nil || newest != all[0]) {
		t.Errorf("found %v, %v among %v", newest, err, all)
	}
}

func TestANamedDirectoryWins(t *testing.T) {
	all := Installations()
	oldest := all[len(all)-1]
	t.Setenv("STINT_PG_BIN", oldest.Bin)
	if got, err := Find(0); err != nil || got != oldest {
		t.Errorf("found %v, %v instead of %v", got, err, oldest)
	}
	t.Setenv("STINT_PG_BIN", t.TempDir())
	if got, err := Find(0); err == nil {
		t.Errorf("found %v in an empty directory", got)
	}
}

func TestAMissingServerSaysWhatToDo(t *testing.T) {
	_, err := Find(99)
	if err == nil {
		t.Fatal("found PostgreSQL 99")
	}
	wantWords(t, err.Error(), "no PostgreSQL 99", "go run ./internal/proof/pgtest/fetch 99")
	wantWords(t, (&NotFoundError{}).Error(), "run `make test`", "STINT_PG_BIN")
}

func TestAClosedDirectoryIsOfNoUseToAnotherUser(t *testing.T) {
	if _, switched := serverUser(); !switched {
		t.Skip("the server runs as the user who runs the tests")
	}
	home, err := os.MkdirTemp("", "closed") // MkdirTemp closes it to others, as the home of root is.
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	bin := filepath.Join(home, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	err = reachable(bin)
	if err == nil {
		t.Fatal("a closed directory counts as reachable")
	}
	wantWords(t, err.Error(), home)
}

func TestTheListOfVersionsIsRead(t *testing.T) {
	for list, want := range map[string][]int{
		"": {0}, " ": {0}, "13": {13}, "13,18": {13, 18}, " 13 , 18 ": {13, 18},
		"12": nil, "13,": nil, "newest": nil, "-13": nil,
	} {
		got, err := majorsToTest(list)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("majorsToTest(%q) = %v, %v; want %v", list, got, err, want)
		}
	}
}

func TestVersionsAreOrderedByValue(t *testing.T) {
	ascending := []string{
		"9.6", "13.9", "13.10", "18beta1", "18beta2", "18", "18.1.0-alpha.3", "18.1.0-beta.9", "18.1.0-beta.15", "18.4",
	}
	for i, a := range ascending {
		for j, b := range ascending {
			if got, want := compareVersions(a, b), sign(i-j); got != want {
				t.Errorf("compareVersions(%q, %q) = %d, want %d", a, b, got, want)
			}
		}
	}
}

func sign(n int) int { return min(1, max(-1, n)) }

func TestTheNewestReleaseOfAMajorVersionIsFetched(t *testing.T) {
	versions := []string{"1.8.0", "13.9.0-beta.14", "13.23.0-beta.16", "13.23.0-beta.9", "18.4.0-beta.17", "130.1.0"}
	got := []string{newestOf(versions, 13), newestOf(versions, 18), newestOf(versions, 17)}
	if diff := cmp.Diff([]string{"13.23.0-beta.16", "18.4.0-beta.17", ""}, got); diff != "" {
		t.Error(diff)
	}
}
