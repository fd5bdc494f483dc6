package seal_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/seal"
)

func key(id string, fill byte) seal.Key {
	return seal.Key{ID: id, Secret: bytes.Repeat([]byte{fill}, 32)}
}

func ring(t testing.TB, newest seal.Key, older ...seal.Key) *seal.Ring {
	t.Helper()
	r, err := seal.NewRing(newest, older...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func place(at string) func(string) string { return func(pointer string) string { return at + pointer } }

func TestWhatWasSealedOpensWithItsKeyAndAtItsPlaceOnly(t *testing.T) {
	old, both := ring(t, key("old", 1)), ring(t, key("new", 2), key("old", 1))
	const plain = `{"iban":"CH93"}`
	sealed, err := seal.Value(t.Context(), old, "pay\nargs\n", json.RawMessage(plain), "")
	if err != nil || !json.Valid(sealed) || bytes.Contains(sealed, []byte("CH93")) || seal.KeyOf(sealed) != "old" || !seal.Is(sealed) {
		t.Fatalf("sealed it is %s, %v", sealed, err)
	}
	for _, keys := range []*seal.Ring{old, both} {
		if got, err := seal.Open(t.Context(), keys, place("pay\nargs\n"), sealed); err != nil || string(got) != plain {
			t.Errorf("opened it is %s, %v", got, err)
		}
	}
	if _, err := seal.Open(t.Context(), ring(t, key("new", 2)), place("pay\nargs\n"), sealed); !errors.Is(err, seal.ErrNoKey) {
		t.Errorf("without its key the error is %v", err)
	}
	var e map[string]map[string]string
	if err := json.Unmarshal(sealed, &e); err != nil {
		t.Fatal(err)
	}
	text, err := base64.RawURLEncoding.DecodeString(e["$sealed"]["c"])
	if err != nil {
		t.Fatal(err)
	}
	forged := map[string]json.RawMessage{"of another kind": sealed}
	for name, at := range map[string]int{"key": 0, "nonce": 13, "text": 30, "tag": len(text) - 1} {
		changed := bytes.Clone(text)
		changed[at] ^= 1
		forged["with another "+name] = fmt.Appendf(nil, `{"$sealed":{"k":"old","c":%q}}`, base64.RawURLEncoding.EncodeToString(changed))
	}
	forged["cut short"] = json.RawMessage(`{"$sealed":{"k":"old","c":"AAAA"}}`)
	forged["without base64"] = json.RawMessage(`{"$sealed":{"k":"old","c":"?"}}`)
	for name, value := range forged {
		at := "pay\nargs\n"
		if name == "of another kind" {
			at = "other\nargs\n"
		}
		if got, err := seal.Open(t.Context(), both, place(at), value); !errors.Is(err, seal.ErrForged) {
			t.Errorf("%s it opens as %s, %v", name, got, err)
		}
	}
	if again, _ := seal.Value(t.Context(), old, "pay\nargs\n", json.RawMessage(plain), ""); bytes.Equal(again, sealed) {
		t.Error("two that are sealed without a MAC can be told to be equal")
	}
}

// The vectors of c2sp.org/XAES-256-GCM.
func TestItIsXAES256GCM(t *testing.T) {
	const nonce = "ABCDEFGHIJKLMNOPQRSTUVWX"
	for _, c := range []struct {
		key         byte
		bound, text string
	}{
		{1, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
		{3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
	} {
		text, err := hex.DecodeString(c.text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ring(t, key("k", c.key)).Open(t.Context(), "k", append([]byte(nonce), text...), []byte(c.bound))
		if err != nil || string(got) != "XAES-256-GCM" {
			t.Errorf("the vector of the key %d opens as %q, %v", c.key, got, err)
		}
	}
}

func TestPartsOpenWhereverTheyAre(t *testing.T) {
	keys := ring(t, key("k", 1))
	part := func(at, plain string) json.RawMessage {
		sealed, err := seal.Value(t.Context(), keys, "a"+at, json.RawMessage(plain), "")
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	value := fmt.Appendf(nil, `{"a/b":%s,"list":[1,{"x~":%s}],"says":"\"$sealed\"","plain":12345678901234567890}`, part("/a~1b", `[true]`), part("/list/1/x~0", `null`))
	got, err := seal.Open(t.Context(), keys, place("a"), append([]byte("\n "), value...))
	const want = `{"a/b":[true],"list":[1,{"x~":null}],"plain":12345678901234567890,"says":"\"$sealed\""}`
	if err != nil || string(got) != want {
		t.Errorf("it opens as %s, %v", got, err)
	}
	moved := fmt.Appendf(nil, `{"other":%s}`, part("/a~1b", `[true]`))
	if got, err := seal.Open(t.Context(), keys, place("a"), moved); err == nil {
		t.Errorf("moved to another place it opens as %s", got)
	}
}

func TestOnlyWhatIsSealedAsAWholeHasAKey(t *testing.T) {
	const sealed = `{"$sealed":{"c":"AAAA","k":"1"}}`
	for value, want := range map[string]string{
		sealed: "1", ` { "$sealed" : { "k" : "\u0031", "c" : "AAAA" } } `: "1", `{"$sealed": {"c": "A", "k": "a", "m": "M"}}`: "a", `{"$sealed":{"c":"A","k":"\u0062"}}`: "b",
		``: "", `{}`: "", `null`: "", `"$sealed"`: "", `[` + sealed + `]`: "", `{"job":1,"result":` + sealed + `}`: "", `{"$sealed":{"c":"A","k":"a"},"x":1}`: "",
		`{"$sealed":{"c":"A","k":""}}`: "", `{"$sealed":{"c":"","k":"a"}}`: "", `{"$sealed":{"k":"a"}}`: "", `{"$sealed":{"c":1,"k":"a"}}`: "", sealed + `}`: "",
	} {
		if got := seal.KeyOf(json.RawMessage(value)); got != want {
			t.Errorf("%s is said to be sealed with the key %q, want %q", value, got, want)
		}
	}
}

func TestEqualValuesAreToldByTheOldestKey(t *testing.T) {
	mac := func(keys seal.Keys, value string) string {
		sum, err := seal.MAC(t.Context(), keys, "at", json.RawMessage(value))
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := seal.Value(t.Context(), keys, "at", json.RawMessage(value), sum)
		var e map[string]map[string]string
		if err == nil {
			err = json.Unmarshal(sealed, &e)
		}
		if err != nil || e["$sealed"]["m"] == "" {
			t.Fatalf("it is %s, %v", sealed, err)
		}
		var v any
		_ = json.Unmarshal(sealed, &v)
		same, _ := json.Marshal(seal.Comparable([]any{v, 1}))
		if want := fmt.Sprintf(`[{"$sealed":{"m":%q}},1]`, e["$sealed"]["m"]); string(same) != want {
			t.Errorf("as compared it is %s, want %s", same, want)
		}
		return e["$sealed"]["m"]
	}
	before, after := ring(t, key("old", 1)), ring(t, key("new", 2), key("old", 1))
	between, err := before.AlsoOpens(key("new", 2))
	if err != nil {
		t.Fatal(err)
	}
	want := mac(before, `1`)
	for name, keys := range map[string]*seal.Ring{"before": before, "between": between, "after": after} {
		if got := mac(keys, `1`); got != want {
			t.Errorf("the MAC %s the change of keys is %s, before it %s", name, got, want)
		}
	}
	if sealed, err := seal.Value(t.Context(), between, "at", json.RawMessage(`1`), ""); err != nil || seal.KeyOf(sealed) != "old" {
		t.Errorf("a ring that also opens with a new key seals %s, %v", sealed, err)
	}
	if _, err := before.AlsoOpens(key("old", 3)); err == nil {
		t.Error("a name stands for two secrets")
	}
	if mac(before, `1`) == mac(before, `2`) || mac(before, `1`) == mac(ring(t, key("new", 2)), `1`) {
		t.Error("the MACs of different values or keys are the same")
	}
	if _, err := seal.MAC(t.Context(), justKeys{before}, "at", json.RawMessage(`1`)); err == nil || !strings.Contains(err.Error(), "cannot compare") {
		t.Errorf("keys that cannot compare are accepted: %v", err)
	}
}

// justKeys are keys that cannot compare.
type justKeys struct{ seal.Keys }

func TestARingTakesGoodKeysOnlyAndShowsNoSecret(t *testing.T) {
	for _, c := range []struct {
		keys []seal.Key
		says string
	}{
		{[]seal.Key{{ID: "a", Secret: make([]byte, 16)}}, `the secret of "a" has 16 bytes, not 32`},
		{[]seal.Key{key("", 1)}, "the name is empty"},
		{[]seal.Key{key("a", 1), key("a", 2)}, `"a" is there twice`},
		{[]seal.Key{key("a\nb", 1)}, "control character"},
	} {
		if _, err := seal.NewRing(c.keys[0], c.keys[1:]...); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("the error is %v, want one that says %s", err, c.says)
		}
	}
	k := key("a", 'x')
	r := ring(t, k)
	for _, text := range []string{fmt.Sprint(k), fmt.Sprintf("%+v %#v", k, k), fmt.Sprintf("%v %+v %#v", r, r, r)} {
		if strings.Contains(text, "xxx") || strings.Contains(text, "120") || !strings.Contains(text, "a") {
			t.Errorf("it is printed as %s", text)
		}
	}
}

func TestARingIsReadFromLines(t *testing.T) {
	secret := func(b byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32)) }
	read, err := seal.ReadRing("# of this year\n2026-11  " + secret(2) + "\r\n\n 2025-11 " + secret(1) + " \n")
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []*seal.Ring{ring(t, key("2025-11", 1)), ring(t, key("2026-11", 2))} {
		value, err := seal.Value(t.Context(), by, "a", json.RawMessage(`7`), "")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := seal.Open(t.Context(), read, place("a"), value); err != nil || string(got) != "7" {
			t.Errorf("%v opens as %s, %v", by, got, err)
		}
	}
	value, err := seal.Value(t.Context(), read, "a", json.RawMessage(`7`), "")
	if err != nil || seal.KeyOf(value) != "2026-11" {
		t.Errorf("it seals %s, %v", value, err)
	}
	for text, want := range map[string]string{
		"": "there is none", "# k " + secret(1): "there is none", secret(1): "line 1 ", "k " + secret(1) + "\nl CANARY": "line 2 ", "k " + secret(1)[:40]: "line 1 ",
		"k " + secret(1) + "\nk " + secret(2): `"k" is there twice`,
	} {
		if _, err := seal.ReadRing(text); !errors.Is(err, valid.ErrInvalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%q gives %v", text, err)
		}
	}
}

func FuzzReadRing(f *testing.F) {
	f.Add("k AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
	f.Add("# k\n\nk AA\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := seal.ReadRing(text)
		if err != nil {
			return
		}
		value, err := seal.Value(t.Context(), r, "a", json.RawMessage(`7`), "")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := seal.Open(t.Context(), r, place("a"), value); err != nil || string(got) != "7" {
			t.Errorf("%q seals what it opens as %s, %v", text, got, err)
		}
	})
}

func FuzzOpen(f *testing.F) {
	keys := ring(f, key("k", 1))
	sealed, err := seal.Value(f.Context(), keys, "a", json.RawMessage(`{"n":1}`), "")
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(sealed))
	f.Add([]byte(`{"$sealed":{"k":"k","c":"AA"}}`))
	f.Add([]byte(`[{"$sealed":[]},"$sealed",{"x":{"$sealed":null}}]`))
	f.Fuzz(func(t *testing.T, value []byte) {
		if !json.Valid(value) {
			return
		}
		got, err := seal.Open(t.Context(), keys, place("a"), value)
		if err == nil && !json.Valid(got) {
			t.Errorf("%s opens as %s", value, got)
		}
	})
}

func BenchmarkOfAKibibyte(b *testing.B) {
	keys := ring(b, key("2026-11", 1))
	plain := json.RawMessage(`"` + strings.Repeat("x", 1022) + `"`)
	sealed, err := seal.Value(b.Context(), keys, "pay\nargs\n", plain, "")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("seal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = seal.Value(b.Context(), keys, "pay\nargs\n", plain, "")
		}
	})
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = seal.Open(b.Context(), keys, place("pay\nargs\n"), sealed)
		}
	})
}
