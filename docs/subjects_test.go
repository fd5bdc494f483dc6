package docs

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard"
	"github.com/stint-go/stint/dashboard/link"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/jobs/httpjob"
	"github.com/stint-go/stint/outside"
	"github.com/stint-go/stint/seal"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/stinttest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ran drains a worker and checks how many attempts of a kind there were.
func ran(t *testing.T, w *stinttest.Worker, kind string, want int) {
	t.Helper()
	if report := w.Drain(); len(report.Of(kind)) != want {
		t.Errorf("%s ran %d times, want %d:\n%s", kind, len(report.Of(kind)), want, report)
	}
}

type File struct{ Pages int }

var Import = stint.NewKind[File]("import_file")

func load(context.Context, File, int) (rows int, err error) { return 7, nil }

// progress.md
func TestProgress(t *testing.T) {
	mux := stint.NewMux()
	stint.Handle(mux, Import, func(ctx context.Context, job *stint.Job, f File) error {
		log := stint.Logger(ctx) // an *slog.Logger
		for page := range f.Pages {
			stint.SetProgress(ctx, float64(page)/float64(f.Pages), fmt.Sprintf("page %d", page))
			n, err := load(ctx, f, page)
			if err != nil {
				return err
			}
			log.Info("a page is loaded", "page", page, "rows", n)
		}
		return nil
	})
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(stint.LogHandler(slog.NewTextHandler(os.Stderr, nil))))

	handler, job := mux.Handler("import_file"), &stint.Job{Kind: "import_file", Args: []byte(`{"Pages": 3}`)}
	run := &stint.Run{Job: job}
	_, err := handler(run.Context(t.Context()), job)
	said := run.Log() // said.Progress, said.Lines
	must(t, err)
	if said.Progress.Text != "page 2" || len(said.Lines) != 3 {
		t.Errorf("it said %+v", said)
	}
	ctx := run.Context(t.Context())
	slog.InfoContext(ctx, "a page is loaded", "page", 40) // on standard error, and with the job
	if said := run.Log(); len(said.Lines) == 0 || !strings.Contains(fmt.Sprint(said.Lines[len(said.Lines)-1]), "40") {
		t.Errorf("it said %+v", said)
	}
}

type Blobs interface {
	Put(ctx context.Context, key string, value []byte) error
	Get(ctx context.Context, key string) ([]byte, error) // outside.ErrNotFound if there is certainly none
}

var _ = []Blobs{outside.Blobs(nil), outside.Dir("")}

// outside.md
func TestOutside(t *testing.T) {
	store, err := sqlite.Open(t.Context(), sqlite.Memory)
	must(t, err)
	defer store.Close()
	var blobs outside.Blobs = outside.Dir(t.TempDir())
	mux := stint.NewMux()

	client := stint.NewClient(store).Outside(blobs, 64<<10) // values of 64 KiB and more
	e, err := engine.New(store, mux, engine.Config{Client: client})
	must(t, err)
	text := stint.NewKind[string]("text")
	id, err := text.Enqueue(t.Context(), client, strings.Repeat("x", 100_000))
	must(t, err)
	stored, err := store.Job(t.Context(), id)
	must(t, err)
	if e == nil || !outside.Is(stored.Args) {
		t.Errorf("the arguments are %.100s", stored.Args)
	}
}

type SyncArgs struct {
	Token string `json:"token"`
	Card  struct {
		Number string `json:"number"`
	} `json:"card"`
}

// redacted.md
func TestRedacted(t *testing.T) {
	parts := func() stint.KindInfo {
		var Sync = stint.NewKind[SyncArgs]("sync", stint.Redact("/token", "/card/number")) // JSON pointers

		return Sync.Declaration()
	}()
	all := func() stint.KindInfo {
		var Sync = stint.NewKind[SyncArgs]("sync", stint.Redact()) // all of the arguments

		return Sync.Declaration()
	}()
	if len(parts.Redacted) != 2 || len(all.Redacted) != 1 || all.Redacted[0] != "" {
		t.Errorf("redacted are %q and %q", parts.Redacted, all.Redacted)
	}
}

type Payment struct {
	Amount int    `json:"amount"`
	IBAN   string `json:"iban"`
}

// sealed.md
func TestSealed(t *testing.T) {
	all := func() stint.Kind[Payment] {
		// Declared once, for producers and handlers.
		var Pay = stint.NewKind[Payment]("pay", stint.Sealed()) // all of the arguments

		return Pay
	}()
	part := func() stint.Kind[Payment] {
		var Pay = stint.NewKind[Payment]("pay", stint.Sealed("/iban")) // or only what JSON pointers select

		return Pay
	}()
	store, err := sqlite.Open(t.Context(), sqlite.Memory)
	must(t, err)
	defer store.Close()
	secret, mux := []byte(strings.Repeat("x", 32)), stint.NewMux()

	// In each program that enqueues or runs such jobs.
	keys, err := seal.NewRing(seal.Key{ID: "2026-11", Secret: secret}) // 32 random bytes: openssl rand 32
	must(t, err)
	client := stint.NewClient(store).Seal(keys)
	e, err := engine.New(store, mux, engine.Config{Client: client})
	must(t, err)
	for _, kind := range []stint.Kind[Payment]{all, part} {
		id, err := kind.Enqueue(t.Context(), client, Payment{100, "CH93"})
		must(t, err)
		stored, err := store.Job(t.Context(), id)
		must(t, err)
		if e == nil || strings.Contains(string(stored.Args), "CH93") {
			t.Errorf("the arguments are %s", stored.Args)
		}
	}
}

// webhooks.md
func TestWebhooks(t *testing.T) {
	store, err := sqlite.Open(t.Context(), sqlite.Memory)
	must(t, err)
	defer store.Close()
	mux, secret := stint.NewMux(), strings.Repeat("x", 32)

	key, err := link.NewKey(secret) // package dashboard/link
	must(t, err)
	back, err := key.Callbacks("https://jobs.example.com")
	must(t, err)
	httpjob.Register(mux, httpjob.Config{Callback: back})
	board, err := dashboard.New(store, dashboard.Config{LinkKey: secret})
	must(t, err)
	var _ http.Handler = board
	if mux.Handler("http") == nil {
		t.Error("no handler makes requests")
	}
}

// steps.md
func TestLinks(t *testing.T) {
	t.Setenv("STINT_DASHBOARD_LINK_KEY", strings.Repeat("x", 32))
	job := &stint.Job{ID: 42}

	key, err := link.NewKey(os.Getenv("STINT_DASHBOARD_LINK_KEY"))
	must(t, err)
	url, err := key.URL("https://jobs.example.com", link.Link{Job: job.ID, Question: "approve", By: "ann", Expires: time.Now().Add(72 * time.Hour)})
	if err != nil || !strings.HasPrefix(url, "https://jobs.example.com/answer/") {
		t.Errorf("the link is %s, %v", url, err)
	}
}
