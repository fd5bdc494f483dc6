// Package monitoring checks what docs/monitoring has for those who watch stint: a
// dashboard for Grafana and alert rules for Prometheus.
//
// Every query of both is read, and asks for metrics, labels and values that a real
// engine exports. Where Prometheus is installed (make prometheus), the rules pass
// their own tests, and a real server scrapes a real engine and answers every query.
package monitoring

import (
	"fmt"
	"regexp"
	"slices"
)

// Query is what a query in PromQL asks for.
type Query struct {
	Metrics  []string  // in the order of their first use, each once
	Matchers []Matcher // what stands in braces after them
	Labels   []string  // by which something is grouped or joined
}

// Matcher is one condition on a label.
type Matcher struct{ Metric, Label, Op, Value string }

var (
	token = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[a-zA-Z_:][\w:]*|[0-9][\w.]*|\[[^\]]*\]|[=!]~|[=!<>]=|[^\s]`)
	name  = regexp.MustCompile(`^[a-zA-Z_:]`)

	grouping  = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}
	operators = []string{"and", "or", "unless", "bool", "offset"}
)

// Read finds what a query asks for. It knows names, strings and brackets and no
// more of the language: whether it is a query at all is for Prometheus to say.
func Read(query string) (q Query, err error) {
	r := reader{tokens: token.FindAllString(query, -1)}
	for !r.done() && err == nil {
		switch word := r.next(); {
		case slices.Contains(grouping, word):
			var labels []string
			labels, err = r.list()
			q.Labels = append(q.Labels, labels...)
		case !name.MatchString(word), slices.Contains(operators, word):
		case r.peek() == "(", slices.Contains(grouping, r.peek()):
			// a function, or an aggregation
		default:
			if !slices.Contains(q.Metrics, word) {
				q.Metrics = append(q.Metrics, word)
			}
			var matchers []Matcher
			matchers, err = r.matchers(word)
			q.Matchers = append(q.Matchers, matchers...)
		}
	}
	if err != nil {
		return Query{}, fmt.Errorf("%s: %w", query, err)
	}
	return q, nil
}

// reader goes through the tokens of a query.
type reader struct{ tokens []string }

func (r *reader) done() bool { return len(r.tokens) == 0 }

// peek is the next token; none at the end.
func (r *reader) peek() string {
	if r.done() {
		return ""
	}
	return r.tokens[0]
}

func (r *reader) next() string {
	word := r.peek()
	r.tokens = r.tokens[min(1, len(r.tokens)):]
	return word
}

// list reads labels in parentheses. Without these there are none, as in
// group_left.
func (r *reader) list() (labels []string, err error) {
	if r.peek() != "(" {
		return nil, nil
	}
	for r.next(); r.peek() != ")"; {
		switch word := r.next(); {
		case name.MatchString(word):
			labels = append(labels, word)
		case word != ",":
			return nil, fmt.Errorf("%q stands among labels", word)
		}
	}
	r.next()
	return labels, nil
}

// matchers reads what stands in braces after a metric, if anything does.
func (r *reader) matchers(metric string) (all []Matcher, err error) {
	if r.peek() != "{" {
		return nil, nil
	}
	for r.next(); r.peek() != "}"; {
		m := Matcher{metric, r.next(), r.next(), r.next()}
		if !name.MatchString(m.Label) || len(m.Value) < 2 || m.Value[0] != '"' {
			return nil, fmt.Errorf("%s%s%s is no condition on a label", m.Label, m.Op, m.Value)
		}
		m.Value = m.Value[1 : len(m.Value)-1]
		if all = append(all, m); r.peek() == "," {
			r.next()
		}
	}
	r.next()
	return all, nil
}
