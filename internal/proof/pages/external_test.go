package pages

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var links = flag.Bool("links", false, "ask every external link of the pages whether it still leads somewhere")

const (
	ownPages  = "https://github.com/stint-go/stint/blob/main/"
	linksWait = 20 * time.Second // for one answer
)

// external are addresses in a text, without what ends a sentence or a link of Markdown.
var external = regexp.MustCompile("https?://[^\\s)\"'`<>\\]|\\\\,;…]*[^\\s)\"'`<>\\]|\\\\,;….:]")

// isExample reports whether an address is only shown, and not meant to lead anywhere.
func isExample(link string) bool {
	u, err := url.Parse(link)
	if err != nil {
		return false
	}
	host := u.Hostname()
	_, notIP := netip.ParseAddr(host)
	return notIP == nil || !strings.Contains(host, ".") || host == "example.com" || strings.HasSuffix(host, ".example.com") || strings.HasSuffix(host, ".svc")
}

// externalLinks are the addresses in the pages and in the files for deployments, each with the files that have it.
func externalLinks(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		rel = filepath.ToSlash(rel)
		switch {
		case err != nil:
			return err
		case e.IsDir() && (strings.HasPrefix(e.Name(), ".") && path != root || e.Name() == "node_modules" || e.Name() == "testdata" || rel == "bin"):
			return filepath.SkipDir
		case e.IsDir(), !strings.HasSuffix(rel, ".md") && !strings.HasPrefix(rel, "deploy/") && !strings.HasPrefix(rel, "docs/monitoring/"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, link := range external.FindAllString(string(text), -1) {
			if !isExample(link) && !slices.Contains(found[link], rel) {
				found[link] = append(found[link], rel)
			}
		}
		return err
	})
	if err != nil || len(found) < 20 {
		t.Fatalf("%d external links were found, %v", len(found), err)
	}
	return found
}

// The files for deployments and monitoring name pages by their address on the web.
func TestExternalLinksToOwnPagesLeadSomewhere(t *testing.T) {
	n := 0
	for link, files := range externalLinks(t) {
		if to, own := strings.CutPrefix(link, ownPages); own {
			if n++; !leadsTo(filepath.Join(root, "README.md"), to) {
				t.Errorf("%s leads to %s, where nothing is", strings.Join(files, ", "), link)
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d links to own pages were found", n)
	}
}

func TestExternalLinksLeadSomewhere(t *testing.T) {
	if !*links {
		t.Skip("it needs the internet: make links")
	}
	found := map[string][]string{} // without the headings, so that each page is asked for once
	for link, files := range externalLinks(t) {
		link, _, _ = strings.Cut(link, "#")
		found[link] = append(found[link], files...)
	}
	for link, err := range brokenLinks(t.Context(), slices.Sorted(maps.Keys(found)), linksWait) {
		t.Errorf("%s: %s: %v", strings.Join(slices.Compact(slices.Sorted(slices.Values(found[link]))), ", "), link, err)
	}
}

// brokenLinks asks for pages, eight at once, and returns those that cannot be had, with why. One that did not answer, or
// answered with an error of its server, is asked twice. A server that refuses programs is there, and no more is known of its page.
func brokenLinks(ctx context.Context, all []string, wait time.Duration) map[string]error {
	client := &http.Client{Timeout: wait}
	var (
		asking sync.WaitGroup
		mu     sync.Mutex
		broken = map[string]error{}
		turns  = make(chan struct{}, 8)
	)
	for _, link := range all {
		asking.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			again, err := ask(ctx, client, link)
			if err != nil && again {
				_, err = ask(ctx, client, link)
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				broken[link] = err
			}
		})
	}
	asking.Wait()
	return broken
}

// ask returns why a page cannot be had, and whether the next time may be better.
func ask(ctx context.Context, client *http.Client, link string) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("User-Agent", "Mozilla/5.0 (compatible; stint-links)")
	res, err := client.Do(req)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return true, failed.Err // the rest of it is the link
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20))
	switch res.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusTooManyRequests:
		return false, nil
	}
	if res.StatusCode >= 400 {
		return res.StatusCode >= 500, fmt.Errorf("it answers %s", res.Status)
	}
	return false, nil
}

func TestABrokenExternalLinkIsFound(t *testing.T) {
	asked := make(chan string, 100)
	var unsteady sync.Once
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/there", http.StatusMovedPermanently)
		case "/moved-away":
			http.Redirect(w, r, "/gone", http.StatusMovedPermanently)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case "/gone":
			http.NotFound(w, r)
		case "/refuses":
			w.WriteHeader(http.StatusForbidden)
		case "/fails":
			w.WriteHeader(http.StatusBadGateway)
		case "/unsteady":
			unsteady.Do(func() { w.WriteHeader(http.StatusServiceUnavailable) })
		case "/slow":
			<-r.Context().Done()
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://" + l.Addr().String() + "/"
	l.Close()
	all := []string{refused}
	for _, path := range []string{"there", "moved", "moved-away", "round", "gone", "refuses", "fails", "unsteady", "slow"} {
		all = append(all, server.URL+"/"+path)
	}
	broken := brokenLinks(t.Context(), all, 2*time.Second)
	want := map[string]string{
		refused: "connection refused", server.URL + "/moved-away": "404", server.URL + "/round": "10 redirects", server.URL + "/gone": "404",
		server.URL + "/fails": "502", server.URL + "/slow": "Timeout",
	}
	for link, why := range want {
		if broken[link] == nil || !strings.Contains(broken[link].Error(), why) {
			t.Errorf("%s: got %v, want %s", link, broken[link], why)
		}
	}
	for link, err := range broken {
		if want[link] == "" {
			t.Errorf("%s is broken: %v", link, err)
		}
	}
	close(asked)
	times := map[string]int{}
	for path := range asked {
		times[path]++
	}
	if times["/slow"] != 2 || times["/fails"] != 2 || times["/unsteady"] != 2 || times["/refuses"] != 1 {
		t.Errorf("they were asked %v times", times)
	}
}

func TestExternalLinksAreFoundInTexts(t *testing.T) {
	const text = "see [a](https://a.org/x#y), https://b.org/z. <https://c.org> `https://d.org/e`; https://… \"http://127.0.0.1:7070/?a\""
	if got := strings.Join(external.FindAllString(text, -1), " "); got != "https://a.org/x#y https://b.org/z https://c.org https://d.org/e http://127.0.0.1:7070/?a" {
		t.Errorf("it has %s", got)
	}
	for link, want := range map[string]bool{
		"https://jobs.example.com/x": true, "http://127.0.0.1:7070": true, "http://localhost/": true, "http://a.default.svc/x": true,
		"https://spinroot.com": false, "https://notexample.com": false,
	} {
		if isExample(link) != want {
			t.Errorf("%s is an example: %v", link, !want)
		}
	}
}
