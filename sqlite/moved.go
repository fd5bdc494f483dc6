package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// errMoved says that the store has a file open that no other program will ever see.
var errMoved = errors.New("what is done here is lost when this process ends: put the file back, or start the program again")

// inPlace fails when the file that the store has open does not stand at its
// path any more. SQLite would not notice: an open file is there until it is
// closed, and goes on taking what no other program will read, while those that open
// the path later make or find another file there.
//
// It is asked by what is called now and then: engines ask at each beat, and
// so do checks of readiness. Frequent work does not pay for it. If it cannot be
// found out, the file counts as in place.
func (s *Store) inPlace() error {
	if s.file == nil {
		return nil
	}
	now, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s was removed: %w", s.path, errMoved)
	case err == nil && !os.SameFile(now, s.file):
		return fmt.Errorf("%s was replaced by another file: %w", s.path, errMoved)
	}
	return nil
}
