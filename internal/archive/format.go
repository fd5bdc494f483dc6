package archive

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/stint-go/stint"
)

// Format is what files look like.
type Format string

const (
	NDJSON  Format = "ndjson"  // a line of JSON for each job, as the API shows it, with its attempts
	CSV     Format = "csv"     // a line for each job, under a line of names
	Parquet Format = "parquet" // a row for each job, compressed
)

// Formats are all that there are.
var Formats = []Format{NDJSON, CSV, Parquet}

func (f Format) String() string { return string(f) }

func (f Format) sheet(w io.Writer) sheet {
	switch f {
	case CSV:
		return newTable(w)
	case Parquet:
		return &columns{parquet.NewGenericWriter[record](w, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(rowGroup))}
	}
	return &lines{json.NewEncoder(w)}
}

// rowGroup is how many rows of a Parquet file are held in memory.
const rowGroup = 50_000

// lines is NDJSON.
type lines struct{ to *json.Encoder }

func (l *lines) add(job *stint.JobInfo) error { return l.to.Encode(job) }
func (l *lines) close() error                 { return nil }

// record is a job in one row: its last attempt, and all of them as JSON. What it lacks is null.
type record struct {
	ID          int64      `parquet:"id"`
	Kind        string     `parquet:"kind,dict"`
	Queue       string     `parquet:"queue,dict"`
	Priority    int32      `parquet:"priority"`
	State       string     `parquet:"state,dict"`
	Reason      string     `parquet:"reason,dict"`
	Attempt     int32      `parquet:"attempt"`
	Losses      int32      `parquet:"losses"`
	Created     time.Time  `parquet:"created,timestamp(microsecond)"`
	Due         time.Time  `parquet:"due,timestamp(microsecond)"`
	Started     *time.Time `parquet:"started,optional,timestamp(microsecond)"`
	Finished    *time.Time `parquet:"finished,optional,timestamp(microsecond)"`
	Instance    *string    `parquet:"instance,optional,dict"`
	Args        string     `parquet:"args"`
	Result      *string    `parquet:"result,optional"`
	ErrorClass  *string    `parquet:"error_class,optional,dict"`
	Error       *string    `parquet:"error,optional"`
	Tags        []string   `parquet:"tags,list"`
	URN         *string    `parquet:"urn,optional"`
	Source      *string    `parquet:"source,optional,dict"`
	Correlation string     `parquet:"correlation"`
	Schedule    *string    `parquet:"schedule,optional,dict"`
	Flow        *int64     `parquet:"flow,optional"`
	RetriedAs   *int64     `parquet:"retried_as,optional"`
	Metadata    *string    `parquet:"metadata,optional"`
	Attempts    string     `parquet:"attempts"`
}

func recordOf(j *stint.JobInfo) (record, error) {
	attempts, err := json.Marshal(j.Attempts)
	r := record{
		ID: int64(j.ID), Kind: j.Kind, Queue: j.Queue, Priority: int32(j.Priority), State: string(j.State), Reason: j.Reason,
		Attempt: int32(j.Attempt), Losses: int32(j.Losses), Created: j.Created.UTC(), Due: j.Due.UTC(), Started: instant(j.Started), Finished: instant(j.Finished),
		Args: string(j.Args), Tags: j.Tags, URN: given(j.URN), Source: given(j.Source), Correlation: j.Correlation,
		Schedule: given(j.Origin.Schedule), Flow: given(int64(j.Flow)), RetriedAs: given(int64(j.RetriedAs)), Metadata: given(string(j.Metadata)),
		Attempts: string(attempts),
	}
	if n := len(j.Attempts); n > 0 {
		last := j.Attempts[n-1]
		r.Instance, r.Result = given(last.Instance), given(string(last.Result))
		if last.Error != nil {
			r.ErrorClass, r.Error = given(last.Error.Class), given(last.Error.Message)
		}
	}
	return r, err
}

// given is a pointer to a value, nil for the zero value.
func given[V comparable](v V) *V {
	var none V
	if v == none {
		return nil
	}
	return &v
}

func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

// columns is Parquet.
type columns struct {
	to *parquet.GenericWriter[record]
}

func (c *columns) add(job *stint.JobInfo) error {
	r, err := recordOf(job)
	if err != nil {
		return err
	}
	_, err = c.to.Write([]record{r})
	return err
}

func (c *columns) close() error { return c.to.Close() }

// table is CSV.
type table struct{ to *csv.Writer }

var head = strings.Fields(`id kind queue priority state reason attempt losses created due started finished instance args result
	error_class error tags urn source correlation schedule flow retried_as metadata attempts`)

func newTable(w io.Writer) *table {
	t := &table{csv.NewWriter(w)}
	_ = t.to.Write(head) // an error is told again at the end
	return t
}

func (t *table) add(job *stint.JobInfo) error {
	r, err := recordOf(job)
	if err != nil {
		return err
	}
	tags, err := json.Marshal(r.Tags)
	if err != nil {
		return err
	}
	return t.to.Write([]string{
		strconv.FormatInt(r.ID, 10), r.Kind, r.Queue, strconv.Itoa(int(r.Priority)), r.State, r.Reason, strconv.Itoa(int(r.Attempt)), strconv.Itoa(int(r.Losses)),
		when(&r.Created), when(&r.Due), when(r.Started), when(r.Finished), text(r.Instance), r.Args, text(r.Result),
		text(r.ErrorClass), text(r.Error), string(tags), text(r.URN), text(r.Source), r.Correlation, text(r.Schedule), number(r.Flow), number(r.RetriedAs), text(r.Metadata), r.Attempts,
	})
}

func (t *table) close() error {
	t.to.Flush()
	return t.to.Error()
}

func when(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func number(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}
