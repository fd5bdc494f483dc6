package stint_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/seal"
)

func sealKeys(t testing.TB, ids ...string) seal.Keys {
	t.Helper()
	var keys []seal.Key
	for _, id := range ids {
		keys = append(keys, seal.Key{ID: id, Secret: bytes.Repeat([]byte(id[:1]), 32)})
	}
	r, err := seal.NewRing(keys[0], keys[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// stored is an enqueuer that keeps what it is given.
type stored []stint.NewJob

func (s *stored) Enqueue(_ context.Context, _ stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
	*s = append(*s, jobs...)
	return make([]stint.Receipt, len(jobs)), nil
}

func sealOne(t *testing.T, job stint.NewJob) (stint.NewJob, error) {
	t.Helper()
	var s stored
	_, err := stint.NewClient(&s).Seal(sealKeys(t, "k")).Enqueue(t.Context(), job)
	if err != nil {
		return job, err
	}
	return s[0], nil
}

func TestAClientSealsWhatTheKindSays(t *testing.T) {
	whole := stint.KindInfo{Name: "pay", Sealed: []string{""}}
	parts := stint.KindInfo{Name: "pay", Sealed: []string{"/to/iban", "/notes/0", "/absent/x", "/to/9"}}
	const args = `{"to":{"iban":"CANARY","name":"Ann"},"notes":["CANARY","b"],"n":1}`
	for _, c := range []struct {
		kind stint.KindInfo
		want []string
	}{{whole, []string{`{"$sealed":`}}, {parts, []string{`"to":{"iban":{"$sealed":`, `"name":"Ann"`, `"notes":[{"$sealed":`, `"b"]`, `"n":1`}}} {
		job, err := sealOne(t, c.kind.Job(json.RawMessage(args)))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(string(job.Args), want) || strings.Contains(string(job.Args), "CANARY") {
				t.Errorf("it is stored as %s, want %s", job.Args, want)
			}
		}
		if strings.Contains(string(job.Args), `"m":`) {
			t.Errorf("a job without keys has a MAC: %s", job.Args)
		}
	}
	for _, bad := range []struct {
		job  stint.NewJob
		says string
	}{
		{stint.KindInfo{Name: "k", Sealed: []string{"iban"}}.Job(nil), "no JSON pointer"},
		{stint.KindInfo{Name: "k", Sealed: []string{"", "/a"}}.Job(nil), "no JSON pointer"},
		{stint.KindInfo{Name: "k", Sealed: []string{"/a/b", "/a"}}.Job(nil), "one in the other"},
		{stint.KindInfo{Name: "k", Sealed: []string{"/a", "/a"}}.Job(nil), "one in the other"},
		{whole.Job(json.RawMessage(`{"$sealed":{"k":"k"}}`)), "something sealed"},
		{parts.Job(json.RawMessage(`{"to":{"iban":{"$sealed":{"k":"k","c":"x"}}},"notes":["x"]}`)), "in clear at /notes/0"},
		{whole.Job(json.RawMessage(`{"id":7}`), stint.UniqueUntilEnded(stint.By("/id"))), "in what is sealed"},
	} {
		if _, err := sealOne(t, bad.job); !errors.Is(err, stint.ErrInvalid) || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("the error about %v is %v, want %q", bad.job.Sealed, err, bad.says)
		}
	}
	for args, clear := range map[string]bool{``: false, `{}`: false, `{"IBAN":1}`: true, `{"iban":1}`: true, `{"iban":{"$sealed":{"c":"A","k":"k"}}}`: false, `{"iban":{"$sealed":{"c":"A","k":"k"},"x":1}}`: true, `[1]`: false} {
		if _, got := (stint.NewJob{Args: json.RawMessage(args), Sealed: []string{"/iban"}}).InClear(); got != clear {
			t.Errorf("%q is in clear: %v", args, got)
		}
	}
	if _, err := sealOne(t, stint.KindInfo{Name: "k", Sealed: []string{"/iban"}}.Job(json.RawMessage(`{"IBAN":1}`))); !errors.Is(err, stint.ErrInvalid) {
		t.Errorf("what a handler would take for the sealed part is stored: %v", err)
	}
	type payment struct {
		IBAN string
		To   struct{ X int } `json:"to"`
	}
	stint.NewKind[payment]("k", stint.Sealed("/IBAN", "/to/X"))
	func() {
		defer func() {
			if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "/iban") {
				t.Errorf("a pointer to nothing gives %v", v)
			}
		}()
		stint.NewKind[*payment]("k", stint.Sealed("/iban"))
	}()
	for _, client := range []*stint.Client{stint.NewClient(new(stored)), stint.NewClient(new(stored)).Seal(sealKeys(t, "k"))} {
		for _, job := range []stint.NewJob{whole.Job(json.RawMessage(`{"$sealed":{"k":"k","c":"x"}}`)), whole.Job(nil), parts.Job(json.RawMessage(`{"n":1}`))} {
			if _, err := client.Enqueue(t.Context(), job); err != nil {
				t.Errorf("%s has nothing in clear, and is refused: %v", job.Args, err)
			}
		}
	}
	var s stored
	if _, err := stint.NewClient(&s).Enqueue(t.Context(), whole.Job(json.RawMessage(`{"iban":1}`))); !errors.Is(err, stint.ErrNoKey) || len(s) > 0 {
		t.Errorf("a client without keys stores %v, %v", s, err)
	}
}

func TestSealedJobsAreComparedAndLimitedByTheirMACs(t *testing.T) {
	kind := stint.KindInfo{Name: "pay", Sealed: []string{"/iban", "/tenant"}}
	job := func(args string, opts ...stint.Option) stint.NewJob {
		job, err := sealOne(t, kind.Job(json.RawMessage(args), opts...))
		if err != nil {
			t.Fatal(err)
		}
		return job
	}
	idempotent := stint.IdempotencyKey("a")
	a, b, c := job(`{"iban":{"a":1,"b":2}}`, idempotent), job(`{"iban": {"b":2, "a":1}}`, idempotent), job(`{"iban":{"a":1,"b":3}}`, idempotent)
	if bytes.Equal(a.Args, b.Args) || a.Fingerprint() != b.Fingerprint() || a.Fingerprint() == c.Fingerprint() {
		t.Errorf("%s, %s and %s are not compared by what is in them", a.Args, b.Args, c.Args)
	}
	unique := stint.UniqueUntilEnded(stint.By("/iban"))
	ka, _, erra := job(`{"iban":"x","n":1}`, unique).UniqueKey()
	kb, _, errb := job(`{"iban":"x","n":2}`, unique).UniqueKey()
	kc, _, errc := job(`{"iban":"y","n":1}`, unique).UniqueKey()
	if errors.Join(erra, errb, errc) != nil || ka != kb || ka == kc {
		t.Errorf("the unique keys are %q, %q, %q", ka, kb, kc)
	}
	across := stint.UniqueUntilEnded(stint.By("/iban"), stint.Across("payees"))
	other, err := sealOne(t, stint.KindInfo{Name: "other", Sealed: []string{"/iban"}}.Job(json.RawMessage(`{"iban":"x"}`), across))
	if err != nil {
		t.Fatal(err)
	}
	ka, _, erra = job(`{"iban":"x"}`, across).UniqueKey()
	kb, _, errb = other.UniqueKey()
	if errors.Join(erra, errb) != nil || ka != kb {
		t.Errorf("across kinds the unique keys are %q and %q", ka, kb)
	}
	limits := []string{"3*tenant by /tenant", "plan by /plan", "smtp"}
	x, y, z := job(`{"tenant":"acme","plan":"free"}`, stint.Limited(limits...)), job(`{"tenant":"acme","plan":"free"}`, stint.Limited(limits...)), job(`{"tenant":"other","plan":"free"}`, stint.Limited(limits...))
	kx, errx := x.LimitKeys()
	ky, _ := y.LimitKeys()
	kz, _ := z.LimitKeys()
	if errx != nil || kx != ky || kx == kz || strings.Contains(kx, "acme") || !strings.Contains(kx, "3*tenant=") || !strings.Contains(kx, "plan=free\nsmtp") {
		t.Errorf("the limits are %q, %q, %q, %v", kx, ky, kz, errx)
	}
	if limits[0] != "3*tenant by /tenant" {
		t.Errorf("the caller's limits have become %q", limits)
	}
}

func TestAScheduleOfASealedKindHasNoArguments(t *testing.T) {
	kind := stint.KindInfo{Name: "pay", Sealed: []string{""}}
	s := stint.Schedule{Name: "s", Recurrence: cron.Every(time.Hour), Job: kind.Job(nil)}
	if _, err := s.Ready(stint.Limits{}); err != nil {
		t.Error(err)
	}
	s.Job = kind.Job(json.RawMessage(`{"iban":1}`))
	if _, err := s.Ready(stint.Limits{}); !errors.Is(err, stint.ErrInvalid) {
		t.Errorf("with arguments the error is %v", err)
	}
}

// shows is a store that answers all who ask for a job with the same value.
type shows struct {
	stored
	job *stint.JobInfo
}

func (s *shows) Job(context.Context, stint.ID) (*stint.JobInfo, error)   { return s.job, nil }
func (s *shows) Await(context.Context, stint.ID) (*stint.JobInfo, error) { return s.job, nil }

func TestOfAllWhoWaitOnlyWhoHasTheKeySeesAJobInClear(t *testing.T) {
	job, err := sealOne(t, stint.KindInfo{Name: "pay", Sealed: []string{""}}.Job(json.RawMessage(`"CANARY"`)))
	if err != nil {
		t.Fatal(err)
	}
	result, err := seal.Value(t.Context(), sealKeys(t, "k"), "pay\nresult\n", json.RawMessage(`"CANARY"`), "")
	if err != nil {
		t.Fatal(err)
	}
	s := &shows{job: &stint.JobInfo{Kind: "pay", Args: job.Args, Attempts: []stint.Attempt{{Result: result}}}}
	for _, ask := range []func(c *stint.Client) (*stint.JobInfo, error){
		func(c *stint.Client) (*stint.JobInfo, error) { return c.Job(t.Context(), 1) },
		func(c *stint.Client) (*stint.JobInfo, error) { return c.Await(t.Context(), 1) },
	} {
		got, err := ask(stint.NewClient(s).Seal(sealKeys(t, "k")))
		if err != nil || string(got.Args) != `"CANARY"` || string(got.Attempts[0].Result) != `"CANARY"` {
			t.Errorf("with the key it is %+v, %v", got, err)
		}
		if got, err = ask(stint.NewClient(s)); err != nil || !seal.Is(got.Args) || !seal.Is(got.Attempts[0].Result) {
			t.Errorf("without the key it is %+v, %v", got, err)
		}
	}
}
