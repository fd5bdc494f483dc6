package shelljob

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShortOutputIsKeptWhole(t *testing.T) {
	o := newOutput(16)
	for _, s := range []string{"0123", "456789", "", "abcdef"} {
		fmt.Fprint(o, s)
	}
	if text, cut := o.text(); text != "0123456789abcdef" || cut {
		t.Errorf("got %q, cut %t", text, cut)
	}
}

func TestLongOutputKeepsItsBeginningAndItsEnd(t *testing.T) {
	var all bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&all, "%d,", i)
	}
	for _, chunk := range []int{1, 3, 7, 12, 13, 100, 5000} {
		o := newOutput(16)
		for p := all.Bytes(); len(p) > 0; {
			n := min(chunk, len(p))
			if m, err := o.Write(p[:n]); m != n || err != nil {
				t.Fatalf("write %d bytes: %d, %v", n, m, err)
			}
			p = p[n:]
		}
		want := fmt.Sprintf("0,1,\n[%d bytes cut]\n997,998,999,", all.Len()-16)
		if text, cut := o.text(); text != want || !cut {
			t.Errorf("in chunks of %d: got %q, want %q", chunk, text, want)
		}
	}
}

func TestCharactersAreNotCutInTwo(t *testing.T) {
	for limit := range 40 {
		o := newOutput(limit)
		fmt.Fprint(o, strings.Repeat("äöü€😀", 20))
		text, _ := o.text()
		if strings.ContainsRune(text, utf8.RuneError) || !utf8.ValidString(text) {
			t.Errorf("limit %d: %q", limit, text)
		}
	}
}

func TestBinaryOutputIsMadeStorable(t *testing.T) {
	o := newOutput(1 << 10)
	_, _ = o.Write([]byte("a\x00b\xff\xfec"))
	if text, _ := o.text(); text != "a\uFFFDb\uFFFDc" {
		t.Errorf("got %q", text)
	}
	_, _ = o.Write(make([]byte, 1<<12))
	if text, cut := o.text(); !cut || strings.ContainsRune(text, 0) || !strings.HasPrefix(text, "a\uFFFDb") {
		t.Errorf("got %q", text)
	}
}

func TestLastLinesAreWholeWherePossible(t *testing.T) {
	for _, tt := range []struct {
		text string
		max  int
		want string
	}{
		{"one\ntwo\n", 100, "one\ntwo"},
		{"one\ntwo\nthree\n", 8, "[...]\nthree"},
		{strings.Repeat("x", 20), 5, "[...]xxxxx"},
		{strings.Repeat("€", 20), 5, "[...]€"},
		{" \n", 5, ""},
	} {
		if got := lastLines(tt.text, tt.max); got != tt.want {
			t.Errorf("%q, %d: got %q, want %q", tt.text, tt.max, got, tt.want)
		}
	}
}
