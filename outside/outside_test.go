package outside_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint/outside"
)

func TestWhatIsKeptOutsideIsFoundAndVerified(t *testing.T) {
	dir := outside.Dir(filepath.Join(t.TempDir(), "blobs"))
	const value = `{"n":12345678901234567890}`
	e, err := outside.Value(t.Context(), dir, json.RawMessage(value))
	if err != nil || !outside.Is(e) || !strings.HasPrefix(string(e), `{"$outside":{"bytes":26,"sha256":"`) {
		t.Fatalf("the envelope is %s, %v", e, err)
	}
	if again, err := outside.Value(t.Context(), dir, json.RawMessage(value)); err != nil || !bytes.Equal(again, e) {
		t.Errorf("the same has the envelope %s, %v", again, err)
	}
	spaced := []byte(strings.NewReplacer(":", ": ", ",", ", ").Replace(string(e)))
	for _, e := range [][]byte{e, spaced} {
		if got, err := outside.Open(t.Context(), dir, e); err != nil || string(got) != value {
			t.Errorf("%s opens as %s, %v", e, got, err)
		}
	}
	if _, err := outside.Open(t.Context(), nil, e); !errors.Is(err, outside.ErrNoBlobs) {
		t.Errorf("without blobs it opens with %v", err)
	}
	files, err := filepath.Glob(filepath.Join(string(dir), "*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the files are %q, %v", files, err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(files[0], old, old); err != nil {
		t.Fatal(err)
	}
	if _, err := outside.Value(t.Context(), dir, json.RawMessage(value)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(files[0]); err != nil || time.Since(info.ModTime()) > time.Minute {
		t.Errorf("what is put again is as old as before: %v, %v", info.ModTime(), err)
	}
	if err := os.WriteFile(files[0], []byte(`{"n":12345678901234567891}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := outside.Open(t.Context(), dir, e); !errors.Is(err, outside.ErrChanged) {
		t.Errorf("what was changed opens as %s, %v", got, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if got, err := outside.Open(t.Context(), dir, e); !errors.Is(err, outside.ErrNotFound) {
		t.Errorf("what was deleted opens as %s, %v", got, err)
	}
	if err := os.RemoveAll(string(dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := outside.Open(t.Context(), dir, e); err == nil || errors.Is(err, outside.ErrNotFound) {
		t.Errorf("in a directory that is not mounted it is lost for ever: %v", err)
	}
}

func TestOnlyAnEnvelopeIsTakenForOne(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	for value, want := range map[string]bool{
		`{"$outside":{"bytes":1,"sha256":"` + sum + `"}}`: true, ` { "$outside" : {"sha256":"` + sum + `", "bytes": 1}}`: true,
		`{"$outside":{"bytes":0,"sha256":"` + sum + `"}}`: false, `{"$outside":{"bytes":1,"sha256":"../` + sum[3:] + `"}}`: false,
		`{"$outside":{"bytes":1,"sha256":"` + sum + `"},"x":1}`: false, `{"$outside":{"bytes":1,"sha256":"` + sum + `","x":1}}`: false,
		`{"$outside":{"bytes":1,"sha256":"` + sum[1:] + `"}}`: false, `["$outside"]`: false, `"$outside"`: false, ``: false,
		`{"$outside":{"bytes":1,"sha256":"` + strings.ToUpper(sum) + `"}}`: false,
	} {
		if got := outside.Is(json.RawMessage(value)); got != want {
			t.Errorf("%s is taken for an envelope: %v", value, got)
		}
	}
	plain := json.RawMessage(`{"text":"` + strings.Repeat("x", 100) + `"}`)
	if n := testing.AllocsPerRun(100, func() { outside.Is(plain) }); n != 0 {
		t.Errorf("to see that a value is none costs %v allocations", n)
	}
}

// keyed are blobs that have one value for every key.
type keyed []byte

func (keyed) Put(context.Context, string, []byte) error { return nil }
func (k keyed) Get(_ context.Context, key string) ([]byte, error) {
	if len(key) != 64 || strings.Trim(key, "0123456789abcdef") != "" {
		panic(fmt.Sprintf("the key is %q", key))
	}
	return k, nil
}

func FuzzOpen(f *testing.F) {
	e, err := outside.Value(f.Context(), keyed(`1`), json.RawMessage(`1`))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(e))
	f.Add([]byte(`{"$outside":{"bytes":1,"sha256":"../../etc/passwd"}}`))
	f.Add([]byte(`{"$outside":[]}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		got, err := outside.Open(t.Context(), keyed(`1`), value)
		if err == nil && !bytes.Equal(got, value) && string(got) != `1` {
			t.Errorf("%s opens as %s", value, got)
		}
	})
}
