package store

import (
	"context"
	"errors"
	"time"

	"github.com/stint-go/stint/internal/valid"
)

// FilterKeeper keeps filters of jobs under names, for all people who share a store. A name is
// compared as it is written.
type FilterKeeper interface {
	// SavedFilters lists them by name.
	SavedFilters(ctx context.Context) ([]SavedFilter, error)

	// SaveFilter keeps a filter in place of any of the same name, and reports whether it
	// replaced one. Its At is set by the store. Beyond [MaxSavedFilters] names it is
	// [ErrManyFilters]; those who save at the same moment may exceed that by one each.
	SaveFilter(ctx context.Context, f SavedFilter) (kept SavedFilter, replaced bool, err error)

	// RenameFilter gives a filter another name, and changes nothing else of it. It is
	// [ErrNoFilter] when there is none of the name, and [ErrFilterExists] when there is one
	// of the other name.
	RenameFilter(ctx context.Context, name, to string) error

	// DeleteFilter deletes a filter, or reports false when there is none of the name.
	DeleteFilter(ctx context.Context, name string) (bool, error)
}

// SavedFilter is a filter of jobs with a name.
type SavedFilter struct {
	Name  string    `json:"name"`
	Query string    `json:"query"`        // as in the address of a list of jobs: "kind=mail&state=failed"
	At    time.Time `json:"at"`           // when it was saved
	By    string    `json:"by,omitempty"` // who saved it
}

// The bounds of saved filters: how many there are, and the bytes of a query.
const (
	MaxSavedFilters = 100
	MaxFilterQuery  = 8_000
)

// Errors of a [FilterKeeper].
var (
	ErrNoFilter     = errors.New("there is no such saved filter")
	ErrFilterExists = errors.New("there is a saved filter of this name")
	ErrManyFilters  = errors.New("100 filters are saved, which is the most: delete one")
)

// Check reports why it cannot be kept, or nil. A query may say anything that a database can keep.
func (f SavedFilter) Check() error {
	if err := CheckFilterName(f.Name); err != nil {
		return err
	}
	switch {
	case f.Query == "":
		return valid.Invalid("query", "the filter has no condition")
	case len(f.Query) > MaxFilterQuery:
		return valid.Invalid("query", "the filter has %d bytes, more than %d", len(f.Query), MaxFilterQuery)
	case valid.Clean(f.Query) != f.Query:
		return valid.Invalid("query", "the filter is not UTF-8, or has a NUL")
	}
	return nil
}

// CheckFilterName reports why no saved filter can have a name, or nil: a name is 1 to 255 bytes of UTF-8
// without control characters and without space at its ends.
func CheckFilterName(name string) error { return valid.Name("name", name) }
