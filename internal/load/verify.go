package load

import (
	"context"
	"fmt"

	"github.com/stint-go/stint"
)

// completed asks the store whether it holds n jobs, all of them completed. A
// store that cannot be asked is not believed, and no error either.
func completed(ctx context.Context, store stint.Store, n int) (bool, error) {
	return ended(ctx, store, map[stint.State]int64{stint.Completed: int64(n)})
}

// ended asks the store whether it holds so many jobs in each state, and none in
// any other.
func ended(ctx context.Context, store stint.Store, want map[stint.State]int64) (bool, error) {
	people, ok := store.(stint.Inspector)
	if !ok {
		return false, nil
	}
	counts, err := people.Counts(ctx)
	if err != nil {
		return false, err
	}
	for _, state := range stint.States {
		if counts[state] != want[state] {
			return false, fmt.Errorf("of %d jobs the store counts %v", total(want), counts)
		}
	}
	return true, nil
}

func total[K comparable](counts map[K]int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}
