package cli

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/seal"
	"github.com/stint-go/stint/sqlite"
)

func TestWhatIsSealedIsOpenedWithTheKeysOfAFile(t *testing.T) {
	dir := t.TempDir()
	file, right, wrong := filepath.Join(dir, "jobs.db"), filepath.Join(dir, "right"), filepath.Join(dir, "wrong")
	s, err := sqlite.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	secret := bytes.Repeat([]byte{7}, 32)
	keys, err := seal.NewRing(seal.Key{ID: "k", Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	pay := stint.NewKind[map[string]any]("pay", stint.Sealed("/iban"))
	if _, err := pay.Enqueue(t.Context(), stint.NewClient(s).Seal(keys), map[string]any{"iban": "CH93", "amount": 7}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]string{right: "k", wrong: "other"} {
		if err := os.WriteFile(name, []byte("# keys\n"+id+" "+base64.StdEncoding.EncodeToString(secret)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{0, `"iban": "CH93"`, []string{"1", "--keys-file", right}},
		{0, `"args": {`, []string{"1", "--keys-file", right, "--json"}},
		{1, "the key is not at hand: \"k\"\nhint: it is sealed with another key", []string{"1", "--keys-file", wrong}},
		{2, "no keys are given", []string{"1"}},
		{1, "no such job with id 9", []string{"9", "--keys-file", right}},
		{2, "line 1 is not the ID of a key", []string{"1", "--keys-file", "open_test.go"}},
		{2, "no such file", []string{"1", "--keys-file", filepath.Join(dir, "none")}},
	} {
		said, errs, code := session(t, false, append([]string{"jobs", "open", "--db", file}, c.args...)...)
		if code != c.code || !strings.Contains(said+errs, c.says) || strings.Contains(said+errs, "CH93") != (c.code == 0) {
			t.Errorf("%q ends with %d and says %q %q, want %d and %q", c.args, code, said, errs, c.code, c.says)
		}
	}
	said, errs, code := session(t, false, "changes", "--operation", "jobs open", "--subject", "1", "--db", file)
	if code != 0 || strings.Count(said, "jobs open") != 3 || strings.Contains(said, "CH93") {
		t.Errorf("the changes are %d %q %q", code, said, errs)
	}
}
