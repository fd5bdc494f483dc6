package dashboard

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/stint-go/stint/internal/sample"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// databasePage shows the state of the database.
type databasePage struct {
	Findings sample.Seen[[]report.Finding]
	Signs    sample.Seen[report.Facts]
	Leases   []store.Lease
	Schema   store.SchemaInfo
}

// Bytes are what the store takes on its disk.
func (p databasePage) Bytes() (sum int64) {
	for _, s := range p.Signs.Value.Sizes {
		sum += s.Bytes
	}
	return sum
}

func (b *Dashboard) database(r *http.Request) (any, error) {
	var p databasePage
	p.Signs, p.Findings = b.figures.doctor(r.Context())
	var err error
	if p.Leases, err = b.store.Leases(r.Context()); err != nil {
		return nil, err
	}
	p.Schema, err = b.store.Schema(r.Context())
	return p, err
}

// line is one figure of an engine's metrics.
type line struct {
	Part, What, Figure string
	At                 time.Time // of one that is a time, if there is one
}

// lines are all figures of an engine's metrics, in the order in which they are
// declared, and the kinds after them.
func lines(m report.Metrics) (all []line) {
	for part, of := range reflect.ValueOf(m).Fields() {
		if of.Kind() != reflect.Struct || of.Type() == reflect.TypeFor[time.Time]() {
			continue
		}
		for what, figure := range of.Fields() {
			at, _ := figure.Interface().(time.Time)
			all = append(all, line{spoken(part.Name), spoken(what.Name), figureInWords(figure.Interface()), at})
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(m.Kinds)) {
		all = append(all, line{"kind", words.Visible(kind), figureInWords(m.Kinds[kind]), time.Time{}})
	}
	return all
}

// figureInWords says a counter, a duration, several durations, or that there is no time.
func figureInWords(figure any) string {
	switch f := figure.(type) {
	case time.Duration:
		return words.Took(f)
	case report.Durations:
		if f.Count == 0 {
			return "none"
		}
		return fmt.Sprintf("%s, mean %s, fastest %s, longest %s", words.Count(f.Count), words.Took(f.Mean()), words.Took(f.Fastest), words.Took(f.Longest))
	case time.Time:
		return "none"
	case int64:
		return words.Count(f)
	case string:
		return cmp.Or(f, "none")
	}
	return fmt.Sprint(figure)
}

// spoken turns a name of the language into words: SlotWaits is slot waits.
func spoken(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
