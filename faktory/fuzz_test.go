package faktory_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/faktory"
	"github.com/stint-go/stint/gateway"
	"github.com/stint-go/stint/retry"
)

// A line is read as it is, or refused with an answer of one line.
func FuzzCommand(f *testing.F) {
	for _, line := range []string{"PUSH {}\r\n", "fetch a b\n", "END", "\r\n", "ACK\r\n", " BEAT  {} \r\r\n", "INFO " + strings.Repeat("x", 100) + "\n", "\x00\xff \xff\n", "a\tb\n"} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		const most = 64
		line, err := faktory.ReadLine(text, most)
		first, _, whole := bytes.Cut(text, []byte("\n"))
		if want := bytes.TrimRight(first, "\r"); err == nil && (!whole || !bytes.Equal(line, want)) || err != nil && whole && len(first) < most {
			t.Errorf("of %q came %q, %v", text, line, err)
		}
		verb, rest := faktory.ParseCommand(line)
		if strings.ContainsAny(verb, " \n") || bytes.ContainsAny(rest, "\n") {
			t.Errorf("%q is the command %q with %q", line, verb, rest)
		}
		answer := faktory.Failed(errors.New(string(text)))
		if !strings.HasPrefix(answer, "-ERR ") || strings.Count(answer, "\n") != 1 || !strings.HasSuffix(answer, "\r\n") || !utf8.ValidString(answer) {
			t.Errorf("the error %q is answered by %q", text, answer)
		}
	})
}

func FuzzHello(f *testing.F) {
	for _, text := range []string{`{"v":2}`, `{"v":2,"wid":"w","pid":-1,"hostname":"\u0000"}`, `{"v":"2"}`, `{"v":3}`, `null`, `{"v":2,"wid":"a\nb"}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if wid, err := faktory.ParseHello(text); err == nil && (len(wid) > 100 || strings.ContainsAny(wid, "\r\n\x00")) {
			t.Errorf("%q is the worker %q", text, wid)
		}
	})
}

// What is pushed can be stored, and comes back from there as it was.
func FuzzPush(f *testing.F) {
	for _, text := range []string{
		`{"jid":"a","jobtype":"k"}`, `{"jid":"a","jobtype":"k","queue":"q","args":[1,{"x":null}],"retry":-1,"reserve_for":60,"priority":9,"at":"2026-01-02T03:04:05Z","custom":{"a":1}}`,
		`{"jid":"a","jobtype":"k","custom":null,"args":null}`, `{"jid":"a","jobtype":"k","custom":{"expires_at":"2026-01-02T03:04:05Z","unique_for":0}}`, `{"JID":"a","jobtype":"k","jid":"b"}`,
		`{"jid":"a","jobtype":"k","created_at":7,"failure":"x","backtrace":20}`, `{"jid":"a\u0000","jobtype":"k"}`, `[]`, `{"jid":"stint-1","jobtype":"k"}`, `{"jid":"a","jobtype":"k","retry":1e9}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		jid, job, err := faktory.ParseJob(text)
		if err != nil || job.Check(stint.Limits{}) != nil {
			return
		}
		job.Fill()
		if job.IdempotencyKey != "faktory/"+jid || !json.Valid(job.Metadata) || !json.Valid(job.Args) {
			t.Fatalf("%s is %+v", text, job)
		}
		back, answer, err := faktory.TextOf(&gateway.ClaimedJob{ID: 7, Kind: job.Kind, Queue: job.Queue, Args: job.Args, Attempt: 1, Timeout: retry.Duration(job.Timeout), Metadata: job.Metadata})
		if err != nil {
			t.Fatal(err)
		}
		again, same, err := faktory.ParseJob(answer)
		if err != nil || back != jid || again != jid || same.Kind != job.Kind || same.Queue != job.Queue || same.Fingerprint() != job.Fingerprint() ||
			same.Timeout != job.Timeout || same.Retry != job.Retry || same.Priority != job.Priority || !same.RunAt.Equal(job.RunAt) || !same.StartBy.Equal(job.StartBy) {
			t.Errorf("%s comes back as %s (%v): %+v, then %+v", text, answer, err, job, same)
		}
	})
}

func FuzzEnding(f *testing.F) {
	for _, text := range []string{`{"jid":"a"}`, `{"jid":"a","errtype":"E","message":"m","backtrace":["x"]}`, `{"jid":7}`, `{}`, `{"jid":"a","backtrace":null}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if jid, x, err := faktory.ParseEnding(text); err == nil && (jid == "" || x.Error == nil) {
			t.Errorf("%s ends %q with %+v", text, jid, x)
		}
	})
}
