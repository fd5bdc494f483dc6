// Package archive writes the jobs that ended to files, one for each period of time, which outlive them in the database.
//
// The files are all the memory that there is. A period is written under another name and takes its own when it is
// complete, so whoever is interrupted, or runs beside another one, begins at the first period without a file:
//
//	jobs-2026-11-28T0000Z-1d.ndjson    jobs-2026-11-29T0000Z-1d.ndjson    (today is not over)
package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// Margin is how long a period must be over before it is written: what ended in it is recorded by then, also after
// the longest outage.
const Margin = time.Hour

const (
	batch   = 500 // jobs that are read at a time
	day     = 24 * time.Hour
	pattern = "2006-01-02T1504Z" // of the beginning of a period, in the name of its file
)

// Archive is a folder of files.
type Archive struct {
	Dir    string
	Format Format
	Every  time.Duration // the length of a period, which divides a day
}

// File is one that was written.
type File struct {
	Name      string
	In        store.TimeRange // in which its jobs ended
	Jobs      int
	Completed int // of these
	Gone      int // jobs that were deleted from the database meanwhile
}

// Check says what is wrong with the settings, or with a folder that has files of other periods or of another format.
func (a Archive) Check() error {
	if a.Every < time.Minute || day%a.Every != 0 {
		return fmt.Errorf("a period of %v does not divide a day: take 1h, 6h or 24h", a.Every)
	}
	all, err := filepath.Glob(filepath.Join(a.Dir, "jobs-*Z-*.*"))
	if err != nil {
		return err
	}
	for _, name := range all {
		if !strings.HasSuffix(name, a.suffix()) {
			return fmt.Errorf("%s is there, of another period or format: go on with those, or take another folder", name)
		}
	}
	return nil
}

func (a Archive) suffix() string {
	return fmt.Sprintf("-%s.%s", retry.FormatDuration(a.Every), a.Format)
}

func (a Archive) name(from time.Time) string {
	return filepath.Join(a.Dir, "jobs-"+from.Format(pattern)+a.suffix())
}

// Write writes the files that are missing of the periods from one instant to another, the oldest first, and says of
// each that it is there, until that fails. A period counts if it began at the first instant or contains it, and was over by the second.
func (a Archive) Write(ctx context.Context, h store.History, from, to time.Time, written func(File) error) error {
	if err := a.Check(); err != nil {
		return err
	}
	if err := os.MkdirAll(a.Dir, 0o755); err != nil {
		return err
	}
	for start := from.UTC().Truncate(a.Every); !start.Add(a.Every).After(to); start = start.Add(a.Every) {
		name := a.name(start)
		switch _, err := os.Stat(name); {
		case err == nil:
			continue
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		file := File{Name: name, In: store.TimeRange{From: start, To: start.Add(a.Every)}}
		if err := a.create(name, func(w io.Writer) error { return file.write(ctx, h, a.Format.sheet(w)) }); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if err := written(file); err != nil {
			return err
		}
	}
	return nil
}

// write writes what ended in its time.
func (f *File) write(ctx context.Context, h store.History, to sheet) error {
	ids, err := h.EndedIn(ctx, f.In)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(ids, batch) {
		jobs, err := h.Ended(ctx, part)
		if err != nil {
			return err
		}
		for _, id := range part {
			if jobs[id] == nil {
				f.Gone++
				continue
			}
			if f.Jobs++; jobs[id].State == stint.Completed {
				f.Completed++
			}
			if err := to.add(jobs[id]); err != nil {
				return err
			}
		}
	}
	return to.close()
}

// create makes a file that is complete or not there, whatever happens.
func (a Archive) create(name string, write func(w io.Writer) error) error {
	f, err := os.CreateTemp(a.Dir, ".jobs-*.part")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // if it was not renamed
	w := bufio.NewWriterSize(f, 1<<20)
	err = write(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	return syncDir(a.Dir)
}

// syncDir makes sure that a name survives a power cut, where folders can be synced.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync() // Windows cannot
	return d.Close()
}

// sheet is a file of jobs that is being written.
type sheet interface {
	add(job *stint.JobInfo) error
	close() error
}
