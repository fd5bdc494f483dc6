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
	"github.com/stint-go/stint/report"
)

// networks are file systems whose locks and shared memory SQLite's WAL cannot
// rely on when several machines use one file.
var networks = []string{"nfs", "nfs4", "smb", "smb2", "smbfs", "cifs", "9p", "afs", "ceph", "webdav", "afpfs"}

var (
	journalMode = warning("journal_mode", "its journal is {mode}: readers keep writers out, and the other way round",
		"open it with a program that works or enqueues, which sets wal; see that nobody sets it back")
	halfEmpty = note("file_half_empty", "{free_bytes} of its {size_bytes} are free; new jobs fill them before it grows",
		"when no engine runs: sqlite3 {path} vacuum")
	walLarge = warning("wal_large", "it takes {wal_bytes}: some program has read for so long that no checkpoint comes to its end, or transactions are very large",
		"end the program that keeps a transaction open (lsof {path} lists them); the next checkpoint then cuts it")
	noRoom = problem("disk_full", "{free_bytes} are left on its disk; when it is full, nothing is enqueued or recorded",
		"make room; stint jobs delete --finished-before makes some within the file")
	onNetwork = problem("network_file_system", "it is on a network ({kind}), where SQLite's journal works for one machine only, and may be damaged by two",
		"keep the file on a disk of the machine that uses it; several machines need PostgreSQL")
	notWritable = problem("read_only", "this user may not write to it: {why}",
		"make the file and its directory writable to those who run engines and enqueue: chmod g+rw, chgrp")
	writeLocked = warning("write_locked", "another program has kept it locked for writing for more than {limit}: nobody can enqueue, claim or record meanwhile",
		"see which one keeps a transaction open (lsof {path}), and have it end sooner")
	fileDamaged = problem("file_damaged", "it is damaged: {problems}",
		"stop the engines, keep a copy, and go back to a backup, or read out what can be: sqlite3 {path} .recover; docs/sqlite.md has the steps")
	placesMissing = problem("places_missing", "somebody deleted it while engines are in the roster: those that live seem dead, and are buried",
		"restart the engines, and leave the file where it is")
	placesUnlocked = note("places_unlocked",
		"{engines} engines could not lock their place: heartbeats alone say whether they live, and a transaction of yours that lasts longer than their time to live has them buried",
		"keep the file on a local disk with locks of open files; keep transactions that write short")
)

// file looks at how the file is kept.
func (x *examination) file(ctx context.Context) error {
	err := x.read(ctx, func(c *conn) error {
		var free, all, size int64
		for text, to := range map[string]*int64{`pragma freelist_count`: &free, `pragma page_count`: &all, `pragma page_size`: &size} {
			n, err := oneRow(c, firstNumber[int64], text)
			if *to = n; err != nil {
				return err
			}
		}
		mode, err := oneRow(c, firstText[string], `pragma journal_mode`)
		if err != nil {
			return err
		}
		if mode != "wal" && x.path != Memory {
			x.find(journalMode.With("mode", mode), "the file", nil)
		}
		x.signs.Sizes = []report.Size{{Name: "the file", Bytes: all * size}} // the whole of it, when it is asked again
		if free*size >= x.normal.unused && free > all/2 {
			x.find(halfEmpty, "the file", map[string]any{"free_bytes": free * size, "size_bytes": all * size})
		}
		return nil
	})
	if err == nil && x.path != Memory {
		x.journal()
		x.disk()
	}
	return err
}

// journal looks at the WAL. It grows while a reader looks at what a checkpoint
// would write over.
func (x *examination) journal() {
	info, err := os.Stat(x.path + "-wal")
	if err != nil {
		return
	}
	if x.signs.Sizes = append(x.signs.Sizes, report.Size{Name: "its journal", Bytes: info.Size()}); info.Size() >= x.normal.wal {
		x.find(walLarge, filepath.Base(x.path)+"-wal", map[string]any{"wal_bytes": info.Size()})
	}
}

// disk looks at where the file is.
func (x *examination) disk() {
	dir := filepath.Dir(x.path)
	kind, free, ok := diskOf(dir)
	if ok && free < x.normal.free {
		x.find(noRoom, dir, map[string]any{"free_bytes": free})
	}
	if ok && slices.Contains(networks, kind) {
		x.find(onNetwork.With("kind", kind), dir, nil)
	}
}

// writes sees whether the file can be written to now: it takes the lock of
// writers, and gives it back.
func (x *examination) writes(ctx context.Context) error {
	if x.path == Memory {
		return nil
	}
	db, err := sqlite3.OpenFlags(x.path, sqlite3.OPEN_READWRITE)
	if err != nil {
		x.find(notWritable.With("why", err.Error()), "the file", nil)
		return nil
	}
	defer db.Close()
	if readOnly, _ := db.ReadOnly("main"); readOnly {
		x.find(notWritable.With("why", "it, or its directory, is read-only"), "the file", nil)
		return nil
	}
	if err := db.BusyTimeout(x.normal.locked); err != nil {
		return err
	}
	db.SetInterrupt(ctx)
	err = db.Exec(`begin immediate; rollback`)
	switch {
	case errors.Is(err, sqlite3.BUSY):
		x.find(writeLocked.With("limit", x.normal.locked.String()), "the file", nil)
		return nil
	case errors.Is(err, sqlite3.READONLY):
		x.find(notWritable.With("why", err.Error()), "the file", nil)
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
		x.find(fileDamaged.With("problems", strings.Join(bad, "; ")), "the file", map[string]any{"found": bad})
	}
	return err
}

// standing sees whether the file of the places of engines is there: without it
// it is not seen that their processes live.
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
		x.find(placesMissing, filepath.Base(x.path)+placesSuffix, map[string]any{"engines": locked})
	}
	if all > locked {
		x.find(placesUnlocked, filepath.Base(x.path)+placesSuffix, map[string]any{"engines": all - locked})
	}
	return nil
}
