package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint/bench/contest"
	"github.com/stint-go/stint/dashboard"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/store"
)

// board is a dashboard that is served to nobody but this process.
type board struct {
	url    string
	server *http.Server
	late   atomic.Int64 // how often an open page could not be made in time
}

func serveBoard(store anyStore) (*board, error) {
	handler, err := dashboard.New(store, dashboard.Config{Guard: guard.Config{Stranger: guard.Admin}})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &board{url: "http://" + l.Addr().String(), server: &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}}
	go func() { _ = b.server.Serve(l) }() // until it is closed
	return b, nil
}

func (b *board) close() { _ = b.server.Close() }

// errLate says that a page could not be made in time.
var errLate = errors.New("the page could not be made in time")

// made is where a page says when it was made.
var made = regexp.MustCompile(` data-made="(\d+)"`)

// get asks for a page, or for a newer one than was made at an instant, and tells when
// that was made that came.
func (b *board) get(ctx context.Context, path, than string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+path, nil)
	if err != nil {
		return "", err
	}
	if than != "" {
		r.Header.Set("X-Partial", than)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return "", fmt.Errorf("%s: %w: %s", path, errLate, answer.Status)
	default:
		return "", fmt.Errorf("%s answers %s", path, answer.Status)
	}
	if m := made.FindSubmatch(text); m != nil {
		return string(m[1]), nil
	}
	return "", nil // it does not keep itself up to date
}

// pages are those that there are once some jobs have been worked off.
func (b *board) pages(ctx context.Context, st anyStore) ([]string, error) {
	paths := []string{
		"/", "/jobs", "/jobs?state=available", "/jobs?state=completed", "/jobs?state=failed", "/jobs?state=scheduled", "/jobs?tag=none", "/jobs?error=none",
		"/jobs?kind=load_noop", "/jobs?kind=none", "/jobs?queue=default", "/jobs?queue=none", "/jobs?source=none", "/jobs?state=completed&kind=none", "/jobs?text=none", "/jobs/new",
		"/queues", "/kinds", "/kinds/load_noop", "/errors", "/errors?kind=load_noop", "/schedules", "/engines", "/database", "/figures", "/changes",
	}
	newest, err := st.Find(ctx, store.Filter{Limit: 1})
	if err != nil {
		return nil, err
	}
	for _, id := range newest {
		paths = append(paths, "/jobs/"+id.String(), "/jobs/"+id.String()+"/edit")
	}
	return paths, nil
}

const latePages = "late" // how often a page could not be made in time

// times asks for a page again and again.
func (b *board) times(ctx context.Context, path string, rounds int) (contest.Figures, error) {
	var took []time.Duration
	late := 0.0
	for range rounds {
		began := time.Now()
		switch _, err := b.get(ctx, path, ""); {
		case errors.Is(err, errLate):
			late++
		case err != nil:
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	f := contest.Quantiles(took)
	f[latePages] = late
	return f, nil
}

// during does something while so many pages are open, and begins when they are.
func (b *board) during(ctx context.Context, tabs int, do func(ctx context.Context) error) error {
	open, shut := context.WithCancel(ctx)
	var (
		all, opening sync.WaitGroup
		mu           sync.Mutex
		bad          []error
	)
	paths := []string{"/", "/jobs", "/queues", "/engines", "/jobs?state=running"}
	for i := range tabs {
		opening.Add(1)
		all.Go(func() {
			if err := b.tab(open, paths[i%len(paths)], sync.OnceFunc(opening.Done)); err != nil && open.Err() == nil {
				mu.Lock()
				defer mu.Unlock()
				bad = append(bad, err)
			}
		})
	}
	opening.Wait()
	err := do(ctx)
	shut()
	all.Wait()
	return errors.Join(append(bad, err)...)
}

// tabPause is how soon a page is fetched again behind the last time, as its script
// does.
const tabPause = 2 * time.Second

// tab does what a browser does with an open page, until its context ends: it
// listens to the page's events, and fetches the page again when it changed.
func (b *board) tab(ctx context.Context, path string, opened func()) error {
	defer opened()
	shown, err := b.get(ctx, path, "")
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+"/events?"+url.Values{"page": {path}}.Encode(), nil)
	if err != nil {
		return err
	}
	stream, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer stream.Body.Close()
	if stream.StatusCode != http.StatusOK {
		return fmt.Errorf("the events of %s answer %s", path, stream.Status)
	}
	opened()
	fetched := time.Now()
	lines := bufio.NewScanner(stream.Body)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) != "event: change" {
			continue
		}
		if err := wait(ctx, time.Until(fetched.Add(tabPause))); err != nil {
			return nil
		}
		switch newer, err := b.get(ctx, path, shown); {
		case errors.Is(err, errLate):
			b.late.Add(1) // the page stays as it was
		case err != nil:
			return err
		default:
			shown = newer
		}
		fetched = time.Now()
	}
	return lines.Err()
}

// wait lets time pass.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
