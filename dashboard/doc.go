// Package dashboard is the dashboard: one HTTP handler with pages for people, the JSON
// API of package api below /api/v1, live events, and figures for Prometheus. A
// program mounts it beside its own pages, or lets stint up serve it.
//
//	board, err := dashboard.New(store, dashboard.Config{Guard: guard.Config{Link: secret}})
//	http.Handle("/", board)
//
// Pages are made on the server and need no script; the scripts that there are come
// from the same server, show times in the viewer's zone, and keep a page up to
// date. What a page changes it changes by an operation of the API, so a form may
// do what a program may, is bounded alike, and leaves the same traces; what a person
// enqueues by a page is in the log of changes, too.
//
// The kinds sh, http and steps, which do whatever their arguments say, are enqueued by
// admins only, unless [api.Config] names others, or none by an empty list.
//
// However large the database is, a page answers soon: it reads by keys, and what
// costs more than that is looked at in the background, with at most half a hundredth of
// a processor, and shown with its age.
package dashboard
