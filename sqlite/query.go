package sqlite

import (
	"time"

	"github.com/stint-go/stint/event"
)

// told tells the hook of a statement, if there is one. A statement that returns
// rows took until the last of them was worked on.
func (c *conn) told(text string, began time.Time, rows int64, err error) {
	if c.tell != nil {
		event.Query{Text: c.named(text), Took: time.Since(began), Rows: rows, Err: err}.TellTo(c.tell)
	}
}

// control runs what begins or ends a transaction. A commit is where the waiting
// for the disk is.
func (c *conn) control(text string) error {
	s, err := c.prepare(text)
	if err != nil {
		return err
	}
	began := time.Now()
	err = s.Exec()
	c.told(text, began, 0, err)
	return err
}
