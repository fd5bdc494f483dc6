package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// copyFrom fills the data directory with a copy of a running server's. That is done by hand, since few installations have
// the program that does it. What changes while it is copied is made whole from the log, which the server has to be given
// from the beginning of the copy on.
func (s *Server) copyFrom(source *Server) error {
	ctx, cancel := shortly()
	defer cancel()
	conn, err := pgx.Connect(ctx, source.SocketURL("postgres")) // who ends it ends the copy
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	start, stop := `select pg_backup_start('copy', true)`, `select labelfile from pg_backup_stop(false)`
	if source.Major() < 15 {
		start, stop = `select pg_start_backup('copy', true, false)`, `select labelfile from pg_stop_backup(false, false)`
	}
	if _, err := conn.Exec(ctx, start); err != nil {
		return fmt.Errorf("begin a copy: %w", err)
	}
	if err := copyData(ctx, source.dir.data(), s.dir.data()); err != nil {
		return err
	}
	var label string
	if err := conn.QueryRow(ctx, stop).Scan(&label); err != nil {
		return fmt.Errorf("end a copy: %w", err)
	}
	return s.write("backup_label", label)
}

// copyData copies a data directory that is in use. Files that vanish meanwhile are not missed.
func copyData(ctx context.Context, from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(from, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case entry.IsDir():
			if err := os.MkdirAll(filepath.Join(to, name), 0o700); err != nil {
				return err
			}
			return giveToServer(filepath.Join(to, name))
		case ofRunning(name):
			return nil
		}
		err = copyFile(path, filepath.Join(to, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// ofRunning tells which files are of a server that runs, and not of its data.
func ofRunning(name string) bool {
	return strings.HasPrefix(name, "postmaster.") || filepath.Dir(name) == "pg_wal" || filepath.Dir(name) == "pg_dynshmem"
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = out.ReadFrom(in)
	return errors.Join(err, out.Close(), giveToServer(to))
}

// write writes a file of the data directory.
func (s *Server) write(name, text string) error {
	path := filepath.Join(s.dir.data(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return giveToServer(path)
}
