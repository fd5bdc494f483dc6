package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

// File is what a job is told.
type File struct {
	Path string `json:"path"`
	Size int64  `json:"size"` // when it was found
}

// Sum is what becomes of it.
type Sum struct {
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

var hashFile = stint.NewResultKind[File, Sum]("hash_file", stint.Retry(retry.Fixed(2, time.Second)))

// hashing hashes a file. What is not there, may not be read, or is not what it
// was when it was found, will be no better in a second.
func hashing(ctx context.Context, _ *stint.Job, f File) (Sum, error) {
	h := sha256.New()
	n, err := read(ctx, h, f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return Sum{}, stint.NoRetry(err)
	case err != nil:
		return Sum{}, err
	case n != f.Size:
		return Sum{}, stint.NoRetry(fmt.Errorf("it has %d bytes now; there were %d", n, f.Size))
	}
	return Sum{hex.EncodeToString(h.Sum(nil)), n}, nil
}

// read writes a file's content to a hash, until ctx ends.
func read(ctx context.Context, h hash.Hash, path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return io.Copy(h, reader{ctx, f})
}

// reader is a file that cannot be read any more when a context has ended.
type reader struct {
	ctx context.Context
	f   *os.File
}

func (r reader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.f.Read(p)
}
