package event

import "time"

// Query is one statement that a store ran, for whoever wants to see what is
// asked of the database and how long it takes: the hook OnQuery of a store's
// configuration is told each. Arguments are not in it, for they may be secrets.
type Query struct {
	Text string        // as it was sent, with placeholders
	Took time.Duration // until its last row was read, or until it failed
	Rows int64         // that it returned or changed, as far as the database tells
	Err  error         // what it failed with; databases may quote values in it
}

// TellTo calls a function with the query. One that panics has failed at
// listening, and at nothing else: what it was told of is not harmed.
func (q Query) TellTo(listen func(Query)) {
	defer func() { _ = recover() }()
	listen(q)
}
