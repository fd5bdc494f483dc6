package link

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
)

var (
	now  = time.Unix(1_800_000_000, 0)
	ours = Link{Job: 42, Question: "approve <b>/ä", Choice: "pay", By: "ann", Expires: now.Add(time.Hour)}
)

func keyOf(t testing.TB, secret string) Key {
	t.Helper()
	k, err := NewKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func tokenOf(t testing.TB, k Key, l Link) string {
	t.Helper()
	const base = "https://jobs.example.com/stint"
	u, err := k.URL(base+"/", l)
	if err != nil {
		t.Fatal(err)
	}
	token, ok := strings.CutPrefix(u, base+Path)
	if !ok || strings.ContainsAny(token, "/?#%&") {
		t.Fatalf("the link is %s", u)
	}
	return token
}

func TestALinkSaysWhatWasSignedUntilItExpires(t *testing.T) {
	k := keyOf(t, strings.Repeat("k", 22))
	all := ours
	all.Choice = ""
	for _, l := range []Link{ours, all} {
		token := tokenOf(t, k, l)
		got, err := k.Open(token, l.Expires.Add(-time.Nanosecond))
		if err != nil || got != l {
			t.Errorf("it is opened as %+v, %v, want %+v", got, err, l)
		}
		for _, late := range []time.Time{l.Expires, l.Expires.Add(time.Hour)} {
			if got, err := k.Open(token, late); !errors.Is(err, ErrExpired) || got != l {
				t.Errorf("at %v it is opened as %+v, %v, want ErrExpired", late, got, err)
			}
		}
	}
}

func TestALinkThatWasChangedIsForged(t *testing.T) {
	k := keyOf(t, strings.Repeat("k", 22))
	token := tokenOf(t, k, ours)
	for _, other := range []Key{keyOf(t, strings.Repeat("K", 22)), keyOf(t, strings.Repeat("k", 23)), {}} {
		if _, err := other.Open(token, now); !errors.Is(err, ErrForged) {
			t.Errorf("by another key it is %v", err)
		}
	}
	for i := range token {
		for _, c := range []string{"", "A", "b", "-", ".", "=", " "} {
			if changed := token[:i] + c + token[i+1:]; changed != token {
				if l, err := k.Open(changed, now); !errors.Is(err, ErrForged) {
					t.Fatalf("with %q at %d it is %+v, %v", c, i, l, err)
				}
			}
		}
	}
	content, sum, _ := strings.Cut(token, ".")
	later := ours
	later.Expires = now.Add(100 * time.Hour)
	forged, _, _ := strings.Cut(tokenOf(t, k, later), ".")
	for _, changed := range []string{"", ".", content, content + ".", "." + sum, token + ".", token + "A", forged + "." + sum, strings.Repeat("A", maxToken) + "." + sum} {
		if _, err := k.Open(changed, now); !errors.Is(err, ErrForged) {
			t.Errorf("%.80q is %v", changed, err)
		}
	}
}

func TestWhatIsNoLinkIsNotSigned(t *testing.T) {
	k := keyOf(t, strings.Repeat("k", 22))
	for what, change := range map[string]func(l *Link){
		"no job":               func(l *Link) { l.Job = 0 },
		"no question":          func(l *Link) { l.Question = "" },
		"an unprintable name":  func(l *Link) { l.Question = "a\n" },
		"nobody":               func(l *Link) { l.By = "" },
		"a choice too long":    func(l *Link) { l.Choice = strings.Repeat("x", 256) },
		"no end":               func(l *Link) { l.Expires = time.Time{} },
		"space before a name":  func(l *Link) { l.By = " ann" },
		"space after a choice": func(l *Link) { l.Choice = "pay " },
	} {
		l := ours
		change(&l)
		if u, err := k.URL("https://x", l); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("%s gives %q, %v", what, u, err)
		}
	}
	for _, base := range []string{"", "jobs.example.com", "ftp://x", "https://", "https://x?a=b", "https://x#a", "https://ann:secret@x", "://"} {
		if u, err := k.URL(base, ours); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("the base %q gives %q, %v", base, u, err)
		}
	}
	if _, err := (Key{}).URL("https://x", ours); !errors.Is(err, stint.ErrInvalid) {
		t.Errorf("without a key it gives %v", err)
	}
	if _, err := NewKey(strings.Repeat("k", 21)); !errors.Is(err, stint.ErrInvalid) {
		t.Errorf("a short key gives %v", err)
	}
}

func TestTheLongestNamesFit(t *testing.T) {
	k := keyOf(t, strings.Repeat("k", 22))
	long := strings.Repeat("<", 255)
	l := Link{Job: 1<<63 - 1, Question: long, Choice: long, By: long, Expires: now}
	if got, err := k.Open(tokenOf(t, k, l), now.Add(-time.Second)); err != nil || got != l {
		t.Errorf("it is opened as %+v, %v", got, err)
	}
}

func FuzzOpen(f *testing.F) {
	k := keyOf(f, strings.Repeat("k", 22))
	f.Add(tokenOf(f, k, ours))
	f.Add("e30.AAAA")
	f.Add(".")
	f.Fuzz(func(t *testing.T, token string) {
		l, err := k.Open(token, now)
		if err != nil && !errors.Is(err, ErrForged) && !errors.Is(err, ErrExpired) {
			t.Fatalf("%q gives %v", token, err)
		}
		if err == nil && tokenOf(t, k, l) != token {
			t.Fatalf("%q is opened as %+v, whose token is another", token, l)
		}
		// What is signed is opened without a panic, whatever it holds.
		if _, err := k.Open(encoding.EncodeToString([]byte(token))+"."+encoding.EncodeToString(k.sum(answers, []byte(token))), now); err != nil && !errors.Is(err, ErrForged) && !errors.Is(err, ErrExpired) {
			t.Fatalf("signed, %q gives %v", token, err)
		}
		signed := encoding.EncodeToString([]byte(token)) + "." + encoding.EncodeToString(k.sum(callbacks, []byte(token)))
		if c, err := k.OpenCallback(signed, now); err != nil && !errors.Is(err, ErrForged) && !errors.Is(err, ErrExpired) || err == nil && c.Job < 1 {
			t.Fatalf("signed, %q is the callback %+v, %v", token, c, err)
		}
	})
}
