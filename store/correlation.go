package store

import (
	"strconv"
	"strings"
)

// Correlate gives entries that say no correlation id that of their own job, for
// stores. The ids share the memory of one text: one that somebody keeps, keeps
// some bytes for each of the others.
func Correlate(entries []Entry) {
	var text strings.Builder
	var room [20]byte
	for i := range entries {
		if entries[i].Correlation == "" {
			text.Write(strconv.AppendInt(room[:0], int64(entries[i].ID), 10))
		}
	}
	left := text.String()
	for i := range entries {
		if e := &entries[i]; e.Correlation == "" {
			n := len(strconv.AppendInt(room[:0], int64(e.ID), 10))
			e.Correlation, left = left[:n], left[n:]
		}
	}
}
