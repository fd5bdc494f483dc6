package report

import (
	"encoding/json"
	"time"
)

// Durations sum up how long something took that happened many times. The zero
// value is of something that never happened.
type Durations struct {
	Count   int64         `json:"count"`
	Last    time.Duration `json:"last"`
	Fastest time.Duration `json:"fastest"`
	Longest time.Duration `json:"longest"`
	Total   time.Duration `json:"total"`
}

// Mean is the total by the count, or 0.
func (d Durations) Mean() time.Duration {
	if d.Count == 0 {
		return 0
	}
	return d.Total / time.Duration(d.Count)
}

// Add counts one more.
func (d *Durations) Add(took time.Duration) {
	if d.Count == 0 || took < d.Fastest {
		d.Fastest = took
	}
	d.Count++
	d.Last, d.Longest, d.Total = took, max(d.Longest, took), d.Total+took
}

// merge adds others. Which was the last only the caller knows.
func (d *Durations) merge(o Durations) {
	if o.Count > 0 && (d.Count == 0 || o.Fastest < d.Fastest) {
		d.Fastest = o.Fastest
	}
	d.Count += o.Count
	d.Longest, d.Total = max(d.Longest, o.Longest), d.Total+o.Total
}

// MarshalJSON adds the mean.
func (d Durations) MarshalJSON() ([]byte, error) {
	type plain Durations
	return json.Marshal(struct {
		plain
		Mean time.Duration `json:"mean"`
	}{plain(d), d.Mean()})
}
