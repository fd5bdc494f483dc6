package sqlite

import "strings"

// Inserting a row by a statement of its own costs twice as much as by one that
// inserts many: each run opens a cursor on the table and on each of its indexes,
// and reads and writes back the number that AUTOINCREMENT has come to.

// bulks are the numbers of rows that one statement inserts, largest first. More
// than 32 give little more, and two cost more than twice one.
var bulks = [...]int{32, 8, 1}

const (
	maxBulk = 32

	// maxBulkBytes bounds the texts that are bound at once: SQLite keeps a copy
	// of each until the next one takes its place.
	maxBulkBytes = 64 << 10
)

// bulk is how many of n rows the next statement takes, of which size tells how
// many bytes each has.
func bulk(n int, size func(row int) int) int {
	for _, k := range bulks {
		if n < k {
			continue
		}
		total := 0
		for i := range k {
			total += size(i)
		}
		if total <= maxBulkBytes {
			return k
		}
	}
	return min(n, 1)
}

// repeated makes an insert of one row, which ends with its values, one of many.
func repeated(insert string, rows int) string {
	if rows == 1 {
		return insert
	}
	row := insert[strings.LastIndex(insert, "("):]
	return insert + strings.Repeat(", "+row, rows-1)
}
