package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// errMoved says that the store has a file open that nobody else will ever see.
var errMoved = errors.New("what is done here is lost when this process ends: put the file back, or start the program anew")

// inPlace fails when the file that the store has open does not stand at its
// path any more. SQLite would not notice: an open file is there until it is
// closed, and goes on taking what nobody will read, while those who come later
// make or find another one at the path.
//
// It is asked by what is called now and then: engines ask at each beat, and
// whoever wants to know whether they are ready. Work that comes all the time
// does not pay for it. What cannot be found out is not taken for a loss.
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
