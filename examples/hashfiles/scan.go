package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// scan is what was found below a directory.
type scan struct {
	root   string
	files  []file // in the order of their paths
	before int    // so many were hashed by an earlier run
}

// file is one of them, with the job that hashes it.
type file struct {
	File
	key string // the job's idempotency key
	job stint.ID
	err error // why there is no job for it
}

// find lists the regular files below a directory. What cannot be entered is an
// error; what cannot be read is found out by the job.
func find(root, db string) (*scan, error) {
	own, err := filepath.Abs(db)
	if err != nil {
		return nil, err
	}
	s := &scan{root: root}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !entry.Type().IsRegular() || isOf(own, path):
			return nil
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it is gone since
		} else if err != nil {
			return err
		}
		f := file{File: File{Path: path, Size: info.Size()}}
		if !utf8.ValidString(path) {
			f.err = errors.New("its name is not UTF-8, which arguments in JSON are")
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d", path, info.Size(), info.ModTime().UnixNano()))
		f.key = "hashfiles:" + hex.EncodeToString(sum[:])
		s.files = append(s.files, f)
		return nil
	})
	return s, err
}

// isOf tells whether a file is the database or one of those beside it, which
// change all the time.
func isOf(db, path string) bool {
	rest, ok := strings.CutPrefix(path, db)
	return ok && (rest == "" || rest[0] == '-')
}

func (s *scan) bytes() (n int64) {
	for _, f := range s.files {
		n += f.Size
	}
	return n
}

// tag is on all jobs below a directory, by whichever run they were enqueued.
func (s *scan) tag() string {
	sum := sha256.Sum256([]byte(s.root))
	return "hashfiles:" + hex.EncodeToString(sum[:8])
}

// batch is how many jobs are enqueued in one transaction.
const batch = 1000

// enqueue makes a job of each file, all in a few transactions. Those that an
// earlier run has made are found by their keys.
func (s *scan) enqueue(ctx context.Context, store Store) error {
	s.before = 0 // it may be done again
	states, err := s.states(ctx, store)
	if err != nil {
		return err
	}
	client := stint.NewClient(store)
	for files := range slices.Chunk(s.files, batch) {
		var jobs []stint.NewJob
		var of []*file
		for i := range files {
			f := &files[i]
			if f.err != nil {
				continue
			}
			job, err := hashFile.New(f.File, stint.IdempotencyKey(f.key), stint.Tag(s.tag()))
			if err != nil {
				return err
			}
			jobs, of = append(jobs, job), append(of, f)
		}
		receipts, err := client.EnqueueReceipts(ctx, jobs)
		if err != nil {
			return fmt.Errorf("enqueue %d files: %w", len(jobs), err)
		}
		for i, r := range receipts {
			of[i].job = r.ID
			if r.Duplicate {
				if err := s.resume(ctx, store, of[i], states); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// states lists the jobs of earlier runs.
func (s *scan) states(ctx context.Context, st Store) (map[stint.ID]stint.State, error) {
	all := map[stint.ID]stint.State{}
	filter := store.Filter{Tag: s.tag(), Limit: batch}
	for {
		page, err := st.Jobs(ctx, filter)
		if err != nil {
			return nil, fmt.Errorf("look for what was done before: %w", err)
		}
		for _, job := range page {
			all[job.ID] = job.State
		}
		if len(page) < batch {
			return all, nil
		}
		filter.Before = page[len(page)-1].ID
	}
}

// resume looks at the job of an earlier run: one that failed is done again, under
// another id.
func (s *scan) resume(ctx context.Context, store Store, f *file, states map[stint.ID]stint.State) error {
	for {
		state, there := states[f.job]
		if !there { // somebody else enqueued it since, or it was deleted
			switch job, err := store.Job(ctx, f.job); {
			case errors.Is(err, stint.ErrNotFound):
				f.err = fmt.Errorf("its job %d was deleted, and the key is remembered", f.job)
				return nil
			case err != nil:
				return fmt.Errorf("look at job %d: %w", f.job, err)
			default:
				state = job.State
			}
		}
		switch {
		case state == stint.Completed:
			s.before++
			return nil
		case !state.Final():
			return nil
		}
		answers, err := store.Retry(ctx, []stint.ID{f.job}, stint.RerunOptions{Once: true})
		if err != nil {
			return fmt.Errorf("do job %d again: %w", f.job, err)
		}
		a := answers[f.job]
		if a.Answer != stint.RerunRecoveredBefore {
			f.job = cmp.Or(a.ID, f.job)
			return nil
		}
		f.job = a.ID // which a run before this one made, and may have failed as well
	}
}

// left counts the jobs that have not ended, up to a bound.
func (s *scan) left(ctx context.Context, st Store) (int, error) {
	jobs, err := st.Find(ctx, store.Filter{
		Tag: s.tag(), Limit: 100_000,
		States: []stint.State{stint.Scheduled, stint.Retrying, stint.Available, stint.Running, stint.Blocked},
	})
	if err != nil {
		return 0, fmt.Errorf("look how far it has come: %w", err)
	}
	return len(jobs), nil
}
