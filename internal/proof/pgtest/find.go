package pgtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// OldestMajor is the oldest major version of PostgreSQL that stint supports.
const OldestMajor = 13

// programs are the binaries that an installation must have to be of use here.
var programs = []string{"initdb", "pg_ctl", "postgres"}

// usualPlaces are where packages for Debian, Red Hat, Homebrew, MacPorts, Postgres.app and a build from
// source put their binaries; most of them put them outside the PATH.
var usualPlaces = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/lib/postgresql*/bin",
	"/usr/pgsql-*/bin",
	"/usr/local/pgsql/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
	"/opt/local/lib/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// Installation is one PostgreSQL found on this machine.
type Installation struct {
	Major   int    // 15
	Version string // "15.14"
	Bin     string // directory that holds initdb, pg_ctl and postgres
}

func (i Installation) String() string {
	return fmt.Sprintf("PostgreSQL %s in %s", i.Version, i.Bin)
}

// program returns the path of one of the installation's programs.
func (i Installation) program(name string) string {
	return filepath.Join(i.Bin, name)
}

// NotFoundError says that no usable server is installed, and how to get one.
type NotFoundError struct {
	Major int // the version asked for; 0 for any
	Found []Installation
}

func (e *NotFoundError) Error() string {
	if e.Major == 0 {
		return fmt.Sprintf("no PostgreSQL server (%d or newer) found on this machine: run `make test`, which installs one, "+
			"or set STINT_PG_BIN to the directory that holds initdb and postgres", OldestMajor)
	}
	return fmt.Sprintf("no PostgreSQL %d found on this machine (found: %v): run `go run ./internal/proof/pgtest/fetch %d` "+
		"in the root of the module", e.Major, e.Found, e.Major)
}

// Find returns the newest installation of a major version, or the newest of all if major is 0; its error is a
// *NotFoundError. It looks into STINT_PG_BIN, which wins over all others when major is 0, into the PATH, into the
// places where packages put their binaries, and into the cache that [Fetch] fills.
func Find(major int) (Installation, error) {
	if dir := os.Getenv("STINT_PG_BIN"); dir != "" {
		named, err := inspect(dir)
		if err != nil {
			return Installation{}, fmt.Errorf("STINT_PG_BIN: %w", err)
		}
		if major == 0 || major == named.Major {
			return named, nil
		}
	}
	all := Installations()
	for _, installation := range all {
		if major == 0 || installation.Major == major {
			return installation, nil
		}
	}
	return Installation{}, &NotFoundError{Major: major, Found: all}
}

// Installations returns what is installed and usable, the newest first.
func Installations() []Installation {
	var found []Installation
	for _, dir := range candidates() {
		if installation, err := inspect(dir); err == nil && !slices.Contains(found, installation) {
			found = append(found, installation)
		}
	}
	slices.SortStableFunc(found, func(a, b Installation) int {
		return cmp.Or(cmp.Compare(b.Major, a.Major), compareVersions(b.Version, a.Version))
	})
	return found
}

// candidates lists the directories that may hold binaries, whether they exist or not.
func candidates() []string {
	var dirs []string
	if path, err := exec.LookPath("postgres"); err == nil {
		// Some systems link single programs into the PATH; only their true directory has all of them.
		if path, err = filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	for _, pattern := range usualPlaces {
		matches, _ := filepath.Glob(pattern) // Only a malformed pattern is an error, and these are constants.
		dirs = append(dirs, matches...)
	}
	for _, cache := range cacheDirs() {
		matches, _ := filepath.Glob(filepath.Join(cache, "[0-9]*", "bin"))
		dirs = append(dirs, matches...)
	}
	return dirs
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) ((\d+)[^\s]*)`)

// inspect finds out whether a directory holds a whole installation that the servers' user can run, and which.
func inspect(dir string) (Installation, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Installation{}, err
	}
	for _, name := range programs {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return Installation{}, err
		}
	}
	if err := reachable(dir); err != nil {
		return Installation{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return Installation{}, fmt.Errorf("%s does not run: %w", filepath.Join(dir, "postgres"), err)
	}
	match := versionPattern.FindSubmatch(out)
	if match == nil {
		return Installation{}, fmt.Errorf("%s names no version: %q", dir, out)
	}
	major, err := strconv.Atoi(string(match[2]))
	if err != nil {
		return Installation{}, err
	}
	if major < OldestMajor {
		return Installation{}, fmt.Errorf("%s holds PostgreSQL %d, which is older than %d", dir, major, OldestMajor)
	}
	return Installation{Major: major, Version: string(match[1]), Bin: dir}, nil
}

// reachable says why the servers' user cannot get at a directory, if it cannot. It matters when the tests run as root:
// the server runs as somebody else then, and the home directory of root is usually closed to others.
func reachable(dir string) error {
	if _, switched := serverUser(); !switched {
		return nil
	}
	for {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("%s is closed to the user that runs the server: %w", dir, errUnreachable)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil
		}
		dir = parent
	}
}

var errUnreachable = errors.New("not reachable")

var versionPart = regexp.MustCompile(`\d+|[a-z]+`)

// compareVersions orders versions such as "15.14", "18beta1" and "18.4.0-beta.17" by their parts from left to right:
// numbers by value, words by the alphabet, and a word before a number, so that a beta comes before its release.
func compareVersions(a, b string) int { return slices.Compare(versionKey(a), versionKey(b)) }

func versionKey(version string) (key []string) {
	for _, part := range append(versionPart.FindAllString(version, -1), "0") {
		if part[0] <= '9' {
			part = fmt.Sprintf("~%9s", part) // the sign comes after all letters
		}
		key = append(key, part)
	}
	return key
}
