package api

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/guard"
)

// at is an error about a part of a request.
type at struct {
	path string // such as body.jobs[3]
	err  error
}

func (e *at) Error() string { return e.err.Error() }
func (e *at) Unwrap() error { return e.err }

// errUnexpected is all that a client is told of what nobody expected.
var errUnexpected = huma.Error500InternalServerError("something went wrong that the server's log tells of")

// forbidden says that something is for another role.
func forbidden(needs guard.Role) error {
	return huma.Error403Forbidden("this is for the role " + needs.String())
}

// problem says an error as a client is told of it; nil for what nobody expected.
func problem(err error) error {
	if status, ok := errors.AsType[huma.StatusError](err); ok {
		return status
	}
	if invalid, ok := errors.AsType[*stint.InvalidError](err); ok {
		return huma.Error422UnprocessableEntity(invalid.Error(), &huma.ErrorDetail{Location: place(err, invalid.Field), Message: invalid.Problem})
	}
	switch {
	case errors.Is(err, stint.ErrNotFound), errors.Is(err, stint.ErrNoSchedule):
		return huma.Error404NotFound(err.Error())
	case errors.Is(err, stint.ErrKeyConflict), errors.Is(err, stint.ErrBurialBlocked), isBusy(err):
		return huma.Error409Conflict(err.Error())
	case errors.Is(err, stint.ErrBuried):
		return huma.Error404NotFound("the engine is not in the roster any more")
	case errors.Is(err, stint.ErrUnstorable):
		return huma.Error422UnprocessableEntity(err.Error())
	case errors.Is(err, stint.ErrCommitUnknown): // whatever broke the connection
		return huma.Error503ServiceUnavailable("the connection to the database broke while this was being committed: nobody knows whether it was; look, or ask again with an idempotency key")
	case errors.Is(err, context.DeadlineExceeded):
		return huma.NewError(http.StatusGatewayTimeout, "the database did not answer in time")
	case errors.Is(err, context.Canceled): // who asked is gone, or the server stops
		return huma.Error503ServiceUnavailable("the request was given up")
	}
	return nil
}

// place is the path of a field: what the language calls "max losses" is
// max_losses here.
func place(err error, field string) string {
	prefix := "body"
	if e, ok := errors.AsType[*at](err); ok {
		prefix = e.path
	}
	return prefix + "." + strings.ReplaceAll(field, " ", "_")
}

func isBusy(err error) bool {
	_, busy := errors.AsType[*stint.ScheduleBusyError](err)
	return busy
}
