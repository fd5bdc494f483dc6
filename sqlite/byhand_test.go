package sqlite

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3"
)

// What the same driver does by hand, with nothing but durability: it appends rows
// of a job's bare contents, reads them in their order, and appends a row of history
// for each. No lane is looked up, no constraint checked, nobody fenced. Ours has
// BenchmarkEnqueue and BenchmarkWork beside it:
//
//	go test -run '^$' -bench 'Limit|Enqueue|Work' ./sqlite
const limitBatch = 1000

// byHand opens a file with the two tables.
func byHand(b *testing.B) *conn {
	b.Helper()
	db, err := sqlite3.Open(filepath.Join(b.TempDir(), "limit.db"))
	if err != nil {
		b.Fatal(err)
	}
	c := &conn{db: db, named: func(text string) string { return text }, stmts: map[statement]*stmt{}}
	b.Cleanup(func() { _ = c.close() })
	if err := c.settle(b.Context(), Config{}, true); err != nil {
		b.Fatal(err)
	}
	err = db.Exec(`
		create table log (pos integer primary key, created integer, queue text, kind text, args text);
		create table history (pos integer primary key, started integer, finished integer, outcome integer)`)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// bulkOf inserts n rows in one transaction.
func bulkOf(b *testing.B, c *conn, text string, n int, values func(v []value, row int) []value) {
	b.Helper()
	var room [4]value
	err := c.control(`begin immediate`)
	for done := 0; done < n && err == nil; {
		rows := bulk(n-done, func(int) int { return 0 })
		s, perr := c.prepareRows(text, rows)
		if perr != nil {
			b.Fatal(perr)
		}
		for i := range rows {
			s.set(i, values(room[:0], done+i)...)
		}
		err = s.run()
		done += rows
	}
	if err == nil {
		err = c.control(`commit`)
	}
	if err != nil {
		b.Fatal(err)
	}
}

func enqueueByHand(b *testing.B, c *conn, n int) {
	args := json.RawMessage(`{"n":1}`)
	bulkOf(b, c, `insert into log (created, queue, kind, args) values (?, ?, ?, ?)`, n, func(v []value, _ int) []value {
		return append(v, num(1), text("default"), text("noop"), raw(args))
	})
}

func BenchmarkLimitEnqueue(b *testing.B) {
	c, n := byHand(b), 0
	for b.Loop() {
		enqueueByHand(b, c, 10*limitBatch)
		n += 10 * limitBatch
	}
	perJob(b, n)
}

func BenchmarkLimitWork(b *testing.B) {
	c, n, last := byHand(b), 0, int64(0)
	for b.Loop() {
		b.StopTimer()
		enqueueByHand(b, c, 10*limitBatch)
		b.StartTimer()
		for range 10 {
			var read []int64
			var args []json.RawMessage
			err := c.query(`select pos, created, queue, kind, args from log where pos > ? order by pos limit ?`, []any{last, limitBatch}, func(s *stmt) error {
				read, args = append(read, s.ColumnInt64(0)), append(args, s.json(4))
				_, _, _ = s.ColumnInt64(1), s.name(2), s.name(3)
				return nil
			})
			if err != nil || len(read) != limitBatch || args[0] == nil {
				b.Fatal(len(read), err)
			}
			last = read[len(read)-1]
			bulkOf(b, c, `insert into history (pos, started, finished, outcome) values (?, ?, ?, ?)`, limitBatch, func(v []value, i int) []value {
				return append(v, num(read[i]), num(1), num(2), num(1))
			})
			n += limitBatch
		}
	}
	perJob(b, n)
}
