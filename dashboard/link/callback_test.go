package link

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
)

func TestTheURLOfACallbackIsGoodForOneAttemptAndExpires(t *testing.T) {
	k := keyOf(t, strings.Repeat("k", 22))
	for _, base := range []string{"https://jobs.example.com/stint", "https://jobs.example.com/stint/"} {
		make, err := k.Callbacks(base)
		if err != nil {
			t.Fatal(err)
		}
		u, err := make(42, 3, now.Add(time.Hour+time.Millisecond))
		token, ok := strings.CutPrefix(u, "https://jobs.example.com/stint/callback/")
		if err != nil || !ok || strings.ContainsAny(token, "/?#%&") {
			t.Fatalf("the URL is %s, %v", u, err)
		}
		want := Callback{Job: 42, Attempt: 3, Expires: now.Add(time.Hour + time.Second)}
		for at, err := range map[time.Duration]error{0: nil, time.Hour + 999*time.Millisecond: nil, time.Hour + time.Second: ErrExpired} {
			if got, wrong := k.OpenCallback(token, now.Add(at)); !errors.Is(wrong, err) || err == nil && wrong != nil || got != want {
				t.Errorf("after %v it is opened as %+v, %v", at, got, wrong)
			}
		}
		// It is no link to a question, nor is one of these a callback, and no other key made it.
		if _, err := k.Open(token, now); !errors.Is(err, ErrForged) {
			t.Errorf("as a link it is %v", err)
		}
		if _, err := k.OpenCallback(tokenOf(t, k, ours), now); !errors.Is(err, ErrForged) {
			t.Errorf("a link to a question is %v", err)
		}
		for _, other := range []Key{keyOf(t, strings.Repeat("K", 22)), {}} {
			if _, err := other.OpenCallback(token, now); !errors.Is(err, ErrForged) {
				t.Errorf("by another key it is %v", err)
			}
		}
		if text := []byte("{}"); string(k.sum(answers, text)) == string(k.sum(callbacks, text)) {
			t.Error("both are signed in the same way")
		}
		for i := range token {
			if _, err := k.OpenCallback(token[:i]+token[i+1:], now); !errors.Is(err, ErrForged) {
				t.Errorf("without its byte %d it is %v", i, err)
			}
		}
	}
	for _, none := range []signedCallback{{Attempt: 1, Expires: now.Unix() + 1}, {Job: 1, Expires: now.Unix() + 1}} {
		u, err := k.url("https://x", CallbackPath, callbacks, none)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.OpenCallback(strings.TrimPrefix(u, "https://x"+CallbackPath), now); !errors.Is(err, ErrForged) {
			t.Errorf("%+v is %v", none, err)
		}
	}
	for _, base := range []string{"", "jobs.example.com", "https://x?a=b"} {
		if _, err := k.Callbacks(base); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("the base %q gives %v", base, err)
		}
	}
	if _, err := (Key{}).Callbacks("https://x"); !errors.Is(err, stint.ErrInvalid) {
		t.Errorf("without a key it gives %v", err)
	}
}
