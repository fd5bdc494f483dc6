package stint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stint-go/stint"
)

func TestAKeyIsCheckedAsNamesAre(t *testing.T) {
	for _, bad := range []string{" a", "a\n", "a\x00b", "\xff", strings.Repeat("x", 256)} {
		for field, job := range map[string]stint.NewJob{
			"idempotency key": {Kind: "k", IdempotencyKey: bad}, "correlation": {Kind: "k", Correlation: bad},
			"urn": {Kind: "k", URN: bad}, "source": {Kind: "k", Source: bad}, "tags": {Kind: "k", Tags: []string{bad}},
		} {
			var invalid *stint.InvalidError
			if err := job.Check(stint.Limits{}); !errors.As(err, &invalid) || invalid.Field != field {
				t.Errorf("%s %q gives %v", field, bad, err)
			}
		}
	}
	for _, good := range []string{"a", "a b", "ünïcode ✓", strings.Repeat("x", 255)} {
		if err := (stint.NewJob{Kind: "k", IdempotencyKey: good, Correlation: good}).Check(stint.Limits{}); err != nil {
			t.Errorf("%q gives %v", good, err)
		}
	}
	var k kept
	ctx := stint.WithCorrelation(t.Context(), "two\nlines")
	if _, err := stint.NewClient(&k).Enqueue(ctx, stint.NewJob{Kind: "k"}); !errors.Is(err, stint.ErrInvalid) || len(k.jobs) != 0 {
		t.Errorf("a context with a bad id gives %v, and %d jobs were stored", err, len(k.jobs))
	}
}

func TestAFingerprintIsThatOfTheKindAndTheValue(t *testing.T) {
	job := func(kind, args string) stint.NewJob { return stint.NewJob{Kind: kind, Args: json.RawMessage(args)} }
	same := []stint.NewJob{
		job("k", `{"a":[1,"x<y",{"c":null,"d":1e1000}],"b":"é"}`),
		job("k", ` { "b" : "\u00e9", "a" : [ 1, "x\u003cy", {"d":1e1000, "c":null} ] } `),
		job("k", `{"b":"old","a":[1,"x<y",{"c":null,"d":1e1000}],"b":"é"}`),
	}
	other := []stint.NewJob{
		same[0], job("l", string(same[0].Args)), job("k", `{}`), job("k", `[]`), job("k", `""`), job("k", `"{}"`), job("k", `[1,2]`), job("k", `[2,1]`),
		job("k", `9007199254740993`), job("k", `9007199254740992`), job("k", `{"a":null}`), job("k", `[{}]`), job("k\"", `x`),
	}
	for i, j := range same {
		if j.Fingerprint() != same[0].Fingerprint() {
			t.Errorf("text %d has another fingerprint", i)
		}
	}
	seen := map[[32]byte]string{}
	for _, j := range other {
		if before, twice := seen[j.Fingerprint()]; twice {
			t.Errorf("%s %s has the fingerprint of %s", j.Kind, j.Args, before)
		}
		seen[j.Fingerprint()] = fmt.Sprint(j.Kind, " ", string(j.Args))
	}
}

func TestWhatIsSaidOfOneJobIsNoDefaultOfAKind(t *testing.T) {
	for name, opt := range map[string]stint.Option{
		"key": stint.IdempotencyKey("a"), "correlation": stint.Correlation("a"), "urn": stint.URN("a"), "source": stint.Source("a"),
		"metadata": stint.Metadata(json.RawMessage(`{}`)),
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is silently forgotten", name)
				}
			}()
			stint.NewKind[int]("k", opt)
		}()
	}
}

func TestTheNearestCorrelationWins(t *testing.T) {
	var k kept
	client := stint.NewClient(&k)
	outer := stint.WithCorrelation(t.Context(), "outer")
	inner, stop := context.WithCancel(stint.WithCorrelation(outer, "inner"))
	defer stop()
	for _, c := range []struct {
		ctx  context.Context
		own  string
		want string
	}{
		{t.Context(), "", ""}, {t.Context(), "own", "own"}, {outer, "", "outer"}, {inner, "", "inner"}, {inner, "own", "own"},
		{stint.WithCorrelation(inner, ""), "", ""},
	} {
		if _, err := client.Enqueue(c.ctx, stint.NewJob{Kind: "k", Correlation: c.own}); err != nil {
			t.Fatal(err)
		}
		if got := k.jobs[len(k.jobs)-1].Correlation; got != c.want {
			t.Errorf("%v: the job's correlation id is %q, want %q", c, got, c.want)
		}
	}
}
