package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/store"
)

// wide has letters of one, two, three and four bytes.
const wide = "ä€😀"

// latin1 is a database whose sessions speak another encoding unless they say
// otherwise, by the URL of sessions that say so.
func latin1(t *testing.T) (right string) {
	t.Helper()
	url := installed.New(t)
	must(t, setDefault(t.Context(), url, "client_encoding", "LATIN1"))
	return url + "&client_encoding=UTF8"
}

// unsaid is the same URL for sessions that say nothing.
func unsaid(right string) string { return strings.TrimSuffix(right, "&client_encoding=UTF8") }

// wideJob is one with such letters wherever a job has text.
func wideJob() stint.NewJob {
	return stint.NewJob{Kind: "kind " + wide, Queue: "queue " + wide, Args: json.RawMessage(`{"say":"` + wide + `"}`), URN: "urn:" + wide, Correlation: wide}
}

// stored are the texts of all jobs, as a session that speaks UTF-8 reads them.
func stored(t *testing.T, right string) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), right)
	must(t, err)
	defer conn.Close(context.Background())
	return value[[]string](t, conn, `select coalesce(array_agg(distinct kind || '|' || queue || '|' || (args ->> 'say') || '|' || coalesce(urn, '') || '|' || correlation), '{}') from stint.jobs`)
}

const wideStored = "kind " + wide + "|queue " + wide + "|" + wide + "|urn:" + wide + "|" + wide

func TestTheStoresOwnSessionsSpeakUTF8WhateverIsSetForTheRole(t *testing.T) {
	right := latin1(t)
	for _, url := range []string{unsaid(right), unsaid(right) + "&client_encoding=LATIN1"} {
		s := openStore(t, url)
		for _, n := range []int{1, 3, copyFrom} {
			jobs := make([]stint.NewJob, n)
			for i := range jobs {
				jobs[i] = wideJob()
			}
			_, err := s.Enqueue(t.Context(), stint.Tx{}, jobs)
			must(t, err)
		}
		for _, change := range []func(*stint.NewJob){
			func(j *stint.NewJob) { j.Delay = time.Hour },
			func(j *stint.NewJob) { j.IdempotencyKey = url + wide },
		} {
			job := wideJob()
			change(&job)
			_, err := s.Enqueue(t.Context(), stint.Tx{}, []stint.NewJob{job})
			must(t, err)
		}
		must(t, s.startWork(t.Context(), 6*time.Second))
		listener, err := s.dial(t.Context(), "stint listen")
		must(t, err)
		defer listener.Close(context.Background())
		for what, got := range map[string]string{
			"listens": value[string](t, listener, "select current_setting('client_encoding')"),
			"works":   setting(t.Context(), t, s.work(), "client_encoding"),
		} {
			if got != "UTF8" {
				t.Errorf("the session that %s speaks %s", what, got)
			}
		}
	}
	if got := stored(t, right); len(got) != 1 || got[0] != wideStored {
		t.Errorf("%q is stored, want %q", got, wideStored)
	}
}

// refuses fails unless a call was refused and says why.
func refuses(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "client_encoding LATIN1") {
		t.Errorf("%s: %v", what, err)
	}
}

func TestAProgramsPoolThatSpeaksAnotherEncodingIsRefused(t *testing.T) {
	right := latin1(t)
	pool, err := pgxpool.New(t.Context(), unsaid(right))
	must(t, err)
	t.Cleanup(pool.Close)
	_, err = New(t.Context(), pool)
	refuses(t, "opening", err)

	// It may begin to do so later: sessions are asked one by one.
	config, err := pgxpool.ParseConfig(right)
	must(t, err)
	config.MaxConns = 1
	pool, err = pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(pool.Close)
	s, err := New(t.Context(), pool)
	must(t, err)
	t.Cleanup(s.Close)
	speak := func(encoding string) {
		_, err := pool.Exec(t.Context(), "set client_encoding = "+encoding)
		must(t, err)
	}
	speak("LATIN1")
	for _, n := range []int{1, 3, copyFrom} {
		_, err := s.Enqueue(t.Context(), stint.Tx{}, make([]stint.NewJob, n))
		refuses(t, fmt.Sprintf("a batch of %d", n), err)
	}
	keyed := wideJob()
	keyed.IdempotencyKey = wide
	_, err = s.Enqueue(t.Context(), stint.Tx{}, []stint.NewJob{keyed})
	refuses(t, "a job with a key", err)
	_, err = s.EnqueueClaimed(t.Context(), keyed, store.ClaimRequest{})
	refuses(t, "a job to run at once", err)
	_, err = s.Pause(t.Context(), "mail", "me", wide)
	refuses(t, "a pause", err)
	refuses(t, "schedules", s.DeclareSchedules(t.Context(), "me", make([]stint.Schedule, 1)))
	speak("SQL_ASCII") // whose texts the server takes as they are
	_, err = s.Enqueue(t.Context(), stint.Tx{}, []stint.NewJob{wideJob()})
	must(t, err)
	if got := stored(t, right); len(got) != 1 || got[0] != wideStored {
		t.Errorf("%q is stored, want %q", got, wideStored)
	}
}

func TestACallersTransactionThatSpeaksAnotherEncodingIsRefused(t *testing.T) {
	right := latin1(t)
	s := openStore(t, right)
	large := make([]stint.NewJob, copyFrom)
	for i := range large {
		large[i] = wideJob()
	}
	conn, err := pgx.Connect(t.Context(), unsaid(right))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	db := stdlib.OpenDB(*conn.Config())
	t.Cleanup(func() { _ = db.Close() })
	for _, jobs := range [][]stint.NewJob{{wideJob()}, large} {
		tx, err := conn.Begin(t.Context())
		must(t, err)
		_, err = s.Enqueue(t.Context(), Tx(tx), jobs)
		refuses(t, fmt.Sprintf("%d jobs over pgx", len(jobs)), err)
		must(t, tx.Commit(t.Context()))
		std, err := db.BeginTx(t.Context(), nil)
		must(t, err)
		_, err = s.Enqueue(t.Context(), SQLTx(std), jobs)
		refuses(t, fmt.Sprintf("%d jobs over database/sql", len(jobs)), err)
		must(t, std.Commit())
	}
	if got := stored(t, right); len(got) != 0 {
		t.Errorf("%q is stored", got)
	}

	tx, err := conn.Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), "set local client_encoding = 'UTF8'")
	must(t, err)
	_, err = s.Enqueue(t.Context(), Tx(tx), []stint.NewJob{wideJob()})
	must(t, err)
	must(t, tx.Commit(t.Context()))
	std, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	_, err = std.Exec("set local client_encoding = 'UTF8'")
	must(t, err)
	_, err = s.Enqueue(t.Context(), SQLTx(std), []stint.NewJob{wideJob()})
	must(t, err)
	must(t, std.Commit())
	if got := stored(t, right); len(got) != 1 || got[0] != wideStored {
		t.Errorf("%q is stored, want %q", got, wideStored)
	}
}

// The server converts what a session of another language sends and reads, or
// refuses it.
func TestSQLSessionsOfOtherEncodingsStoreWhatTheySayOrAreRefused(t *testing.T) {
	right := latin1(t)
	s := openStore(t, right)
	// The bytes of the text are the session's own, as another language's driver sends them.
	enqueue := func(encoding, say string) (id int64, err error) {
		conn, err := pgx.Connect(t.Context(), right)
		must(t, err)
		defer conn.Close(context.Background())
		_, err = conn.Exec(t.Context(), "set client_encoding = "+encoding)
		must(t, err)
		err = conn.QueryRow(t.Context(), `select stint.enqueue('k', $1::text::jsonb)`, `{"say":"`+say+`"}`).Scan(&id)
		return id, err
	}
	for _, c := range []struct{ encoding, say, is string }{
		{"LATIN1", "\xe4", "ä"}, {"WIN1252", "\x80", "€"}, {"SQL_ASCII", wide, wide}, {"UTF8", wide, wide}, {"LATIN1", `\u20ac`, "€"},
	} {
		id, err := enqueue(c.encoding, c.say)
		if err != nil {
			t.Errorf("%s: %v", c.encoding, err)
			continue
		}
		job, err := s.Job(t.Context(), stint.ID(id))
		must(t, err)
		if want := `{"say": "` + c.is + `"}`; string(job.Args) != want {
			t.Errorf("in %s %q is stored as %s, want %s", c.encoding, c.say, job.Args, want)
		}
	}
	for encoding, say := range map[string]string{"SQL_ASCII": "\xe4", "UTF8": "\xe4", "WIN1252": "\x81"} {
		if _, err := enqueue(encoding, say); err == nil || !strings.Contains(err.Error(), "SQLSTATE 22") {
			t.Errorf("in %s %q: %v", encoding, say, err)
		}
	}
}

// A database of another encoding cannot hold every text. A dump may have been
// restored into one.
func TestADatabaseOfAnotherEncodingIsRefused(t *testing.T) {
	for _, encoding := range []string{"SQL_ASCII", "LATIN1"} {
		admin, err := pgx.Connect(t.Context(), pgtest.New(t))
		must(t, err)
		t.Cleanup(func() { _ = admin.Close(context.Background()) })
		name := "encoded_" + strings.ToLower(encoding)
		_, err = admin.Exec(t.Context(), "create database "+name+" encoding "+encoding+" template template0 locale 'C'")
		must(t, err)
		t.Cleanup(func() { _, _ = admin.Exec(context.Background(), "drop database "+name+" with (force)") })
		config := admin.Config()
		config.Database = name
		url := fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s", config.Host, config.Port, config.User, config.Password, name)
		for _, restored := range []bool{false, true} {
			if restored {
				conn, err := pgx.Connect(t.Context(), url)
				must(t, err)
				text, err := newStore(t).PrintSchema(0)
				must(t, err)
				must(t, execMany(t.Context(), conn, text))
				must(t, conn.Close(t.Context()))
			}
			s, err := Open(t.Context(), url)
			if err == nil {
				s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "the database's encoding is "+encoding) {
				t.Errorf("%s, restored %v: %v", encoding, restored, err)
			}
		}
	}
}
