package sample

import "testing"

func TestTheLargerIsReturned(t *testing.T) {
	t.Run("of two", func(t *testing.T) {
		if got := Larger(2, 1); got != 2 {
			t.Errorf("got %d, want 2", got)
		}
	})
	t.Run("of equals", func(t *testing.T) {
		if got := Larger(2, 2); got != 2 {
			t.Errorf("got %d, want 2", got)
		}
	})
}
