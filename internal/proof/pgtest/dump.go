package pgtest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// WithPrograms returns the newest installation that has these programs, which not every one has. The test is skipped
// where there is none.
func WithPrograms(t testing.TB, names ...string) Installation {
	t.Helper()
	all := Installations()
	i := slices.IndexFunc(all, func(i Installation) bool {
		return !slices.ContainsFunc(names, func(name string) bool {
			_, err := os.Stat(i.program(name))
			return err != nil
		})
	})
	if i < 0 {
		t.Skipf("no PostgreSQL on this machine has all of %v; found: %v", names, all)
	}
	return all[i]
}

// Dump writes all of a database to a file, as it was at one moment, and returns the file's path. The installation must have
// pg_dump.
func (s *Server) Dump(database string) string {
	s.own("Dump").Helper()
	path := filepath.Join(s.dir.path, database+".dump")
	if err := s.run("pg_dump", "--format=custom", "--compress=0", "--dbname="+s.SocketURL(database), "--file="+path); err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
	return path
}

// Restore fills an empty database from a file that [Server.Dump] wrote. The roles that it names must be there, and the
// installation must have pg_restore.
func (s *Server) Restore(path, database string) {
	s.own("Restore").Helper()
	if err := s.run("pg_restore", "--exit-on-error", "--dbname="+s.SocketURL(database), path); err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
}
