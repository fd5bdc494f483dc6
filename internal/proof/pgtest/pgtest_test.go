package pgtest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

// TestMain also shows that servers run without goroutines of ours.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		runAsChild()
		return
	}
	goleak.VerifyTestMain(Runner{m})
}

// value runs a query that gives one value as text.
func value(t testing.TB, url, query string) string {
	t.Helper()
	conn := connect(t, url)
	defer conn.Close(t.Context())
	var text string
	if err := conn.QueryRow(t.Context(), query).Scan(&text); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return text
}

func execute(t testing.TB, url, statement string) {
	t.Helper()
	conn := connect(t, url)
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// connect leaves it to the caller to close the connection.
func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	for range 3 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			url := New(t)
			execute(t, url, "create table only_one ()")
			if got := value(t, url, "select count(*)::text from pg_class where relname = 'only_one'"); got != "1" {
				t.Errorf("found %s tables, want 1", got)
			}
		})
	}
}

func TestTheDatabaseIsGoneAfterTheTest(t *testing.T) {
	var name string
	t.Run("inner", func(t *testing.T) {
		url := New(t)
		name = value(t, url, "select current_database()")
		connect(t, url) // A connection that the test forgets to close does not keep the database.
	})
	if !strings.HasPrefix(name, "testthedatabaseisgone") {
		t.Errorf("the name %q does not tell the test", name)
	}
	query := fmt.Sprintf("select count(*)::text from pg_database where datname = '%s'", name)
	if got := value(t, Shared(t, 0).URL("postgres"), query); got != "0" {
		t.Errorf("found %s databases %q, want 0", got, name)
	}
}

func TestTheSocketNeedsNoPasswordAndTCPDoes(t *testing.T) {
	server := Shared(t, 0)
	if got := value(t, server.SocketURL("postgres"), "select 'in'"); got != "in" {
		t.Errorf("got %q over the socket", got)
	}
	wrong := strings.Replace(server.URL("postgres"), server.password, "wrong", 1)
	conn, err := pgx.Connect(t.Context(), wrong)
	if err == nil {
		conn.Close(t.Context())
		t.Error("a wrong password was accepted")
	}
}

func TestTheDefaultsAreInForce(t *testing.T) {
	url := New(t)
	for name, want := range map[string]string{
		"fsync": "off", "synchronous_commit": "on", "max_prepared_transactions": "64", "max_connections": "200",
	} {
		if got := value(t, url, "show "+name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestATemplateIsPreparedOnceAndClonedPerTest(t *testing.T) {
	prepared := 0
	template := NewTemplate(func(ctx context.Context, url string) error {
		prepared++
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, "create table item as select 1 as id")
		return err
	})
	for range 4 {
		t.Run("", func(t *testing.T) {
			url := template.New(t)
			execute(t, url, "insert into item values (2)")
			if got := value(t, url, "select count(*)::text from item"); got != "2" {
				t.Errorf("found %s rows, want the template's and ours", got)
			}
		})
	}
	if prepared != 1 {
		t.Errorf("prepared %d times, want once", prepared)
	}
}

func TestClonesCanBeMadeAtTheSameTime(t *testing.T) {
	Each(t, func(t *testing.T, server *Server) {
		template := NewTemplate(func(ctx context.Context, url string) error {
			conn, err := pgx.Connect(ctx, url)
			if err != nil {
				return err
			}
			return conn.Close(ctx)
		})
		for range 8 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				value(t, template.On(t, server), "select '1'")
			})
		}
	})
}
