package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint"
)

// networks are file systems whose locks and shared memory SQLite's WAL cannot
// rely on when several machines use one file.
var networks = []string{"nfs", "nfs4", "smb", "smb2", "smbfs", "cifs", "9p", "afs", "ceph", "webdav", "afpfs"}

// file looks at how the file is kept.
func (x *examination) file(ctx context.Context) error {
	err := x.read(ctx, func(c *conn) error {
		var mode string
		err := c.query(`pragma journal_mode`, nil, func(q *stmt) error { mode = q.ColumnText(0); return nil })
		if err == nil && mode != "wal" && x.path != Memory {
			x.find(stint.Finding{
				Severity: stint.SeverityWarning, Code: "journal_mode", Subject: "the file",
				Problem: "its journal is " + mode + ": readers keep writers out, and the other way round",
				Remedy:  "open it with a program that works or enqueues, which sets wal; see that nobody sets it back",
			})
		}
		if err != nil {
			return err
		}
		free, err := c.number(`pragma freelist_count`)
		if err != nil {
			return err
		}
		all, err := c.number(`pragma page_count`)
		if err != nil {
			return err
		}
		size, err := c.number(`pragma page_size`)
		x.signs.Sizes = []stint.Size{{Name: "the file", Bytes: all * size}} // the whole of it, when it is asked again
		if err == nil && free*size >= x.normal.unused && free > all/2 {
			x.find(stint.Finding{
				Severity: stint.SeverityNote, Code: "file_half_empty", Subject: "the file",
				Problem: fmt.Sprintf("%d of its %d MB are free; new jobs fill them before it grows", free*size>>20, all*size>>20),
				Remedy:  "when no engine runs: sqlite3 " + x.path + " vacuum",
				Figures: map[string]any{"free_bytes": free * size, "size_bytes": all * size},
			})
		}
		return err
	})
	if err != nil || x.path == Memory {
		return err
	}
	x.journal()
	x.disk()
	return nil
}

// journal looks at the WAL. It grows while a reader looks at what a checkpoint
// would write over.
func (x *examination) journal() {
	info, err := os.Stat(x.path + "-wal")
	if err != nil {
		return
	}
	if x.signs.Sizes = append(x.signs.Sizes, stint.Size{Name: "its journal", Bytes: info.Size()}); info.Size() < x.normal.wal {
		return
	}
	x.find(stint.Finding{
		Severity: stint.SeverityWarning, Code: "wal_large", Subject: filepath.Base(x.path) + "-wal",
		Problem: fmt.Sprintf("it takes %d MB: some program has read for so long that no checkpoint comes to its end, or transactions are very large", info.Size()>>20),
		Remedy:  "end the program that keeps a transaction open (lsof " + x.path + " lists them); the next checkpoint then cuts it",
		Figures: map[string]any{"wal_bytes": info.Size()},
	})
}

// disk looks at where the file is.
func (x *examination) disk() {
	dir := filepath.Dir(x.path)
	kind, free, ok := diskOf(dir)
	if !ok {
		return
	}
	if free < x.normal.free {
		x.find(stint.Finding{
			Severity: stint.SeverityProblem, Code: "disk_full", Subject: dir,
			Problem: fmt.Sprintf("%d MB are left on its disk; when it is full, nothing is enqueued or recorded", free>>20),
			Remedy:  "make room; stint jobs delete --finished-before makes some within the file",
			Figures: map[string]any{"free_bytes": free},
		})
	}
	if slices.Contains(networks, kind) {
		x.find(stint.Finding{
			Severity: stint.SeverityProblem, Code: "network_file_system", Subject: dir,
			Problem: "it is on a network (" + kind + "), where SQLite's journal works for one machine only, and may be damaged by two",
			Remedy:  "keep the file on a disk of the machine that uses it; several machines need PostgreSQL",
		})
	}
}

// writes sees whether the file can be written to now: it takes the lock of
// those who write, and gives it back.
func (x *examination) writes(ctx context.Context) error {
	if x.path == Memory {
		return nil
	}
	cannot := func(why string) {
		x.find(stint.Finding{
			Severity: stint.SeverityProblem, Code: "read_only", Subject: "the file",
			Problem: "this user may not write to it: " + why, Remedy: "make the file and its directory writable to those who run engines and enqueue: chmod g+rw, chgrp",
		})
	}
	db, err := sqlite3.OpenFlags(x.path, sqlite3.OPEN_READWRITE)
	if err != nil {
		cannot(err.Error())
		return nil
	}
	defer db.Close()
	if readOnly, _ := db.ReadOnly("main"); readOnly {
		cannot("it, or its directory, is read-only")
		return nil
	}
	if err := db.BusyTimeout(x.normal.locked); err != nil {
		return err
	}
	db.SetInterrupt(ctx)
	err = db.Exec(`begin immediate; rollback`)
	switch {
	case errors.Is(err, sqlite3.BUSY):
		x.find(stint.Finding{
			Severity: stint.SeverityWarning, Code: "write_locked", Subject: "the file",
			Problem: fmt.Sprintf("another program has kept it locked for writing for more than %v: nobody can enqueue, claim or record meanwhile", x.normal.locked),
			Remedy:  "see which one keeps a transaction open (lsof " + x.path + "), and have it end sooner",
		})
		return nil
	case errors.Is(err, sqlite3.READONLY):
		cannot(err.Error())
		return nil
	}
	return err
}

// pages checks the file page by page, which takes as long as it is large.
func (x *examination) pages(ctx context.Context) error {
	if !x.deep {
		return nil
	}
	var bad []string
	err := x.read(ctx, func(c *conn) error {
		bad = nil
		return c.query(fmt.Sprintf(`pragma integrity_check(%d)`, x.normal.problems), nil, func(q *stmt) error {
			if text := q.ColumnText(0); text != "ok" {
				bad = append(bad, text)
			}
			return nil
		})
	})
	if errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.NOTADB) {
		bad, err = append(bad, err.Error()), nil
	}
	if len(bad) > 0 {
		x.find(stint.Finding{
			Severity: stint.SeverityProblem, Code: "file_damaged", Subject: "the file",
			Problem: "it is damaged: " + strings.Join(bad, "; "),
			Remedy:  "stop the engines, keep a copy, and go back to a backup, or read out what can be: sqlite3 " + x.path + " .recover; docs/sqlite.md has the steps",
			Figures: map[string]any{"found": bad},
		})
	}
	return err
}

// standing sees whether the file of the places of engines is there: without it
// nobody sees that their processes live.
func (x *examination) standing(ctx context.Context) error {
	if x.path == Memory {
		return nil
	}
	var locked, all int64
	err := x.read(ctx, func(c *conn) (err error) {
		return c.query(`select count(*), ifnull(sum(locked), 0) from stint_engines`, nil, func(q *stmt) error {
			all, locked = q.ColumnInt64(0), q.ColumnInt64(1)
			return nil
		})
	})
	if err != nil {
		return err
	}
	if _, err := os.Stat(x.path + placesSuffix); errors.Is(err, fs.ErrNotExist) && locked > 0 {
		x.find(stint.Finding{
			Severity: stint.SeverityProblem, Code: "places_missing", Subject: filepath.Base(x.path) + placesSuffix,
			Problem: "somebody deleted it while engines are in the roster: those that live seem dead, and are buried",
			Remedy:  "restart the engines, and leave the file where it is",
			Figures: map[string]any{"engines": locked},
		})
	}
	if all > locked {
		x.find(stint.Finding{
			Severity: stint.SeverityNote, Code: "places_unlocked", Subject: filepath.Base(x.path) + placesSuffix,
			Problem: fmt.Sprintf("%d engines could not lock their place: beats alone say whether they live, and a transaction of yours that lasts longer than their time to live has them buried", all-locked),
			Remedy:  "keep the file on a local disk with locks of open files; keep transactions that write short",
			Figures: map[string]any{"engines": all - locked},
		})
	}
	return nil
}
