package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/store"
)

// What is set for a role, for the sake of other programs, ends nothing that an
// engine does or waits for; what froze is ended well within its time to live.
func TestTheSessionsOfEnginesHaveTimeOutsOfTheirOwn(t *testing.T) {
	s := openStore(t, pgtest.New(t))
	for _, name := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		config := s.pool.Config()
		config.ConnConfig.RuntimeParams[name] = "1000"
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		must(t, err)
		t.Cleanup(pool.Close)
		mine, err := New(t.Context(), pool)
		must(t, err)
		t.Cleanup(mine.Close)
		must(t, mine.startWork(t.Context(), 6*time.Second))
		for what, p := range map[string]*pgxpool.Pool{"1s": pool, "4s": mine.work()} {
			if got := setting(t.Context(), t, p, name); got != what {
				t.Errorf("%s is %s, want %s", name, got, what)
			}
		}
	}
}

// With less than that, what engines do needs files, which a role may not have.
func TestTheSessionsOfEnginesHaveMemoryEnough(t *testing.T) {
	for set, want := range map[string]string{"64kB": "4MB", "4MB": "4MB", "16MB": "16MB"} {
		url := installed.New(t)
		must(t, setDefault(t.Context(), url, "work_mem", set))
		must(t, setDefault(t.Context(), url, "temp_file_limit", "0"))
		s := openStore(t, url)
		must(t, s.startWork(t.Context(), 6*time.Second))
		if got := setting(t.Context(), t, s.work(), "work_mem"); got != want {
			t.Errorf("where %s is set work_mem is %s, want %s", set, got, want)
		}
		if got := setting(t.Context(), t, s.pool, "work_mem"); got != set {
			t.Errorf("where %s is set the program's sessions have %s", set, got)
		}
	}
}

// So a password can be changed while programs run.
func TestAPasswordInAFileIsReadForEachConnection(t *testing.T) {
	for variable, line := range map[string]string{"PGPASSFILE": "*:*:*:%s:%s\n", "PGSERVICEFILE": "[stint]\nuser=%s\npassword=%s\n"} {
		t.Run(variable, func(t *testing.T) {
			s := newStore(t)
			role := "changes_" + value[string](t, s.pool, `select current_database()`)
			exec(t, s, fmt.Sprintf(`create role %s login superuser`, role))
			t.Cleanup(func() {
				_, err := s.pool.Exec(context.Background(), "drop role "+role)
				must(t, err)
			})
			file := filepath.Join(t.TempDir(), "passwords")
			write := func(password string) { must(t, os.WriteFile(file, fmt.Appendf(nil, line, role, password), 0o600)) }
			change := func(password string) { exec(t, s, fmt.Sprintf("alter role %s password '%s'", role, password)) }
			change("one")
			write("one")
			t.Setenv(variable, file)
			u, err := url.Parse(s.url())
			must(t, err)
			u.User = url.User(role)
			if variable == "PGSERVICEFILE" {
				u.User, u.RawQuery = nil, u.RawQuery+"&service=stint"
			}
			theirs := openStore(t, u.String())
			must(t, theirs.startWork(t.Context(), 6*time.Second))
			connects := func() error {
				theirs.pool.Reset()
				theirs.work().Reset()
				_, err := theirs.Engines(t.Context())
				conn, dialled := theirs.dial(t.Context(), "stint listen")
				if dialled == nil {
					hangUp(t.Context(), conn)
				}
				return errors.Join(err, dialled, theirs.pool.Ping(t.Context()))
			}
			must(t, connects())
			change("two")
			if err := connects(); !errors.Is(err, store.ErrLogin) {
				t.Errorf("with a password that was changed: %v", err)
			}
			write("two")
			must(t, connects())
		})
	}
}

func setting(ctx context.Context, t *testing.T, pool *pgxpool.Pool, name string) (value string) {
	t.Helper()
	must(t, pool.QueryRow(ctx, "select current_setting($1)", name).Scan(&value))
	return value
}

// Handlers may hold all of the program's connections for as long as they run.
func TestWhatAnEngineAsksNeedsNoneOfTheProgramsConnections(t *testing.T) {
	s := limited(t, openStore(t, pgtest.New(t)), 1)
	t.Cleanup(s.Close)
	must(t, s.Join(t.Context(), store.EngineInfo{Token: 1, Instance: "asks", Slots: 1, TimeToLive: 6 * time.Second}, nil))
	conn, err := s.pool.Acquire(t.Context())
	must(t, err)
	defer conn.Release()
	for what, ask := range map[string]func(context.Context) error{
		"who was cancelled": func(ctx context.Context) error { _, err := s.Cancelling(ctx, []stint.ID{1}); return err },
		"what is paused":    func(ctx context.Context) error { _, err := s.Paused(ctx); return err },
		"what time it is":   func(ctx context.Context) error { _, err := s.Now(ctx); return err },
		"who else is there": func(ctx context.Context) error { _, err := s.Engines(ctx); return err },
		"what it holds":     func(ctx context.Context) error { _, err := s.Held(ctx, 1, 1); return err },
		"what is undecided": func(ctx context.Context) error { _, err := s.Undecided(ctx, nil, 0, 1); return err },
		"whether it is in":  func(ctx context.Context) error { _, err := s.Heartbeat(ctx, 1, store.Heartbeat{Number: 1}); return err },
	} {
		limit, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if err := ask(limit); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		cancel()
	}
}
