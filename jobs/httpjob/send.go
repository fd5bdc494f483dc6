package httpjob

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/stint-go/stint"
)

// hopeless are the statuses by which a server says that the request itself is
// wrong, so that sending it again cannot help.
var hopeless = []int{
	http.StatusBadRequest,
	http.StatusMethodNotAllowed,
	http.StatusGone,
	http.StatusLengthRequired,
	http.StatusRequestEntityTooLarge,
	http.StatusRequestURITooLong,
	http.StatusUnsupportedMediaType,
	http.StatusUnprocessableEntity,
	http.StatusRequestHeaderFieldsTooLarge,
}

// errSlow is the cause when a request takes longer than its timeout.
var errSlow = errors.New("no whole answer in time")

// send performs one attempt. The result is nil when there was no answer.
func (s *sender) send(ctx context.Context, job *stint.Job, args Args) (*Result, error) {
	if args.Callback != 0 {
		return s.sendAndWait(ctx, job, args)
	}
	return s.request(ctx, job, args, "")
}

// request sends one request, with a URL for a callback if there is one.
func (s *sender) request(ctx context.Context, job *stint.Job, args Args, callback string) (*Result, error) {
	timeout := cmp.Or(time.Duration(args.Timeout), s.timeout)
	bounded, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%w: %v are over", errSlow, timeout))
	defer cancel()
	req, err := s.build(bounded, job, args)
	if err != nil {
		return nil, stint.NoRetry(err)
	}
	if callback != "" {
		req.Header.Set("Stint-Callback", callback)
	}
	began := time.Now()
	resp, err := s.client(args.expected()).Do(req)
	if err != nil {
		return nil, explain(bounded, err)
	}
	defer resp.Body.Close()
	body, readErr := io.ReadAll(io.LimitReader(resp.Body, int64(s.limit)+1))
	result := newResult(resp, body, s.limit)
	result.Duration = Duration(max(time.Millisecond, time.Since(began).Round(time.Millisecond)))
	if err := judge(args.expected(), result); err != nil {
		return result, err
	}
	if readErr != nil {
		return result, fmt.Errorf("read the body of status %d: %w", result.Status, explain(bounded, readErr))
	}
	return result, nil
}

// build builds what is sent.
func (s *sender) build(ctx context.Context, job *stint.Job, args Args) (*http.Request, error) {
	content := []byte(args.Body)
	if args.JSON != nil {
		content = args.JSON
	}
	var body io.Reader
	if len(content) > 0 {
		body = bytes.NewReader(content)
	}
	req, err := http.NewRequestWithContext(ctx, cmp.Or(args.Method, http.MethodGet), args.URL, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "stint")
	if args.JSON != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range args.Headers {
		if http.CanonicalHeaderKey(name) == "Host" {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	req.Header.Set("Stint-Job", job.ID.String())
	req.Header.Set("Stint-Attempt", strconv.Itoa(job.Attempt))
	if job.MayHaveRun {
		req.Header.Set("Stint-May-Have-Run", "true")
	}
	secretOf(s.secrets, req.URL).sign(req.Header, job.ID, content, time.Now())
	return req, nil
}

// judge returns an error unless the status is a success.
func judge(expect []int, r *Result) error {
	ok := slices.Contains(expect, r.Status)
	if len(expect) == 0 {
		ok = r.Status >= 200 && r.Status < 300
	}
	if ok {
		return nil
	}
	err := &StatusError{r.Status, r.Headers["Location"], firstLines(r.Body, shownBody)}
	if slices.Contains(hopeless, r.Status) {
		return stint.NoRetry(err)
	}
	return err
}

// explain says why there is no answer: the job was cancelled, or the time was
// over, rather than that some read was interrupted.
func explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, refused := errors.AsType[*AddressError](err); refused {
		return stint.NoRetry(err)
	}
	return err
}
