package words_test

import (
	"testing"

	"github.com/stint-go/stint/internal/words"
)

func TestSizesAreInTheLargestUnitThatFits(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1 << 20: "1.0 MiB", 3 << 30: "3.0 GiB", 5 << 40: "5.0 TiB", 1 << 60: "1048576.0 TiB",
	} {
		if got := words.Size(n); got != want {
			t.Errorf("%d bytes are %q, want %q", n, got, want)
		}
	}
}
