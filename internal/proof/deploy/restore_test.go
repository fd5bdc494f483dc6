package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stint-go/stint/internal/proof/pgtest"
)

var shell = regexp.MustCompile("(?s)```sh\n(.*?)```")

// A backup of the schema alone, as the page makes and restores it, has all jobs: one that ended stays, and one that waits is run
// by an engine of the copy, unless its queue is paused there.
func TestABackupIsRestoredAsThePageSays(t *testing.T) {
	t.Parallel()
	with := pgtest.WithPrograms(t, "pg_dump", "pg_restore")
	server := pgtest.Start(t, pgtest.Options{Major: with.Major, Fsync: true})
	old, restored, dir := migrated.On(t, server), server.New(t), t.TempDir()
	sh := func(script, url string) {
		t.Helper()
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(stint)+":"+with.Bin+":"+os.Getenv("PATH"), "STINT_DB="+url, "DB="+old, "NEW_DB="+restored)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s\n%v\n%s", script, err, out)
		}
	}
	const works = `stint work --demo & engine=$!; trap 'kill $engine; wait $engine' EXIT; stint jobs watch `
	sh(`stint enqueue demo.sleep '{"for":"1ms"}' --force; `+works+`1`, old)
	sh(`stint enqueue demo.sleep '{"for":"1ms"}' --queue default; stint schedules add nightly demo.sleep '{"for":"1ms"}' --every 1s --queue drill`, old)
	_, text, _ := strings.Cut(page(t, "docs/guide/deploying.md"), "\n## Backup and restore\n")
	blocks := shell.FindAllStringSubmatch(text, -1)
	sh(blocks[0][1], "")
	sh(blocks[1][1], "")
	sh(blocks[2][1], "")
	sh(`id=$(stint enqueue demo.sleep '{"for":"1ms"}' --queue drill); `+works+`$id; sleep 2; [ "$(stint jobs list --json | grep -c '^    "id"')" = 3 ]; stint jobs list --state available --json | grep '^    "id": 2'`, restored)
	sh(`stint queues resume default`, restored)
	sh(works+`1 2; for id in 1 2; do [ "$(stint jobs show $id --json | grep -c '"outcome": "completed"')" = 1 ]; done`, restored)
}
