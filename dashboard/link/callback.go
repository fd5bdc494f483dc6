package link

import (
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
)

// Callback is what the URL permits to which the receiver of a request tells what came of it: see package
// jobs/httpjob. Whoever has it can do that for this one attempt, until it expires.
type Callback struct {
	Job     stint.ID
	Attempt int
	Expires time.Time
}

// CallbackPath is where a dashboard takes callbacks, below its own path.
const CallbackPath = "/callback/"

// signedCallback is a callback as it is written and signed.
type signedCallback struct {
	Job     stint.ID `json:"j"`
	Attempt int      `json:"a"`
	Expires int64    `json:"e"` // seconds since 1970, rounded up
}

// Callbacks returns what makes URLs for callbacks to a dashboard, as the configuration of package jobs/httpjob wants
// it. Base is the dashboard's URL, with the path that it is mounted at, as the receivers reach it; the error says what is wrong
// with it.
func (k Key) Callbacks(base string) (func(job stint.ID, attempt int, expires time.Time) (string, error), error) {
	sign := func(job stint.ID, attempt int, expires time.Time) (string, error) {
		return k.url(base, CallbackPath, callbacks, signedCallback{job, attempt, expires.Add(time.Second - 1).Unix()})
	}
	_, err := sign(1, 1, time.Unix(0, 0))
	return sign, err
}

// OpenCallback returns what the token at the end of a URL permits at an instant. The errors are those of [Key.Open].
func (k Key) OpenCallback(token string, now time.Time) (Callback, error) {
	var s signedCallback
	if err := k.open(callbacks, token, &s); err != nil {
		return Callback{}, err
	}
	c := Callback{s.Job, s.Attempt, time.Unix(s.Expires, 0)}
	if c.Job < 1 || c.Attempt < 1 {
		return Callback{}, fmt.Errorf("%w: %w", ErrForged, valid.Invalid("job", "it has none"))
	}
	if !now.Before(c.Expires) {
		return c, ErrExpired
	}
	return c, nil
}
