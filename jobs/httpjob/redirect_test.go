package httpjob

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stint-go/stint/jobs"
)

func TestRedirectsAreFollowedAndCounted(t *testing.T) {
	server, h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		var left int
		fmt.Sscanf(r.URL.Path, "/%d", &left)
		if left > 0 {
			http.Redirect(w, r, fmt.Sprintf("/%d", left-1), http.StatusFound)
		}
	})
	result, err := perform(t, t.Context(), h, Args{URL: server.URL + "/5"})
	if err != nil || result.URL != server.URL+"/0" {
		t.Errorf("got %+v, %v", result, err)
	}
	if _, err := perform(t, t.Context(), h, Args{URL: server.URL + "/6"}); !errors.Is(err, errRedirects) {
		t.Errorf("got %v", err)
	}
}

func TestACircleOfRedirectsEnds(t *testing.T) {
	asked := 0
	server, h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, map[string]string{"/a": "/b", "/b": "/a"}[r.URL.Path], http.StatusTemporaryRedirect)
	})
	if _, err := perform(t, t.Context(), h, Args{Method: "POST", URL: server.URL + "/a"}); !errors.Is(err, errRedirects) || asked != 6 {
		t.Errorf("after %d requests: %v", asked, err)
	}
}

func TestAnotherServerDoesNotGetTheSecrets(t *testing.T) {
	secrets := map[string]string{"Authorization": "Bearer s", "Cookie": "s", "X-Api-Key": "s", "Accept": "text/plain"}
	seen := map[string]http.Header{}
	var here, there *httptest.Server
	here, h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		seen["here"+r.URL.Path] = r.Header
		switch r.URL.Path {
		case "/":
			http.Redirect(w, r, "/same", http.StatusFound)
		case "/same":
			http.Redirect(w, r, there.URL+"/", http.StatusFound)
		}
	})
	there, _ = serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		seen["there"+r.URL.Path] = r.Header
		http.Redirect(w, r, here.URL+"/back", http.StatusFound)
	})
	if _, err := perform(t, t.Context(), h, Args{URL: here.URL + "/", Headers: secrets}); err != nil {
		t.Fatal(err)
	}
	for where, trusted := range map[string]bool{"here/": true, "here/same": true, "there/": false, "here/back": false} {
		for name := range secrets {
			want := trusted || name == "Accept"
			if got := seen[where].Get(name) != ""; got != want {
				t.Errorf("%s: %s is there: %t", where, name, got)
			}
		}
		if seen[where].Get("Stint-Job") != "42" || !trusted && seen[where].Get("Referer") != "" {
			t.Errorf("%s: got %v", where, seen[where])
		}
	}
}

func TestAPostDoesNotSilentlyBecomeAGet(t *testing.T) {
	var got []string
	server, h := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.Path+" "+string(body))
		var status int
		if fmt.Sscanf(r.URL.Path, "/%d", &status); status != 0 {
			http.Redirect(w, r, "/end", status)
		}
	})
	for _, tt := range []struct {
		status  int
		failure string
		last    string
	}{
		{301, "status 301 Moved Permanently to /end", "POST /301 x"},
		{302, "status 302 Found to /end", "POST /302 x"},
		{303, "", "GET /end "},
		{307, "", "POST /end x"},
		{308, "", "POST /end x"},
	} {
		_, err := perform(t, t.Context(), h, Args{Method: "POST", URL: fmt.Sprintf("%s/%d", server.URL, tt.status), Body: "x"})
		if err == nil && tt.failure != "" || err != nil && err.Error() != tt.failure {
			t.Errorf("%d: got %v", tt.status, err)
		}
		if last := got[len(got)-1]; last != tt.last {
			t.Errorf("%d: the last request was %q", tt.status, last)
		}
	}
}

func TestARedirectDoesNotTakeTheEncryptionAway(t *testing.T) {
	plain, _ := serve(t, Config{}, func(w http.ResponseWriter, r *http.Request) { t.Error("it was followed") })
	secure := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusTemporaryRedirect))
	defer secure.Close()
	s := newSender(Config{AllowPrivate: true})
	s.transport.TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
	_, err := perform(t, t.Context(), jobs.Strict(s.send), Args{URL: secure.URL})
	if !errors.Is(err, errDowngrade) {
		t.Errorf("got %v", err)
	}
}

func TestAPasswordInTheURLIsNotShown(t *testing.T) {
	server, h := serve(t, Config{}, nil)
	server.Close()
	_, err := perform(t, t.Context(), h, Args{URL: strings.Replace(server.URL, "//", "//me:secret@", 1)})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}
