package monitoring

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAQueryIsReadForItsMetricsAndLabels(t *testing.T) {
	cases := map[string]struct {
		query string
		want  Query
	}{
		"a metric": {`up`, Query{Metrics: []string{"up"}}},
		"a condition": {
			`up{job=~"stint.*"} == 0`,
			Query{Metrics: []string{"up"}, Matchers: []Matcher{{"up", "job", "=~", "stint.*"}}},
		},
		"names in strings are no metrics": {
			`errors{a="up{}", b!="by (c)"}`,
			Query{Metrics: []string{"errors"}, Matchers: []Matcher{{"errors", "a", "=", "up{}"}, {"errors", "b", "!=", "by (c)"}}},
		},
		"functions are no metrics": {
			`histogram_quantile(0.95, sum by (le, queue) (rate(wait_bucket[$__rate_interval])))`,
			Query{Metrics: []string{"wait_bucket"}, Labels: []string{"le", "queue"}},
		},
		"groups behind": {
			`sum(rate(n_total[5m])) without (instance)`,
			Query{Metrics: []string{"n_total"}, Labels: []string{"instance"}},
		},
		"a ratio with a join": {
			`(sum(a offset 1h) or vector(0)) / on (job) group_left (version) b > bool 1e3 and c unless absent(a)`,
			Query{Metrics: []string{"a", "b", "c"}, Labels: []string{"job", "version"}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Read(c.query)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

func TestAQueryThatIsCutOffIsAnError(t *testing.T) {
	for _, query := range []string{`up{job="stint"`, `up{job=stint}`, `up{job}`, `sum by (job`, `sum by (1) (up)`} {
		if got, err := Read(query); err == nil {
			t.Errorf("%s was read as %+v", query, got)
		}
	}
}
