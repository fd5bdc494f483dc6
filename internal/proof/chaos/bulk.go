//go:build unix

package chaos

import (
	"context"

	"github.com/stint-go/stint"
)

// Bulk is the kind of jobs that do nothing and stand in no history: there may be
// more of them than a judge has room for.
var Bulk = stint.NewKind[int]("bulk")

func nothing(context.Context, *stint.Job, int) error { return nil }
