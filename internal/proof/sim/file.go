package sim

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	_ "github.com/ncruces/go-sqlite3/driver" // for transactions of the producers' own

	"github.com/stint-go/stint/sqlite"
)

// fast is a directory in memory, where the system has one.
func fast() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

// template is a file with the schema, made once: installing it takes longer
// than copying it.
var template = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp(fast(), "stint-sim-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "jobs.db")
	s, err := sqlite.Open(context.Background(), path)
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	db, err := openDatabase(path)
	if err != nil {
		return nil, err
	}
	for _, text := range slices.Concat(asideSQL, []string{effectsSQL}, journalSQL) {
		if _, err := db.Exec(text); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// install makes a file with the schema.
func install(path string) error {
	file, err := template()
	if err != nil {
		return err
	}
	return os.WriteFile(path, file, 0o644)
}

// openDatabase opens the file as a user's program does.
func openDatabase(path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite3", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(20000)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}
