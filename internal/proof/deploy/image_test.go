package deploy

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// dockerKills is how long a container has to end, unless something else is said.
const dockerKills = 10 * time.Second

var check = regexp.MustCompile(`(?m)^HEALTHCHECK .*CMD (\[.*\])$`)

// healthCheck is what the image's check runs, without the name of the command.
func healthCheck(t *testing.T) []string {
	t.Helper()
	var words []string
	found := check.FindStringSubmatch(file(t, "Dockerfile"))
	if found == nil || json.Unmarshal([]byte(found[1]), &words) != nil || words[0] != "stint" {
		t.Fatalf("the health check of the image is %q", found)
	}
	return words[1:]
}

// The last stage of the Dockerfile is built from the command that was built for these tests: nothing can be downloaded into the
// first one here. What comes of it has the command and nothing else, and works without a setting.
func TestTheImageHoldsTheCommandAndRunsIt(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("buildah"); err != nil {
		t.Skip("there is no buildah: make buildah")
	}
	if os.Getuid() != 0 {
		t.Skip("only root may enter an image without a runtime")
	}
	dir, binary := t.TempDir(), t.TempDir()
	buildah := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("buildah", append([]string{"--storage-driver", "vfs", "--root", filepath.Join(dir, "root"), "--runroot", filepath.Join(dir, "run")}, args...)...)
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("buildah %s: %v\n%s%s", strings.Join(args, " "), err, out, errs.String())
		}
		return strings.TrimSpace(string(out))
	}
	for path, from := range map[string]string{"out/stint": stint, "out/data": "", "etc/ssl/certs/ca-certificates.crt": "Dockerfile"} {
		to := filepath.Join(binary, path)
		if from == "" {
			_ = os.MkdirAll(to, 0o755)
			continue
		}
		if from == "Dockerfile" { // any file
			from = filepath.Join(root, "deploy", from)
		}
		_ = os.MkdirAll(filepath.Dir(to), 0o755)
		if out, err := exec.Command("cp", from, to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	buildah("bud", "--isolation", "chroot", "--format", "docker", "--build-context", "build="+binary, "--file", filepath.Join(root, "deploy/Dockerfile"), "--tag", "stint", t.TempDir())
	var image struct {
		Docker struct {
			Config struct {
				User, WorkingDir     string
				Env, Entrypoint, Cmd []string
				Healthcheck          struct{ Test []string }
			}
		}
	}
	if err := json.Unmarshal([]byte(buildah("inspect", "--type", "image", "stint")), &image); err != nil {
		t.Fatal(err)
	}
	config := image.Docker.Config
	if config.User != "65532:65532" || config.WorkingDir != "/data" || !slices.Equal(config.Healthcheck.Test, append([]string{"CMD", "stint"}, healthCheck(t)...)) {
		t.Errorf("the image has %+v", config)
	}
	container := buildah("from", "stint")
	mounted := buildah("mount", container)
	defer buildah("umount", container)
	var files []string
	_ = filepath.WalkDir(mounted, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files = append(files, strings.TrimPrefix(path, mounted))
		}
		return err
	})
	if want := []string{"/etc/ssl/certs/ca-certificates.crt", "/usr/local/bin/stint"}; !slices.Equal(files, want) {
		t.Errorf("the image has the files %v, want %v", files, want)
	}
	if config.Entrypoint[0] != "stint" {
		t.Fatalf("the image starts %v", config.Entrypoint)
	}
	p := program{args: config.Cmd, env: map[string]string{"STINT_GRACE": "30s"}, asks: [][]string{healthCheck(t)}, kill: time.Minute, root: mounted}
	for _, pair := range config.Env {
		key, value, _ := strings.Cut(pair, "=")
		p.env[key] = strings.Replace(value, "9070", freePort(t), 1)
	}
	p.run(t)
	if _, err := os.Stat(filepath.Join(mounted, "data/stint.db")); err != nil {
		t.Errorf("without settings an engine of the image makes a file in /data: %v", err)
	}
}
