package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/stint-go/stint"
)

// tally is what the database says of the files of a scan.
type tally struct {
	completed, failed int
	bytes             int64
	hashes            map[string]string // by path
	wrong             []string          // what is not as it should be, in words
}

func (t *tally) complain(format string, args ...any) {
	t.wrong = append(t.wrong, fmt.Sprintf(format, args...))
}

// check holds what the database says against the scan, and against hashes that
// are computed here, one file after the other.
func (s *scan) check(ctx context.Context, store Store, out io.Writer) error {
	var t *tally
	err := outlast(ctx, func() (err error) {
		t, err = s.tally(ctx, store)
		return err
	})
	if err != nil {
		return err
	}
	s.compare(ctx, t)
	fmt.Fprintf(out, "%d files = %d jobs completed + %d failed; %d hashes of %d bytes\n", len(s.files), t.completed, t.failed, len(t.hashes), t.bytes)
	if len(t.wrong) > 0 {
		return fmt.Errorf("%d things are wrong:\n  %s", len(t.wrong), strings.Join(t.wrong, "\n  "))
	}
	fmt.Fprintf(out, "sha256 of the list: %s, as recomputed\n", s.list(t.hashes))
	return nil
}

// tally reads what came of each job.
func (s *scan) tally(ctx context.Context, store Store) (*tally, error) {
	t := &tally{hashes: map[string]string{}}
	for i := range s.files {
		f := &s.files[i]
		if f.err != nil {
			t.failed++
			t.complain("%s: %v", f.Path, f.err)
			continue
		}
		job, err := store.Job(ctx, f.job)
		if err != nil {
			return nil, fmt.Errorf("look at job %d: %w", f.job, err)
		}
		if job.State != stint.Completed {
			t.failed++
			t.complain("%s: job %d is %s: %s", f.Path, f.job, job.State, lastError(job))
			continue
		}
		t.completed++
		sum, err := hashFile.Result(job)
		if err != nil {
			t.complain("%s: job %d completed without a hash: %v", f.Path, f.job, err)
			continue
		}
		t.hashes[f.Path] = sum.SHA256
		t.bytes += sum.Bytes
	}
	return t, nil
}

func lastError(job *stint.JobInfo) string {
	for i := len(job.Attempts) - 1; i >= 0; i-- {
		if x := job.Attempts[i]; x.Error != nil {
			return x.Error.Message
		}
	}
	return job.Reason
}

// compare recomputes what was hashed, without jobs.
func (s *scan) compare(ctx context.Context, t *tally) {
	var hashed int64
	again := map[string]string{}
	for _, f := range s.files {
		got, ok := t.hashes[f.Path]
		if !ok {
			continue
		}
		hashed += f.Size
		h := sha256.New()
		n, err := read(ctx, h, f.Path)
		want := hex.EncodeToString(h.Sum(nil))
		again[f.Path] = want
		switch {
		case err != nil:
			t.complain("%s: it cannot be read any more: %v", f.Path, err)
		case n != f.Size:
			t.complain("%s: it has %d bytes now; there were %d", f.Path, n, f.Size)
		case got != want:
			t.complain("%s: job %d says %s, and it is %s", f.Path, f.job, got, want)
		}
	}
	if len(s.files) != t.completed+t.failed {
		t.complain("%d files were found, and %d jobs completed and %d failed", len(s.files), t.completed, t.failed)
	}
	if t.completed != len(t.hashes) {
		t.complain("%d jobs completed, and %d hashes were recorded", t.completed, len(t.hashes))
	}
	if t.bytes != hashed {
		t.complain("%d bytes were hashed, and the files have %d", t.bytes, hashed)
	}
	if got, want := s.list(t.hashes), s.list(again); got != want {
		t.complain("the sha256 of the list is %s, and recomputed it is %s", got, want)
	}
}

// list is one hash of all hashes, in the order of the paths.
func (s *scan) list(hashes map[string]string) string {
	h := sha256.New()
	for _, f := range s.files {
		if sum, ok := hashes[f.Path]; ok {
			fmt.Fprintf(h, "%s  %s\n", sum, f.Path)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
