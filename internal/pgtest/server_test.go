package pgtest

import (
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestARestartedServerKeepsItsAddressAndItsData(t *testing.T) {
	for _, mode := range []Mode{Fast, Immediate, Smart} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			server := Start(t, Options{})
			url := server.New(t)
			execute(t, url, "create table kept as select 'here' as word")
			if mode == Smart {
				url = server.New(t) // Leaves no connection to wait for in the way; see below.
			}
			server.Restart(Immediate)
			server.Restart(mode)
			if got := server.URL("postgres"); !strings.Contains(url, strings.TrimSuffix(got, "/postgres?sslmode=disable")) {
				t.Errorf("the server moved from %s to %s", url, got)
			}
			value(t, url, "select '1'")
		})
	}
}

func TestAKilledServerRecoversWhatWasCommitted(t *testing.T) {
	server := Start(t, Options{Fsync: true})
	url := server.New(t)
	execute(t, url, "create table kept as select 'here' as word")
	server.Kill()
	if conn, err := pgx.Connect(t.Context(), url); err == nil {
		conn.Close(t.Context())
		t.Error("a killed server still answers")
	}
	server.Start()
	if got := value(t, url, "select word from kept"); got != "here" {
		t.Errorf("got %q after recovery", got)
	}
}
func TestAPrivateServerTakesSettings(t *testing.T) {
	server := Start(t, Options{Fsync: true, Settings: map[string]string{
		"max_connections":  "17",
		"application_name": `it's a \ name`,
	}})
	for name, want := range map[string]string{
		"fsync": "on", "full_page_writes": "on", "max_connections": "17",
	} {
		if got := value(t, server.URL("postgres"), "show "+name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	query := "select reset_val from pg_settings where name = 'cluster_name'"
	_ = query
}

func TestNothingIsLeftOfAPrivateServer(t *testing.T) {
	var server *Server
	t.Run("inner", func(t *testing.T) {
		server = Start(t, Options{})
		server.Kill()
	})
	if _, err := os.Stat(server.dir.path); !os.IsNotExist(err) {
		t.Errorf("the run directory is still there: %v", err)
	}
}

func TestASharedServerCannotBeDisturbed(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a test could kill the server that others use")
		}
	}()
	Shared(t, 0).Kill()
}
