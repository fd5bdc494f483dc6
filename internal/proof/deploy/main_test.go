package deploy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stint-go/stint/internal/proof/pgtest"
)

const root = "../../.."

var (
	stint    string // the command
	migrated = pgtest.NewTemplate(func(ctx context.Context, url string) error {
		out, err := exec.CommandContext(ctx, stint, "migrate", "up", "--db", url).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run builds the command once. The C library is linked in rather than left out, as a release does: that takes what tests have
// compiled already, and a moment in place of a minute.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "stint-deploy-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	stint = filepath.Join(dir, "stint")
	build := exec.Command("go", "build", "-ldflags=-linkmode=external -extldflags=-static -s -w", "-o", stint, "./cmd/stint")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the command: %v\n%s", err, out)
		return 1
	}
	return pgtest.Runner{M: m}.Run()
}

// file reads one of deploy/.
func file(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
