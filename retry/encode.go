package retry

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// wire is the JSON form. Its order of fields is the canonical one.
type wire struct {
	Policy   string     `json:"policy"`
	Retries  *int       `json:"retries,omitempty"` // 0 is written for the rules that have it
	Wait     string     `json:"wait,omitempty"`
	First    string     `json:"first,omitempty"`
	Rows     []wireRow  `json:"rows,omitempty"`
	Name     string     `json:"name,omitempty"`
	Cases    []wireCase `json:"cases,omitempty"`
	Else     *wire      `json:"else,omitempty"`
	Only     []string   `json:"only,omitempty"`
	Except   []string   `json:"except,omitempty"`
	Jitter   float64    `json:"jitter,omitempty"`
	Max      string     `json:"max,omitempty"`
	Deadline string     `json:"deadline,omitempty"`
	Faulty   int        `json:"faulty,omitempty"`
}

type wireRow struct {
	Younger string `json:"younger"`
	Wait    string `json:"wait"`
}

type wireCase struct {
	Class string `json:"class"`
	Then  *wire  `json:"then"`
}

// MarshalJSON writes the canonical form of the package comment. A policy with a
// mistake is not written: its error is that of Validate.
func (p Policy) MarshalJSON() ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return json.Marshal(p.wire())
}

// MarshalText writes the same as String, for flags and configuration files.
func (p Policy) MarshalText() ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return []byte(p.String()), nil
}

// String returns the text form of Parse where there is one, which is so unless
// the policy is by_error or a name has one of the characters that separate, and
// else the JSON form. Parse reads both, so nothing is lost: for a policy without
// mistake, Parse(p.String()) == p.
func (p Policy) String() string {
	if p.bad != "" {
		return "invalid (" + p.bad + ")"
	}
	if text, ok := p.text(); ok {
		return text
	}
	b, err := json.Marshal(p.wire())
	if err != nil {
		return err.Error() // cannot happen: a wire is text and finite numbers
	}
	return string(b)
}

func (p Policy) wire() *wire {
	w := new(wire)
	p.which().wire(w)
	w.Only, w.Except, w.Jitter, w.Faulty = p.only.names(), p.except.names(), p.jitter, p.faulty
	if p.max > 0 {
		w.Max = FormatDuration(p.max)
	}
	if p.deadline > 0 {
		w.Deadline = FormatDuration(p.deadline)
	}
	return w
}

func (p Policy) text() (text string, ok bool) {
	text = p.which().text()
	if text == "" || strings.ContainsAny(string(p.only+p.except), ",|") {
		return "", false
	}
	add := func(key, value string) { text += "," + key + "=" + value }
	if p.only != "" {
		add("only", strings.Join(p.only.names(), "|"))
	}
	if p.except != "" {
		add("except", strings.Join(p.except.names(), "|"))
	}
	if p.jitter > 0 {
		add("jitter", strconv.FormatFloat(p.jitter, 'g', -1, 64))
	}
	if p.max > 0 {
		add("max", FormatDuration(p.max))
	}
	if p.deadline > 0 {
		add("deadline", FormatDuration(p.deadline))
	}
	if p.faulty > 0 {
		add("faulty", strconv.Itoa(p.faulty))
	}
	return text, true
}

func (none) wire(w *wire) { w.Policy = "none" }
func (none) text() string { return "none" }

func (r fixed) wire(w *wire) {
	w.Policy, w.Retries, w.Wait = "fixed", &r.n, FormatDuration(r.wait)
}
func (r fixed) text() string { return colons("fixed", r.n, r.wait) }

func (r forever) wire(w *wire) { w.Policy, w.Wait = "forever", FormatDuration(r.wait) }
func (r forever) text() string { return "forever:" + FormatDuration(r.wait) }

func (r exponential) wire(w *wire) {
	w.Policy, w.Retries, w.First = "exponential", &r.n, FormatDuration(r.first)
}
func (r exponential) text() string { return colons("exponential", r.n, r.first) }

func colons(name string, n int, d time.Duration) string {
	return name + ":" + strconv.Itoa(n) + ":" + FormatDuration(d)
}

func (r younger) wire(w *wire) {
	w.Policy = "timetable"
	for row := range r.rows {
		w.Rows = append(w.Rows, wireRow{FormatDuration(row.Younger), FormatDuration(row.Wait)})
	}
}

func (r younger) text() string {
	var b strings.Builder
	b.WriteString("timetable")
	separator := ":"
	for row := range r.rows {
		b.WriteString(separator + FormatDuration(row.Younger) + "=" + FormatDuration(row.Wait))
		separator = ","
	}
	return b.String()
}

// rows yields the rows of the table from this one on.
func (r younger) rows(yield func(Row) bool) {
	for ok := true; ok && yield(r.row); {
		r, ok = r.rest.(younger)
	}
}

func (r on) wire(w *wire) {
	w.Policy = "by_error"
	w.Cases = append(w.Cases, wireCase{r.class, r.then.wire()})
	r.rest.wire(w)
}
func (r otherwise) wire(w *wire) { w.Else = r.then.wire() }
func (unmatched) wire(*wire)     {}

// A policy for each of several errors is no matter for one line of text.
func (on) text() string        { return "" }
func (otherwise) text() string { return "" }
func (unmatched) text() string { return "" }

func (r function) wire(w *wire) { w.Policy, w.Name = "function", r.name }
func (r function) text() string {
	if strings.Contains(r.name, ",") {
		return ""
	}
	return "function:" + r.name
}
