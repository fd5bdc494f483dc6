package dashboard

import (
	"context"
	"net/http"
	"net/url"
)

// found is the page of an address, with a request for it.
type found struct {
	page    *page
	request *http.Request
}

type foundKey struct{}

// find finds the page of an address, and makes a request for it by whoever sent
// another one. The page is nil if there is none.
func (b *Dashboard) find(r *http.Request, target *url.URL) (*page, *http.Request) {
	var f found
	b.finder.ServeHTTP(&answer{header: http.Header{}}, (&http.Request{Method: http.MethodGet, URL: target, Host: r.Host, Header: http.Header{}}).
		WithContext(context.WithValue(r.Context(), foundKey{}, &f)))
	return f.page, f.request
}

// finder finds pages instead of serving them.
func finder() *http.ServeMux {
	mux := http.NewServeMux()
	for i := range pages {
		mux.HandleFunc("GET "+pages[i].path, func(_ http.ResponseWriter, r *http.Request) {
			if f, ok := r.Context().Value(foundKey{}).(*found); ok {
				f.page, f.request = &pages[i], r
			}
		})
	}
	return mux
}
