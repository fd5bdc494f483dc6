package stint

import "github.com/stint-go/stint/retry"

// The classes that every program has, before its own.
var (
	_ = retry.ErrorClassOf[*PanicError]("panic")
	_ = retry.ErrorClass("timeout", ErrTimeout)
	_ = retry.ErrorClass("cancelled", ErrCancelled)
	_ = retry.ErrorClass("lost", retry.ErrLost)
	_ = retry.ErrorClass("unstorable", ErrUnstorable)
)
